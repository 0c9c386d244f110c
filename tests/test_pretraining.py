"""Denoising pretraining: what the corruption hides and keeps, the corpus, the scripts, and fine-tuning."""

import gzip
import json
import logging
import shutil

import numpy as np
import pytest
import torch
from conftest import ROOT, tiny_config
from datasets import Dataset
from safetensors.torch import load_file
from transformers import AutoTokenizer, GenerationConfig, Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.lines import iterate_lines, read_lines
from hf_vanilla_transformer.data.plain_text import load_corpus, stream_corpus, tokenize_corpus
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training.denoising import SpanInfilling
from hf_vanilla_transformer.training.trainer import TokenBudgetTrainer


PAD, BOS, EOS, MASK = 0, 2, 3, 6
TEXTS = [" ".join("가나다라마바사아자차"[digit] for digit in map(int, str(7**number))) for number in range(60)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, vocab_size=29, max_length=16)


def infilling(tokenizer, epoch=0, **settings) -> SpanInfilling:
    collator = SpanInfilling(tokenizer, tiny_config(), **settings)
    if epoch is not None:
        collator.set_epoch(epoch)
    return collator


def rows(number: int, low: int = 1, high: int = 40) -> list[dict]:
    """Texts of unequal length, without special tokens."""
    generator = np.random.default_rng(0)
    return [
        {"input_ids": generator.integers(7, 1000, size=generator.integers(low, high)).tolist(), "row": row}
        for row in range(number)
    ]


def unpadded(batch) -> tuple[list[list[int]], list[list[int]]]:
    """Inputs and labels as lists, without pads."""
    inputs = [ids[mask.bool()].tolist() for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)]
    return inputs, [ids[ids != -100].tolist() for ids in batch["labels"]]


def read_spans(labels: list[int]) -> list[list[int]]:
    """The spans of a target of the kind `spans`."""
    assert labels[-1] == EOS and (labels[0] == MASK)
    spans = []
    for token in labels[:-1]:
        if token == MASK:
            spans.append([])
        else:
            spans[-1].append(token)
    return spans


def fill_in(inputs: list[int], spans: list[list[int]]) -> list[int]:
    spans = iter(spans)
    filled = [token for place in inputs for token in (next(spans) if place == MASK else [place])]
    assert next(spans, None) is None
    return filled


# --- The corruption ---


@pytest.mark.parametrize("mask_rate", [0.01, 0.15, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("mean_span_length", [1.0, 3.0, 10.0])
def test_the_spans_filled_in_give_the_text(tokenizer, mask_rate, mean_span_length):
    settings = {"mask_rate": mask_rate, "mean_span_length": mean_span_length, "seed": 5}
    features = rows(300)
    inputs, labels = unpadded(infilling(tokenizer, target="spans", **settings)(features))
    for feature, corrupted, target in zip(features, inputs, labels, strict=True):
        ids, spans = feature["input_ids"], read_spans(target)
        assert fill_in(corrupted, spans) == ids
        hidden = sum(map(len, spans))
        assert 1 <= hidden <= max(1, np.floor(len(ids) * mask_rate) + 1)
        assert len(spans) <= min(hidden, max(1, len(ids) - hidden))
        assert len(corrupted) <= len(ids)

    whole = infilling(tokenizer, target="text", **settings)(features)
    assert unpadded(whole) == (inputs, [[*feature["input_ids"], EOS] for feature in features])


def test_rates_and_lengths_are_as_configured(tokenizer):
    features = rows(4000, 30, 60)
    _, labels = unpadded(infilling(tokenizer, mask_rate=0.3, mean_span_length=3.0, target="spans")(features))
    spans = [read_spans(target) for target in labels]
    tokens = sum(len(feature["input_ids"]) for feature in features)
    assert sum(len(span) for text in spans for span in text) / tokens == pytest.approx(0.3, abs=0.001)

    # The last span is cut to fit, and a text's spans are in no order: compare with the same drawn one by one.
    generator = np.random.default_rng(0)
    expected = []
    for text in spans:
        left = sum(map(len, text))
        while left > 0:
            expected.append(min(generator.poisson(3.0), left))
            left -= expected[-1]
    found = np.bincount([len(span) for text in spans for span in text], minlength=9)[:9]
    expected = np.bincount(expected, minlength=9)[:9]
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), rtol=0, atol=0.01)
    assert found[0] > 0


def test_spans_lie_anywhere_alike(tokenizer):
    features = [{"input_ids": list(range(7, 27)), "row": row} for row in range(5_000)]
    _, labels = unpadded(infilling(tokenizer, target="spans")(features))
    counts = np.bincount([token for target in labels for token in target], minlength=27)[7:] / 5_000
    # Tokens at the ends lie in fewer spans than those in the middle, the same on both sides.
    np.testing.assert_allclose(counts, counts[::-1], atol=0.03)
    assert counts.mean() == pytest.approx(0.3, abs=2e-3)
    assert counts.min() > 0.13 and counts.max() < 0.36
    lengths = [np.mean([len(read_spans(target)[place]) for target in labels]) for place in (0, -1)]
    assert lengths[0] == pytest.approx(lengths[1], abs=0.1)  # the span that is cut to fit is at no fixed place


@pytest.mark.parametrize("target", ["text", "spans"])
def test_a_text_of_one_token_works(tokenizer, target):
    batch = infilling(tokenizer, target=target)([{"input_ids": [9], "row": 0}, {"input_ids": [8], "row": 7}])
    assert batch["input_ids"].tolist() == [[MASK], [MASK]]
    expected = {"text": [[9, EOS], [8, EOS]], "spans": [[MASK, 9, EOS], [MASK, 8, EOS]]}[target]
    assert batch["labels"].tolist() == expected


def test_a_batch_is_what_the_model_reads(tokenizer):
    batch = infilling(tokenizer)([{"input_ids": [9, 10, 11, 12, 13, 14], "row": 3}, {"input_ids": [15], "row": 4}])
    assert {name: value.dtype for name, value in batch.items()} == dict.fromkeys(
        ("input_ids", "attention_mask", "labels", "decoder_input_ids"), torch.int64
    )
    assert batch["labels"].tolist() == [[9, 10, 11, 12, 13, 14, EOS], [15, EOS] + [-100] * 5]
    assert batch["decoder_input_ids"].tolist() == [[BOS, 9, 10, 11, 12, 13, 14], [BOS, 15, EOS] + [PAD] * 4]
    assert batch["attention_mask"][1].tolist() == [1] + [0] * (batch["input_ids"].shape[1] - 1)
    assert batch["input_ids"][1].tolist() == [MASK] + [PAD] * (batch["input_ids"].shape[1] - 1)
    assert (batch["input_ids"][0] != PAD).equal(batch["attention_mask"][0].bool())


def test_the_corruption_depends_on_seed_epoch_and_row_alone(tokenizer):
    features = rows(200, 5)

    def inputs(features, **settings):
        return unpadded(infilling(tokenizer, **settings)(features))[0]

    expected = inputs(features, seed=1, epoch=2)
    assert inputs(features, seed=1, epoch=2) == expected
    assert inputs(features, seed=2, epoch=2) != expected
    # Neither the batch nor what came before it.
    collator = infilling(tokenizer, seed=1, epoch=2)
    collator(features[50:90])
    assert unpadded(collator(features[::-1]))[0] == expected[::-1]
    assert [unpadded(collator([feature]))[0][0] for feature in features[:20]] == expected[:20]
    # Other rows and other epochs are corrupted independently: about as many are alike by chance.
    alike = {}
    for epoch in (0, 1, 3):
        other = inputs(features, seed=1, epoch=epoch)
        alike[epoch] = np.mean([a == b for a, b in zip(expected, other, strict=True)])
    shifted = [{**feature, "row": feature["row"] + 1} for feature in features]
    alike["row"] = np.mean([a == b for a, b in zip(expected, inputs(shifted, seed=1, epoch=2), strict=True)])
    assert max(alike.values()) < 0.2


def test_a_collator_that_was_not_told_the_epoch_says_so(tokenizer):
    with pytest.raises(ValueError, match="callback"):
        infilling(tokenizer, epoch=None)(rows(2))


def test_validation_is_corrupted_once(tokenizer, tmp_path):
    features = rows(50)
    Dataset.from_list(features).save_to_disk(tmp_path)
    on_disk = Dataset.load_from_disk(tmp_path)  # what comes of it is cached beside it
    collator = infilling(tokenizer, epoch=4)
    fixed = collator.corrupted(on_disk)
    batch = collator(fixed.to_list())
    expected = infilling(tokenizer, epoch=0)(features)
    assert all(torch.equal(batch[name], expected[name]) for name in expected)
    for settings in ({"mask_rate": 0.5}, {"mean_span_length": 1.0}, {"target": "spans"}, {"seed": 1}):
        other = infilling(tokenizer, **settings).corrupted(on_disk)
        assert other.to_list() != fixed.to_list(), settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mask_rate": 0.0}, "mask_rate"),
        ({"mask_rate": 1.0}, "mask_rate"),
        ({"mean_span_length": 0.5}, "mean_span_length"),
        ({"mean_span_length": float("nan")}, "mean_span_length"),
        ({"target": "word"}, "target must be text or spans"),
    ],
)
def test_impossible_corruptions_are_refused(tokenizer, settings, message):
    with pytest.raises(ValueError, match=message):
        infilling(tokenizer, **settings)


# --- Through Trainer ---


def train(folder, tokenizer, resume=None, max_tokens=None, **overrides):
    """A run that notes its batches; of each the columns that the collator made."""
    torch.manual_seed(0)
    settings = {
        "use_cpu": True,
        "report_to": "none",
        "disable_tqdm": True,
        "remove_unused_columns": False,
        "per_device_train_batch_size": 8,
        "num_train_epochs": 3,
        "save_strategy": "steps",
        "save_steps": 5,
        "seed": 3,
        **overrides,
    }
    data = [
        {
            "input_ids": [token % 22 + 7 for token in row["input_ids"]],
            "row": row["row"],
            "length": len(row["input_ids"]) + 1,
        }
        for row in rows(60, 1, 15)
    ]
    collator = infilling(tokenizer, epoch=None)
    batches = []

    class NotingTrainer(Seq2SeqTrainer if max_tokens is None else TokenBudgetTrainer):
        def training_step(self, model, inputs, *args, **kwargs):
            batches.append({name: value.clone() for name, value in inputs.items()})
            return super().training_step(model, inputs, *args, **kwargs)

    trainer = NotingTrainer(
        model=VanillaTransformerForConditionalGeneration(tiny_config()),
        args=Seq2SeqTrainingArguments(str(folder), **settings),
        data_collator=collator,
        train_dataset=Dataset.from_list(data),
        callbacks=[collator.callback],
        **({} if max_tokens is None else {"max_tokens": max_tokens}),
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer, batches


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_tokens": 64},
        {"max_tokens": 64, "gradient_accumulation_steps": 2},
        {"dataloader_num_workers": 1},
        {"dataloader_num_workers": 1, "dataloader_persistent_workers": True},
    ],
    ids=str,
)
def test_a_resumed_run_sees_the_same_batches_and_ends_the_same(tmp_path, tokenizer, settings):
    whole, batches = train(tmp_path / "whole", tokenizer, **settings)
    steps = whole.state.max_steps // 3
    checkpoints = sorted(int(path.name.split("-")[1]) for path in (tmp_path / "whole").glob("checkpoint-*"))
    middle = next(step for step in checkpoints if step > steps and step % steps)  # in the second epoch
    resumed, later = train(
        tmp_path / "resumed", tokenizer, str(tmp_path / "whole" / f"checkpoint-{middle}"), **settings
    )
    assert 0 < len(later) < len(batches)
    for batch, expected in zip(later, batches[-len(later) :], strict=True):
        assert batch.keys() == expected.keys()
        assert all(torch.equal(batch[name], expected[name]) for name in batch)
    if "dataloader_persistent_workers" in settings:
        return  # a resumed loader starts them once more, which moves the random numbers of dropout
    for (name, expected), value in zip(whole.model.named_parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(value, expected), name


def test_each_epoch_corrupts_anew(tmp_path, tokenizer):
    _, batches = train(tmp_path, tokenizer, train_sampling_strategy="sequential", per_device_train_batch_size=60)
    assert len(batches) == 3
    assert all(torch.equal(batches[0]["labels"], batch["labels"]) for batch in batches)
    inputs = [unpadded(batch)[0] for batch in batches]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert np.mean([a == b for a, b in zip(inputs[first], inputs[second], strict=True)]) < 0.5
    assert (
        inputs[2]
        == unpadded(
            infilling(tokenizer, epoch=2)(
                [{"input_ids": ids[:-1], "row": row} for row, ids in enumerate(unpadded(batches[0])[1])]
            )
        )[0]
    )


# --- The corpus ---


@pytest.fixture
def corpus(tmp_path):
    file = tmp_path / "corpus.txt.gz"
    file.write_bytes(gzip.compress(("\n".join([*TEXTS[:30], "", "  ", *TEXTS[30:]]) + "\n").encode()))
    return file


def first_line_alone(file):
    yield TEXTS[0]
    raise AssertionError("the file is read again")


def test_lines_become_tokens_once(corpus, tokenizer, tmp_path, caplog, monkeypatch):
    def load(validation=10):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            return tokenize_corpus(load_corpus([corpus], validation=validation), tokenizer, 8)

    tokenized = load()
    assert "train: 2 of 52 lines have no text and are dropped" in caplog.text
    train, validation = (tokenized[split].to_list() for split in ("train", "validation"))
    assert (len(train), len(validation)) == (50, 10)
    expected = sorted(tokenizer(text)["input_ids"][:8] for text in TEXTS)
    assert sorted(row["input_ids"] for row in train + validation) == expected
    assert all(row["length"] == len(row["input_ids"]) + 1 for row in train)
    assert len({row["row"] for row in train}) == 50
    assert len(load(0.25)["validation"]) == 16  # of 62 lines; those without text may be among them

    # From the cache, also with a tokenizer that was saved, loaded and used; not where the file has changed.
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    loaded = type(tokenizer).from_pretrained(tmp_path / "tokenizer")
    loaded(TEXTS[:2], padding=True, truncation=True)
    monkeypatch.setattr("hf_vanilla_transformer.pretraining.iterate_lines", first_line_alone)
    monkeypatch.setattr("hf_vanilla_transformer.pretraining._tokenize_rows", None)
    again = tokenize_corpus(load_corpus([corpus], validation=10), loaded, 8)
    assert again["train"].to_list() == train
    assert "2 of 52 lines have no text" in caplog.text
    monkeypatch.undo()
    shorter = tokenize_corpus(load_corpus([corpus], validation=10), tokenizer, 3)["train"]
    assert max(map(len, shorter["input_ids"])) == 3
    corpus.write_bytes(gzip.compress("".join(f"{text}\n" for text in TEXTS[:20]).encode()))
    assert len(load()["train"]) == 10


def test_the_split_goes_by_its_seed(corpus):
    first, same, other = (
        load_corpus([corpus], validation=20, seed=seed)["validation"]["text"][:] for seed in (1, 1, 2)
    )
    assert first == same != other
    both = load_corpus([corpus, corpus])
    assert len(both["train"]) + len(both["validation"]) == 124 and len(both["validation"]) == 1


def test_the_stream_holds_every_line_and_begins_again(corpus, tokenizer):
    stream, validation = stream_corpus([corpus], tokenizer, 8, validation=10, seed=1)
    expected = [tokenizer(text)["input_ids"][:8] for text in TEXTS]
    assert [row["input_ids"] for row in validation] == expected[:10]
    taken = list(stream.take(5000))
    assert [row["row"] for row in taken] == list(range(5000))
    counts = {}
    for row in taken:
        counts[tuple(row["input_ids"])] = counts.get(tuple(row["input_ids"]), 0) + 1
    assert set(counts) == {tuple(ids) for ids in expected[10:]}
    assert list(stream.take(100)) == taken[:100]
    assert list(stream_corpus([corpus], tokenizer, 8, validation=10, seed=2)[0].take(100)) != taken[:100]
    with pytest.raises(DataError, match="cannot be held back"):
        stream_corpus([corpus], tokenizer, 8, validation=62)
    (corpus.parent / "short.txt").write_text("가 나\n\n \n")
    stream, _ = stream_corpus([corpus.parent / "short.txt"], tokenizer, 8, validation=1)
    with pytest.raises(DataError, match="no line with a text after"):
        next(iter(stream))


# --- The scripts ---


TINY = (
    '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, '
    '"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}'
)


CONTINUED = ["--model", str(ROOT / "model_cards" / "nsmc-small"), "--config", '{"dropout": 0.1}']


def pretrain(run, corpus, folder, *arguments):
    vocabulary = [] if {"--model", "--tokenizer"} & set(arguments) else ["--vocab_size", "29"]
    return run(
        "pretrain.py",
        *("--texts", corpus, "--output_dir", folder, "--config", TINY, "--max_length", "12", *vocabulary),
        *("--max_steps", "4", "--save_steps", "2", "--eval_strategy", "steps", "--eval_steps", "2"),
        *("--logging_steps", "2", "--disable_tqdm", "true", "--report_to", "none", "--validation", "10", *arguments),
    )


def test_a_pretrained_model_is_a_folder_to_fine_tune(run, corpus, tmp_path, caplog):
    folder = tmp_path / "pretrained"
    status, out, _ = pretrain(run, corpus, folder, "--max_tokens", "64", "--attn_implementation", "eager")
    assert status == 0
    metrics = json.loads((folder / "metrics.json").read_text())
    assert out.strip().splitlines()[-1] == f"validation perplexity: {metrics['validation']['perplexity']:.3f}"
    assert [entry["step"] for entry in metrics["epochs"]] == [2, 4]
    last = metrics["epochs"][-1]
    assert metrics["validation"] == {
        "loss": last["eval_token_loss"],
        "perplexity": last["eval_perplexity"],
        "rows": 10,
    }
    assert last["eval_perplexity"] == pytest.approx(np.exp(last["eval_token_loss"]))
    assert GenerationConfig.from_pretrained(folder).max_length == 12
    assert last["train_loss"] is not None and (folder / "curves.png").stat().st_size > 0
    record = json.loads((folder / "run.json").read_text())
    assert record["data"]["train"] == {"rows": 50} and list(record["data"]["source"]) == [str(corpus)]
    assert "max_tokens: 64" in (folder / "recipe.yaml").read_text()

    caplog.clear()
    model, loading = VanillaTransformerForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert loading["missing_keys"] == {"classifier.weight"} and "classifier.weight" in caplog.text
    assert loading["unexpected_keys"] == {"lm_head.bias"}
    pretrained = load_file(folder / "model.safetensors")
    weights = model.state_dict()
    assert len(pretrained) > 20
    for name, value in pretrained.items():
        assert name == "lm_head.bias" or torch.equal(weights[name], value), name
    assert model.config.decoder_start_token_id == BOS

    caplog.clear()
    status, out, _ = run(
        "train_classifier.py",
        *("--data", "sample", "--model", folder, "--output_dir", tmp_path / "finetuned", "--max_steps", "1"),
        *("--learning_rate", "0", "--disable_tqdm", "true", "--report_to", "none"),
    )
    assert status == 0 and "classifier.weight" in caplog.text
    finetuned = load_file(tmp_path / "finetuned" / "model.safetensors")
    assert finetuned.keys() - pretrained.keys() == {"classifier.weight"}
    assert all(torch.equal(finetuned[name], pretrained[name]) for name in finetuned.keys() & pretrained.keys())

    # The fine-tuned model's record and card tell of the first run.
    began_as = json.loads((tmp_path / "finetuned" / "run.json").read_text())["began_as"]
    assert began_as["run"] == record and "epochs" not in began_as["metrics"]
    assert began_as["metrics"]["validation"] == metrics["validation"]
    card = (tmp_path / "finetuned" / "README.md").read_text()
    assert f"It began as `{folder}`" in card and "by `vanilla-transformer pretrain`" in card
    assert f"validation perplexity {metrics['validation']['perplexity']:.2f}" in card
    assert (folder / "recipe.yaml").read_text().strip() in card

    # And so does a pretraining that goes on from there, of both.
    again = ["--model", tmp_path / "finetuned", "--config", '{"dropout": 0.0}', "--learning_rate", "0"]
    assert pretrain(run, corpus, tmp_path / "again", *again)[0] == 0
    weights = load_file(tmp_path / "again" / "model.safetensors")
    assert weights.keys() == pretrained.keys()
    assert all(torch.equal(weights[name], pretrained[name]) for name in finetuned.keys() & pretrained.keys())
    assert json.loads((tmp_path / "again" / "config.json").read_text())["dropout"] == 0.0
    card = (tmp_path / "again" / "README.md").read_text()
    assert card.index(f"It began as `{tmp_path / 'finetuned'}`") < card.index(f"That model began as `{folder}`")
    for recipe in (tmp_path / "finetuned" / "recipe.yaml", folder / "recipe.yaml"):
        assert recipe.read_text().strip() in card


def test_a_denoiser_is_drawn_by_the_seed(run, corpus, tmp_path):
    weights = {}
    for name, seed in (("one", "1"), ("again", "1"), ("other", "2")):
        assert pretrain(run, corpus, tmp_path / name, "--seed", seed, "--learning_rate", "0")[0] == 0
        weights[name] = load_file(tmp_path / name / "model.safetensors")["model.encoder.embed_tokens.weight"]
    assert torch.equal(weights["one"], weights["again"]) and not torch.equal(weights["one"], weights["other"])


def test_what_is_hidden_and_held_back_is_what_the_flags_say(run, corpus, tmp_path, monkeypatch):
    made = []

    class Noting(SpanInfilling):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(self)

        def corrupted(self, rows):
            self.held_back = sorted(rows["input_ids"][:])
            return super().corrupted(rows)

    monkeypatch.setattr("hf_vanilla_transformer.pretraining.SpanInfilling", Noting)
    flags = ["--mask_rate", "0.4", "--mean_span_length", "2", "--target", "spans", "--split_seed", "6"]
    for seeds, seed in ((["--seed", "5"], 5), (["--seed", "5", "--data_seed", "8"], 8)):
        assert pretrain(run, corpus, tmp_path / str(seed), *flags, *seeds)[0] == 0
        assert (made[-1].mask_rate, made[-1].mean_span_length, made[-1].target) == (0.4, 2, "spans")
        assert made[-1].seed == seed
        assert json.loads((tmp_path / str(seed) / "run.json").read_text())["seed"] == 5
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "5")
    texts = load_corpus([corpus], validation=10, seed=6)["validation"]["text"]
    assert made[-1].held_back == sorted(tokenizer(text)["input_ids"][:11] for text in texts if text.strip())


def test_a_denoiser_is_trained_with_the_attention_that_was_asked_for(run, corpus, tmp_path, attentions):
    for number, which in enumerate(([], CONTINUED)):
        for attention in ("eager", "sdpa"):
            flags = [*which, "--attn_implementation", attention, "--max_steps", "1"]
            assert pretrain(run, corpus, tmp_path / f"{attention}-{number}", *flags)[0] == 0
    assert attentions == ["eager", "sdpa"] * 2


def test_a_stream_is_shuffled_by_the_seed_of_the_split(run, corpus, tokenizer, tmp_path, monkeypatch):
    seeds = []

    def noting(*args, seed, **kwargs):
        seeds.append(seed)
        return stream_corpus(*args, seed=seed, **kwargs)

    monkeypatch.setattr("hf_vanilla_transformer.pretraining.stream_corpus", noting)
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    flags = ["--streaming", "true", "--tokenizer", tmp_path / "tokenizer", "--split_seed", "6"]
    assert pretrain(run, corpus, tmp_path / "run", *flags)[0] == 0
    assert seeds == [6]


@pytest.mark.parametrize("streaming", [False, True])
def test_an_interrupted_run_goes_on_to_the_same_end(run, corpus, tokenizer, tmp_path, streaming):
    settings = ["--per_device_train_batch_size", "4", "--target", "spans", "--max_steps", "20", "--save_steps", "8"]
    if streaming:
        tokenizer.save_pretrained(tmp_path / "tokenizer")
        settings += ["--streaming", "true", "--tokenizer", tmp_path / "tokenizer"]
    assert pretrain(run, corpus, tmp_path / "whole", *settings)[0] == 0
    (tmp_path / "interrupted").mkdir()
    shutil.copytree(tmp_path / "whole" / "checkpoint-16", tmp_path / "interrupted" / "checkpoint-16")
    status, _, _ = pretrain(run, corpus, tmp_path / "interrupted", *settings, "--resume_from_checkpoint")
    assert status == 0
    whole, resumed = (load_file(tmp_path / folder / "model.safetensors") for folder in ("whole", "interrupted"))
    torch.testing.assert_close(resumed, whole, rtol=0, atol=0)
    metrics = [json.loads((tmp_path / folder / "metrics.json").read_text()) for folder in ("whole", "interrupted")]
    assert metrics[0]["validation"] == metrics[1]["validation"]


NO_DROPOUT = ', "dropout": 0.0, "embedding_dropout": 0.0}'


def test_a_small_model_learns_what_follows_what(run, tmp_path):
    """Lines that count up: a hidden word is known from the words round it, all words are equally frequent."""
    words = ["영", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구"]
    lines = [" ".join(words[(start + place) % 10] for place in range(8)) for start in range(10)] * 20
    (tmp_path / "counting.txt").write_text("\n".join(lines) + "\n")
    status, _, _ = run(
        "pretrain.py",
        *("--texts", tmp_path / "counting.txt", "--output_dir", tmp_path / "run", "--tokenizer_model", "word"),
        *(
            "--config",
            TINY.replace("16", "32").replace("}", NO_DROPOUT),
            "--max_length",
            "16",
            "--vocab_size",
            "17",
            "--target",
            "spans",
        ),
        *("--num_train_epochs", "25", "--learning_rate", "1e-2", "--per_device_train_batch_size", "20"),
        *("--disable_tqdm", "true", "--report_to", "none", "--save_strategy", "no", "--validation", "20"),
    )
    assert status == 0
    measured = json.loads((tmp_path / "run" / "metrics.json").read_text())["validation"]
    # The entropy of the frequencies alone: of a row's labels a half are one of ten words, the rest masks and the end.
    frequencies = np.array([0.05] * 10 + [0.25] * 2)
    assert measured["loss"] < -(frequencies * np.log(frequencies)).sum() / 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--texts", "{}/nowhere.txt"], "nowhere.txt"),
        (["--texts", "{}/latin.txt"], "latin.txt, line 2: byte 1 is not UTF-8"),
        (["--texts", "{}/cut.txt.gz"], "cut.txt.gz: Compressed file ended"),
        (["--texts", "{}/damaged.txt.gz"], "damaged.txt.gz: "),
        (["--texts", "{}/plain.txt.gz"], "plain.txt.gz: Not a gzipped file"),
        (["--texts", "{}/empty.txt"], "empty.txt: no line"),
        (["--texts", "{}/blank.txt", "--validation", "1", "--tokenizer", "{}/tokenizer"], "no line has a text"),
        (["--validation", "62"], "62 lines, of which 62 cannot be held back"),
        (["--validation", "-1"], "validation"),
        (["--validation", "1.5"], "validation"),
        (["--validation", "inf"], "validation must be a share of the lines or their number"),
        (["--validation", "nan"], "validation must be a share of the lines or their number"),
        (["--predict_with_generate", "true"], "--predict_with_generate"),
        (["--metric_for_best_model", "bleu"], "--metric_for_best_model: loss, token_loss, perplexity; not bleu"),
        (["--mask_rate", "2"], "mask_rate"),
        (["--target", "x"], "target"),
        (["--preset", "bert"], "no preset 'bert'"),
        (["--config", '{"d_modle": 8}'], "no such field: d_modle"),
        (["--config", '{"vocab_size": 8}'], "at least the tokenizer's"),
        (["--config", '{"max_position_embeddings": 4}'], "--max_length"),
        (["--max_length", "1"], "--max_length"),
        (["--max_tokens", "2"], "does not fit in a batch of 2"),
        (["--tokenizer", "{}"], "no tokenizer"),
        (["--model", "{}"], "only the dropout rates can be changed"),
        (["--model", "{}", "--config", '{"dropout": 0.1}'], "no model"),
        ([*CONTINUED, "--tokenizer", "{}/other"], "other gives other ids than"),
        (
            ["--model", "{}/post_norm", "--config", '{"dropout": 0.1}', "--tokenizer", "{}/other"],
            "--tokenizer: its pad_token_id is 5, --model's is 0",
        ),
        ([*CONTINUED, "--max_length", "999"], "--max_length"),
        ([*CONTINUED, "--preset", "base"], "--preset: of no effect with --model"),
        ([*CONTINUED, "--tokenizer_model", "bpe"], "--tokenizer_model: of no effect with --model"),
        (["--vocab_size", "29", "--tokenizer", "{}/tokenizer"], "--vocab_size: of no effect with --tokenizer"),
        (["--streaming", "true"], "--streaming: needs --tokenizer"),
        (["--streaming", "true", "--tokenizer", "{}/tokenizer", "--max_steps", "-1"], "needs --max_steps"),
        (["--streaming", "true", "--tokenizer", "{}/tokenizer", "--validation", "0.1"], "needs --validation"),
        (["--streaming", "true", "--tokenizer", "{}/tokenizer", "--validation", "10.5"], "needs --validation"),
        (["--streaming", "true", "--tokenizer", "{}/tokenizer", "--max_tokens", "64"], "needs no --max_tokens"),
        (["--streaming", "true", "--tokenizer", "{}/tokenizer", "--texts", "{}/latin.txt"], "latin.txt, line 2"),
    ],
)
def test_pretraining_refuses_with_one_line(run, corpus, tokenizer, tmp_path, arguments, message):
    whole = corpus.read_bytes()
    damaged = bytearray(whole)
    damaged[20:40] = b"\xff" * 20
    for name, content in {
        "latin.txt": b"ok\n\xe9\n",
        "cut.txt.gz": whole[:-20],
        "damaged.txt.gz": bytes(damaged),
        "plain.txt.gz": b"text\n",
        "empty.txt": b"",
        "blank.txt": b"\n \n\n",
    }.items():
        (tmp_path / name).write_bytes(content)
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    other = AutoTokenizer.from_pretrained(tmp_path / "tokenizer", pad_token="[CLS]")
    other.save_pretrained(tmp_path / "other")
    tiny_config(pad_token_id=0, bos_token_id=BOS, eos_token_id=EOS).save_pretrained(tmp_path / "post_norm")
    tokenizer.save_pretrained(tmp_path / "post_norm")
    arguments = [argument.replace("{}", str(tmp_path)) for argument in arguments]
    status, _, err = pretrain(run, corpus, tmp_path / "run", *arguments)
    assert status == 2
    lines = [line for line in err.splitlines() if line.startswith("pretrain.py: error:")]
    assert len(lines) == 1 and message in lines[0]
    assert "Traceback" not in err


def test_the_recipe_is_one(run, corpus, tmp_path):
    """Its settings are known, its model is as large as it says."""
    recipe = ROOT / "hf_vanilla_transformer/recipes/pretrain-reviews.yaml"
    arguments = ["--texts", corpus, "--validation", "10", "--vocab_size", "29", "--max_steps", "1"]
    arguments += ["--disable_tqdm", "true", "--output_dir", tmp_path / "run"]
    assert run("pretrain.py", recipe, *arguments)[0] == 0
    model = VanillaTransformerForSequenceClassification.from_pretrained(tmp_path / "run")
    assert model.num_parameters() + (8007 - model.config.vocab_size) * model.config.d_model < 5e6


# --- Reviews ---


@pytest.fixture
def checkout(tmp_path):
    """What NSMC's repository looks like."""
    folder = tmp_path / "nsmc"
    (folder / "raw").mkdir(parents=True)
    header = "id\tdocument\tlabel\n"
    (folder / "ratings_train.txt").write_text(header + "1\t좋다  정말\t1\n2\t별로\t0\n3\t최고\t1\n4\t최악\t0\n")
    # The second document is quoted as NSMC's files are: twice.
    twice = '"""그는 """"최고""""라 했다"""'
    (folder / "ratings_test.txt").write_text(header + f"11\t시험 글\t1\n12\t{twice}\t0\n13\t\t0\n")
    movies = {
        "100": [("5", "백 번 영화"), ("11", "고쳐 쓴 시험 글"), ("6", " 시험\t글 ")],
        "20": [("1", "좋다  정말\n봐라\u2028꼭"), ("7", '그는 "최고"라 했다'), ("1", "같은 번호")],
        "3": [("8", " "), ("9", "최고"), ("2", "최고"), ("13", "빈 글의 번호")],
    }
    for movie, reviews in movies.items():
        content = [{"review_id": number, "movie_id": movie, "review": text, "rating": "9"} for number, text in reviews]
        (folder / "raw" / f"{movie}.json").write_text(json.dumps(content, ensure_ascii=False))
    return folder


def test_reviews_become_a_corpus_without_the_test_split(run, checkout, tmp_path):
    status, out, _ = run("prepare_reviews.py", "--nsmc", checkout, "--file", tmp_path / "reviews.txt.gz")
    assert status == 0
    expected = ["최고", "최고", "좋다 정말 봐라 꼭", "백 번 영화"]
    assert list(iterate_lines(tmp_path / "reviews.txt.gz")) == expected
    counts = dict(line.strip().split(" ", 1)[::-1] for line in out.splitlines())
    assert counts == {
        "written": "4",
        "dropped, no text": "1",
        "dropped, in the test split by id": "2",
        "dropped, in the test split by text": "2",
        "dropped, the id was there before": "1",
    }
    assert run("prepare_reviews.py", "--nsmc", checkout, "--file", tmp_path / "again.txt.gz")[0] == 0
    assert (tmp_path / "again.txt.gz").read_bytes() == (tmp_path / "reviews.txt.gz").read_bytes()

    # A corpus that is there already is cleaned in the same way.
    (tmp_path / "lines.txt").write_text("하나\n시험 글\n\n둘  셋\n하나\n")
    arguments = ["--raw", tmp_path / "lines.txt", "--file", tmp_path / "cleaned.txt"]
    assert run("prepare_reviews.py", "--nsmc", checkout, *arguments)[0] == 0
    assert (tmp_path / "cleaned.txt").read_text() == "하나\n둘 셋\n하나\n"


def test_a_corpus_does_not_hold_the_time_of_writing(run, checkout, tmp_path, monkeypatch):
    for second in (1, 2):
        monkeypatch.setattr("time.time", lambda second=second: 1e9 + second)
        assert run("prepare_reviews.py", "--nsmc", checkout, "--file", tmp_path / f"{second}.txt.gz")[0] == 0
    assert (tmp_path / "1.txt.gz").read_bytes() == (tmp_path / "2.txt.gz").read_bytes()


def test_validation_reviews_are_left_out(run, checkout, tmp_path):
    cut = load_labelled_text(checkout, validation_fraction=0.5, seed=3)
    kept, held_back = ([" ".join(text.split()) for text in cut[split]["text"]] for split in ("train", "validation"))
    flags = ["--validation_fraction", "0.5", "--split_seed", "3"]

    arguments = ["--labelled", "true", *flags, "--file", tmp_path / "labelled.txt"]
    assert run("prepare_reviews.py", "--nsmc", checkout, *arguments)[0] == 0
    assert read_lines(tmp_path / "labelled.txt") == kept

    (tmp_path / "raw.txt").write_text("\n".join([*kept, *held_back, "새 글"]) + "\n")
    arguments = ["--raw", tmp_path / "raw.txt", *flags, "--file", tmp_path / "reviews.txt"]
    status, out, _ = run("prepare_reviews.py", "--nsmc", checkout, *arguments)
    assert status == 0 and f"{len(held_back)} dropped, in validation by text" in out
    assert read_lines(tmp_path / "reviews.txt") == [*kept, "새 글"]

    for wrong, message in (
        (["--labelled", "true", "--raw", tmp_path / "raw.txt"], "--labelled: the labelled reviews are not in --raw"),
        (["--validation_fraction", "1"], "--validation_fraction: at least 0 and below 1"),
    ):
        status, _, err = run("prepare_reviews.py", "--nsmc", checkout, *wrong, "--file", tmp_path / "wrong.txt")
        assert status == 2 and message in err.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "raw/20.json").write_text('[{"review_id": "1"}]'), "20.json: not a list of reviews"),
        (lambda folder: (folder / "raw/20.json").write_text('{"a": 1}'), "20.json: not a list of reviews"),
        (lambda folder: (folder / "raw/20.json").write_text("[{"), "20.json: not a list of reviews"),
        (lambda folder: (folder / "raw/20.json").write_bytes(b'["\xe9"]'), "20.json: not a list of reviews"),
        (lambda folder: shutil.rmtree(folder / "raw"), "raw: no .json file"),
        (lambda folder: (folder / "ratings_test.txt").unlink(), "ratings_test.txt: no such file"),
        (lambda folder: (folder.parent / "out.txt").touch(), "nothing is overwritten"),
    ],
)
def test_preparing_refuses_with_one_line(run, checkout, tmp_path, damage, message):
    damage(checkout)
    status, _, err = run("prepare_reviews.py", "--nsmc", checkout, "--file", tmp_path / "out.txt")
    lines = [line for line in err.splitlines() if line.startswith("prepare_reviews.py: error:")]
    assert status == 2 and len(lines) == 1 and message in lines[0]
    assert not (tmp_path / "out.txt").exists() or not (tmp_path / "out.txt").read_bytes()
