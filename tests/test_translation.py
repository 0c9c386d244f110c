"""Sequence-to-sequence models by the scripts: what training leaves, what translating answers, what is refused."""

import json
import math
import re
import shutil

import pytest
import torch
from conftest import ROOT, tiny_config
from sacrebleu.metrics import BLEU
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, Seq2SeqTrainer

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.data.checksums import describe_splits
from hf_vanilla_transformer.data.parallel_text import load_parallel_text
from hf_vanilla_transformer.metrics import translation_report, word_report
from hf_vanilla_transformer.tokenizer import train_tokenizer


TINY = (
    '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, '
    '"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}'
)
QUICK = [
    *("--config", TINY, "--max_steps", "4", "--save_steps", "2", "--eval_strategy", "steps", "--eval_steps", "2"),
    *("--disable_tqdm", "true", "--report_to", "none", "--max_length", "12"),
]
VOCABULARY = ["--vocab_size", "60"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Numbers of two or three figures, and the same in words."""
    folder = tmp_path_factory.mktemp("corpus")
    words = ["Null", "Eins", "Zwei", "Drei", "Vier"]
    numbers = [[a, b, c][c % 2 :] for a in range(5) for b in range(5) for c in range(5)]
    pairs = [(number, [words[figure] for figure in number]) for number in numbers]
    for name, part in (("train", pairs[:100]), ("val", pairs[100:112]), ("test", pairs[112:])):
        (folder / f"{name}.num").write_text("".join(" ".join(map(str, number)) + "\n" for number, _ in part))
        (folder / f"{name}.de").write_text("".join(" ".join(word) + ".\n" for _, word in part))
    return folder


def test_an_unknown_word_is_never_right():
    tokenizer = train_tokenizer(["the t-shirt is red here"] * 2, vocab_size=60, model="word", lowercase=True)
    references = ["The T-shirt is very red here", "the shirt is red"]
    ids = [[2, *tokenizer(text)["input_ids"], 3, 0, -100] for text in references]
    report = word_report(ids, references, tokenizer)
    expected = ["the t - shirt is very red here", "the shirt is red"]
    written = ["the t - shirt is ? red here", "the shirt is red"]
    score = BLEU(tokenize="none", force=True).corpus_score(written, [expected]).score
    assert 50 < score < 100
    assert report["bleu_words"] == score and "tok:none" in report["bleu_words_signature"]


def test_sub_words_are_measured_in_words_too():
    """As the tutorials' own figures are: lower-cased, `T-shirt` three words and `man's` two, wherever they are cut."""
    references = ["The man's T-shirt is red.", "A red shirt, here"]
    tokenizer = train_tokenizer(references * 2, vocab_size=60, lowercase=True)
    ids = [[2, *tokenizer(text)["input_ids"], 3, 0, -100] for text in ("The man's t-shirt was red.", references[1])]
    report = word_report(ids, references, tokenizer)
    expected = ["the man 's t - shirt is red .", "a red shirt , here"]
    written = ["the man 's t - shirt was red .", "a red shirt , here"]
    score = BLEU(tokenize="none", force=True).corpus_score(written, [expected]).score
    assert 50 < score < 100
    assert report["bleu_words"] == score


def train(run, corpus, folder, *arguments):
    vocabulary = [] if "--model" in arguments else VOCABULARY
    return run(
        "train_translation.py",
        *("--data", corpus, "--source_column", "num", "--target_column", "de", "--validation_prefix", "val"),
        *("--output_dir", folder, *QUICK, *vocabulary, *arguments),
    )


def test_a_translator_is_a_folder_that_transformers_loads(run, corpus, tmp_path):
    beams = ["--generation_num_beams", "2", "--length_penalty", "1.5"]
    status, out, _ = train(run, corpus, tmp_path / "run", "--average_last", "2", *beams)
    assert status == 0
    assert out.strip().splitlines()[-1].startswith("test BLEU: ")

    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["averaged_steps"] == [2, 4]
    assert [entry["step"] for entry in metrics["epochs"]] == [2, 4]
    for split, rows in (("validation", 12), ("test", 13)):
        assert metrics[split].keys() == {"loss", "perplexity", "beams_1", "beams_2"}
        report = metrics[split]["beams_2"]
        assert report["rows"] == rows
        assert "case:lc" in report["bleu_lowercased_signature"] and "case:mixed" in report["bleu_signature"]

    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run")
    assert (model.generation_config.num_beams, model.generation_config.length_penalty) == (2, 1.5)
    assert model.lm_head.weight is model.get_input_embeddings().weight
    steps = [load_file(tmp_path / "run" / f"checkpoint-{step}" / "model.safetensors") for step in (2, 4)]
    bias = (steps[0]["lm_head.bias"] + steps[1]["lm_head.bias"]) / 2
    torch.testing.assert_close(model.lm_head.bias.data, bias)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run")
    ids = model.generate(**tokenizer(["1 2 3", "4"], padding=True, return_tensors="pt"))
    assert ids.shape[1] <= 12


def test_a_translator_is_saved_in_half_the_size(run, corpus, tmp_path):
    for dtype in ("float32", "float16"):
        assert train(run, corpus, tmp_path / dtype, "--weights_dtype", dtype)[0] == 0
        weights = load_file(tmp_path / dtype / "model.safetensors")
        assert {weight.dtype for weight in weights.values()} == {getattr(torch, dtype)}
        assert json.loads((tmp_path / dtype / "config.json").read_text())["dtype"] == "float32"


@pytest.mark.parametrize(("vocabularies", "case"), [("joint", ["--lowercase"]), ("separate", [])])
def test_a_translator_is_trained_further(run, corpus, tmp_path, vocabularies, case):
    """From its own weights, with its vocabularies and its case, on other pairs; the record has both runs."""
    status, _, _ = train(run, corpus, tmp_path / "run", "--vocabularies", vocabularies, *case)
    assert status == 0
    other = tmp_path / "other"
    other.mkdir()
    for prefix in ("train", "val"):
        (other / f"{prefix}.num").write_text("".join(f"{number} {number}\n" for number in range(40)))
        (other / f"{prefix}.de").write_text("".join(f"ANDERE Wörter {number}\n" for number in range(40)))
    # It has its own case, whatever is asked for here.
    still = ["--lowercase", "--learning_rate", "1e-9", "--config", '{"dropout": 0.0}']
    status, out, _ = train(run, other, tmp_path / "further", "--model", tmp_path / "run", *still)
    assert status == 0 and ("test BLEU, lower-cased" in out) == bool(case)
    assert f"lowercase: {str(bool(case)).lower()}\n" in (tmp_path / "further" / "recipe.yaml").read_text()
    before, after = (AutoModelForSeq2SeqLM.from_pretrained(tmp_path / name) for name in ("run", "further"))
    assert after.generation_config.use_cache
    assert after.config.dropout == 0 and before.config.vocab_size == after.config.vocab_size
    for name, weight in before.state_dict().items():
        torch.testing.assert_close(after.state_dict()[name], weight, atol=1e-6, rtol=0)
    files = ["tokenizer.json", *(["target_tokenizer/tokenizer.json"] if vocabularies == "separate" else [])]
    for file in files:
        assert (tmp_path / "further" / file).read_text() == (tmp_path / "run" / file).read_text()
    record = json.loads((tmp_path / "further" / "run.json").read_text())
    assert record["began_as"]["run"] == json.loads((tmp_path / "run" / "run.json").read_text())
    assert "what the model that it began as had seen" in (tmp_path / "further" / "README.md").read_text()
    report = json.loads((tmp_path / "further" / "metrics.json").read_text())["test"]["beams_1"]
    assert ("bleu_words" in report) == bool(case)


def test_a_translator_is_trained_with_the_attention_that_was_asked_for(run, corpus, tmp_path, attentions):
    for number, which in enumerate(([], ["--model", tmp_path / "eager-0", "--config", "{}"])):
        for attention in ("eager", "sdpa"):
            flags = [*which, "--attn_implementation", attention, "--max_steps", "1"]
            assert train(run, corpus, tmp_path / f"{attention}-{number}", *flags)[0] == 0
    assert attentions == ["eager", "sdpa"] * 2


def test_what_cannot_be_trained_further_is_refused(run, corpus, tmp_path):
    status, _, _ = train(run, corpus, tmp_path / "run", "--max_length", "20")
    assert status == 0
    for arguments, line in (
        (["--model", "nothing"], "nothing: no model can be read here"),
        (["--model", ROOT / "model_cards" / "nsmc-small"], "nsmc-small: no translator"),
        (
            ["--model", tmp_path / "run", "--max_length", "21"],
            "--max_length: 21 is more than the model's 20 positions",
        ),
        (["--model", tmp_path / "run", "--config", '{"d_model": 8}'], "only the rates of dropout"),
        *(
            (["--model", tmp_path / "run", f"--{name}", value], f"--{name}: of no effect with --model")
            for name, value in (
                ("preset", "base"),
                ("vocabularies", "joint"),
                ("tokenizer_model", "bpe"),
                ("vocab_size", "8000"),
                ("target_vocab_size", "8000"),
            )
        ),
    ):
        status, _, err = train(run, corpus, tmp_path / "further", "--config", "{}", *arguments)
        assert status == 2 and line in err and "Traceback" not in err


def test_two_vocabularies_and_a_token_budget(run, corpus, tmp_path):
    status, _, _ = train(
        run,
        corpus,
        tmp_path / "run",
        *("--preset", "pytorch-seq2seq", "--vocabularies", "separate", "--tokenizer_model", "word", "--lowercase"),
        *("--target_vocab_size", "13", "--max_tokens", "50", "--predict_with_generate", "true"),
        *("--load_best_model_at_end", "true", "--metric_for_best_model", "bleu"),
    )
    assert status == 0
    config = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run").config
    source = AutoTokenizer.from_pretrained(tmp_path / "run")
    target = AutoTokenizer.from_pretrained(tmp_path / "run" / "target_tokenizer")
    assert (config.vocab_size, config.decoder_vocab_size) == (len(source), len(target)) == (12, 13)
    assert target.tokenize("Eins zwei.") == ["eins", "zwei", "."]
    assert not config.tie_word_embeddings
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["epochs"][0].keys() >= {"eval_bleu", "eval_bleu_lowercased", "eval_loss"}

    averaged = ["--run", tmp_path / "run", "--last", "1", "--output_dir", tmp_path / "mean"]
    assert run("average_checkpoints.py", *averaged)[0] == 0
    status, out, err = run("translate.py", "--model", tmp_path / "mean", stdin="1 2\n")
    assert (status, out.count("\n")) == (0, 1), err


def test_a_translator_is_drawn_by_the_seed_and_measured_on_validation(run, corpus, tmp_path):
    weights = {}
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        flags = ["--seed", str(seed), "--learning_rate", "0", "--per_device_eval_batch_size", "64"]
        assert train(run, corpus, tmp_path / name, *flags)[0] == 0
        weights[name] = load_file(tmp_path / name / "model.safetensors")["model.encoder.embed_tokens.weight"]
        assert json.loads((tmp_path / name / "run.json").read_text())["seed"] == seed
    assert torch.equal(weights["one"], weights["again"]) and not torch.equal(weights["one"], weights["other"])
    metrics = json.loads((tmp_path / "one" / "metrics.json").read_text())
    assert metrics["epochs"][-1]["eval_loss"] == pytest.approx(metrics["validation"]["loss"], abs=1e-5)
    assert metrics["test"]["loss"] != pytest.approx(metrics["validation"]["loss"], abs=1e-5)


def test_splits_are_those_asked_for(run, corpus, tmp_path):
    prefixes = ["--train_prefix", "val", "--test_prefix", "train", "--max_steps", "1"]
    assert train(run, corpus, tmp_path / "files", *prefixes)[0] == 0
    data = json.loads((tmp_path / "files" / "run.json").read_text())["data"]
    assert [data[split]["rows"] for split in ("train", "validation", "test")] == [12, 12, 100]

    sides = ((corpus / f"train.{side}").read_text().splitlines() for side in ("num", "de"))
    pairs = "".join(f"{source}\t{target}\n" for source, target in zip(*sides, strict=True))
    (tmp_path / "pairs.tsv").write_text(f"num\tde\n{pairs}")
    cut = ["--data", tmp_path / "pairs.tsv", "--source_column", "num", "--target_column", "de", *QUICK, *VOCABULARY]
    cut += ["--validation_fraction", "0.2", "--split_seed", "7", "--output_dir", tmp_path / "table"]
    assert run("train_translation.py", *cut)[0] == 0
    expected = load_parallel_text(tmp_path / "pairs.tsv", "num", "de", validation_fraction=0.2, seed=7)
    data = json.loads((tmp_path / "table" / "run.json").read_text())["data"]
    assert {split: data[split] for split in expected} == describe_splits(expected)


@pytest.mark.parametrize(
    "options",
    [
        ["--tokenizer_model", "word", "--train_sampling_strategy", "group_by_length"],
        ["--lowercase", "--max_tokens", "200"],
    ],
)
def test_the_published_figures_are_those_of_the_folder(run, corpus, tmp_path, options):
    """Asked anew, one sentence at a time, the model in the folder gets the record's BLEU and perplexity."""
    status, _, _ = train(
        run,
        corpus,
        tmp_path / "run",
        *("--vocabularies", "separate", "--learning_rate", "1e-2", "--eval_strategy", "no"),
        *("--max_steps", "60", "--save_steps", "60", "--per_device_train_batch_size", "32", *options),
    )
    assert status == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    for split, prefix in (("validation", "val"), ("test", "test")):
        status, out, _ = run("translate.py", "--model", tmp_path / "run", "--file", corpus / f"{prefix}.num")
        assert status == 0
        sources, references = ((corpus / f"{prefix}.{side}").read_text().splitlines() for side in ("num", "de"))
        report = translation_report(out.splitlines(), references)
        assert report["bleu_lowercased"] > 5
        written, words = ([line.replace(".", " .") for line in lines] for lines in (out.splitlines(), references))
        if "--lowercase" in options:
            words = [line.lower() for line in words]
        metric = BLEU(tokenize="none", force=True)
        report["bleu_words"] = metric.corpus_score(written, [words]).score
        report["bleu_words_signature"] = str(metric.get_signature())
        assert metrics[split]["beams_1"] == report

    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run")
    target_tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run", subfolder="target_tokenizer")
    losses, tokens = 0.0, 0
    for source, reference in zip(sources, references, strict=True):
        batch = tokenizer(source, truncation=True, return_tensors="pt")
        labels = target_tokenizer(reference, truncation=True, return_tensors="pt").input_ids
        with torch.no_grad():
            losses += model(**batch, labels=labels).loss.item() * labels.numel()
        tokens += labels.numel()
    assert metrics["test"]["loss"] == pytest.approx(losses / tokens, rel=1e-4)
    assert metrics["test"]["perplexity"] == pytest.approx(math.exp(losses / tokens), rel=1e-4)


def test_each_translation_needs_its_reference():
    with pytest.raises(ValueError, match="1 translations, 2 references"):
        translation_report(["a"], ["a", "b"])


def test_bleu_is_that_of_wmts_tokens():
    report = translation_report(["a man's shirt, red"], ["a man's shirt: red"])
    assert "tok:13a" in report["bleu_signature"] and "tok:13a" in report["bleu_lowercased_signature"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target_column", "fr"], "train.fr: no such file"),
        (["--preset", "bert"], "no preset 'bert'"),
        (["--config", '{"d_modle": 8}'], "no such field: d_modle"),
        (["--config", "{"], "--config"),
        (["--vocabularies", "three"], "--vocabularies"),
        (["--target_vocab_size", "60"], "--target_vocab_size: needs --vocabularies separate"),
        (["--vocabularies", "separate", "--target_vocab_size", "0"], "vocab_size is 0"),
        (["--config", '{"vocab_size": 10}'], "--config"),
        (["--max_length", "0"], "--max_length: at least 1"),
        (["--average_last", "0"], "--average_last"),
        (["--length_penalty", "1.5"], "--length_penalty"),
        (["--max_sentences", "4"], "--max_sentences"),
        (["--average_last", "2", "--load_best_model_at_end", "true"], "--average_last"),
        (["--average_last", "2", "--save_strategy", "no"], "--average_last"),
        (["--average_last", "3", "--save_total_limit", "2"], "--average_last: 3 checkpoints, but"),
        (["--metric_for_best_model", "bleu"], "--metric_for_best_model: loss; not bleu"),
        (["--metric_for_best_model", "f1", "--predict_with_generate", "true"], "loss, bleu, bleu_lowercased; not f1"),
        (["--max_tokens", "2"], "does not fit in a batch of 2"),
        (["--tokenizer_model", "char"], "char"),
    ],
)
def test_training_refuses_with_one_line(run, corpus, tmp_path, arguments, message):
    status, _, err = train(run, corpus, tmp_path / "run", *arguments)
    assert status == 2
    lines = [line for line in err.splitlines() if line.startswith("train_translation.py: error:")]
    assert len(lines) == 1 and message in lines[0]


def test_an_interrupted_run_goes_on_to_the_same_end(run, corpus, tmp_path):
    settings = ["--max_tokens", "50", "--bf16", "false"]
    assert train(run, corpus, tmp_path / "whole", *settings)[0] == 0
    (tmp_path / "interrupted").mkdir()
    shutil.copytree(tmp_path / "whole" / "checkpoint-2", tmp_path / "interrupted" / "checkpoint-2")
    assert train(run, corpus, tmp_path / "interrupted", *settings, "--resume_from_checkpoint")[0] == 0
    whole, resumed = (load_file(tmp_path / folder / "model.safetensors") for folder in ("whole", "interrupted"))
    torch.testing.assert_close(resumed, whole, rtol=0, atol=0)


def test_checkpoints_are_averaged_by_a_script_too(run, corpus, tmp_path):
    assert train(run, corpus, tmp_path / "run", "--average_last", "2")[0] == 0
    status, out, _ = run(
        "average_checkpoints.py", "--run", tmp_path / "run", "--last", "2", "--output_dir", tmp_path / "mean"
    )
    assert status == 0 and "the mean of checkpoint-2, checkpoint-4" in out
    ours, trainers = (load_file(tmp_path / folder / "model.safetensors") for folder in ("mean", "run"))
    torch.testing.assert_close(ours, trainers)
    AutoTokenizer.from_pretrained(tmp_path / "mean")

    status, _, err = run("average_checkpoints.py", "--run", tmp_path / "run", "--output_dir", tmp_path / "more")
    assert (status, err.count("\n")) == (2, 1) and "2 checkpoints, fewer than 10" in err


def test_the_copy_task_leaves_its_record(run, tmp_path):
    arguments = ["--train_sequences", "64", "--test_sequences", "8", "--max_steps", "2", "--disable_tqdm", "true"]
    status, out, _ = run(
        "train_copy.py", ROOT / "hf_vanilla_transformer/recipes/copy.yaml", "--output_dir", tmp_path, *arguments
    )
    assert status == 0 and "of 8 fresh sequences" in out
    assert json.loads((tmp_path / "metrics.json").read_text())["test"]["sequences"] == 8
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config.vocab_size == 11


def test_the_copy_task_is_drawn_by_the_seed(run, tmp_path, monkeypatch):
    """The weights, the sequences to train on, and others to copy at the end."""
    trained, asked = [], []
    train, generate = Seq2SeqTrainer.train, VanillaTransformerForConditionalGeneration.generate

    def noting_train(trainer, *args, **kwargs):
        trained.append(trainer.train_dataset["input_ids"][:].tolist())
        return train(trainer, *args, **kwargs)

    def noting_generate(model, sequences, *args, **kwargs):
        asked.append(sequences.tolist())
        return generate(model, sequences, *args, **kwargs)

    monkeypatch.setattr(Seq2SeqTrainer, "train", noting_train)
    monkeypatch.setattr(VanillaTransformerForConditionalGeneration, "generate", noting_generate)
    weights = []
    for name, seed in (("one", "1"), ("again", "1"), ("other", "2")):
        arguments = ["--seed", seed, "--config", TINY, "--learning_rate", "0", "--max_steps", "1"]
        arguments += ["--train_sequences", "4", "--test_sequences", "4"]
        arguments += ["--disable_tqdm", "true", "--report_to", "none"]
        assert run("train_copy.py", "--output_dir", tmp_path / name, *arguments)[0] == 0
        weights.append(load_file(tmp_path / name / "model.safetensors")["model.encoder.embed_tokens.weight"].tolist())
    for drawn in (weights, trained, asked):
        assert drawn[0] == drawn[1] != drawn[2]
    assert all(sequence not in trained[0] for sequence in asked[0])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sequence_length", "0"],
        ["--train_sequences", "0"],
        ["--test_sequences", "-1"],
        ["--config", '{"vocab_size": 5}'],
        ["--config", "["],
    ],
)
def test_the_copy_task_refuses_with_one_line(run, tmp_path, arguments):
    status, _, err = run("train_copy.py", "--output_dir", tmp_path, *arguments)
    assert (status, err.count("\n")) == (2, 1) and arguments[0] in err


@pytest.mark.slow
def test_the_copy_task_is_learned(run, tmp_path):
    arguments = [ROOT / "hf_vanilla_transformer/recipes/copy.yaml", "--output_dir", tmp_path, "--disable_tqdm", "true"]
    assert run("train_copy.py", *arguments)[0] == 0
    assert json.loads((tmp_path / "metrics.json").read_text())["test"]["copied"] >= 0.99


# --- Translating ---


TEXTS = ["1 2 3", "", "4 0 1 2 3 4 0 1", "  ", "2", "3 3 3 3"]


@pytest.fixture(scope="module", params=["one vocabulary", "two vocabularies"])
def translator(request, corpus, tmp_path_factory):
    """A translator's folder, with random weights that end each translation at another length."""
    folder = tmp_path_factory.mktemp("translator")
    sources, targets = ((corpus / f"train.{ending}").read_text().splitlines() for ending in ("num", "de"))
    options = {"vocab_size": 60, "add_eos": True, "max_length": 10}
    torch.manual_seed(0)
    if request.param == "one vocabulary":
        tokenizer = train_tokenizer(sources + targets, **options)
        config = tiny_config(vocab_size=len(tokenizer), max_position_embeddings=10)
    else:
        tokenizer = train_tokenizer(sources, model="word", **options)
        target_tokenizer = train_tokenizer(targets, **options)
        target_tokenizer.save_pretrained(folder / "target_tokenizer")
        config = tiny_config(
            vocab_size=len(tokenizer), decoder_vocab_size=len(target_tokenizer), max_position_embeddings=10
        )
    model = VanillaTransformerForConditionalGeneration(config)
    model.lm_head.weight.data *= 4
    model.lm_head.bias.data[config.eos_token_id] += 1
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def expected_translations(folder, texts, num_beams):
    """Each text on its own, by transformers alone."""
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    target = AutoTokenizer.from_pretrained(
        folder, subfolder="target_tokenizer" if model.config.decoder_vocab_size else ""
    )
    limit = {"max_length": model.config.max_target_positions}
    for text in texts:
        if not text.strip():
            yield ""
            continue
        batch = tokenizer([text], truncation=True, return_tensors="pt")
        (ids,) = model.generate(**batch, num_beams=num_beams, do_sample=False, **limit)
        yield target.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_translations_come_in_the_order_of_the_texts(run, translator, tmp_path, batch_size, num_beams):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    status, out, _ = run(
        "translate.py",
        *("--model", translator, "--file", tmp_path / "texts.txt"),
        *("--batch_size", batch_size, "--num_beams", num_beams),
    )
    assert status == 0
    translations = out.split("\n")[:-1]
    assert translations == list(expected_translations(translator, TEXTS, num_beams))
    assert len(set(translations)) > 2
    assert translations[1] == translations[3] == ""


def test_texts_come_from_standard_input_too(run, translator):
    status, out, _ = run("translate.py", "--model", translator, stdin="1 2\n3\n")
    assert status == 0 and out.split("\n")[:-1] == list(expected_translations(translator, ["1 2", "3"], 1))
    assert run("translate.py", "--model", translator, stdin="")[:2] == (0, "")
    assert run("translate.py", "--model", translator, stdin=" \n\n")[:2] == (0, "\n\n")
    assert run("translate.py", "--model", translator, stdin="\u200b\n\x01\x02\n")[:2] == (0, "\n\n")


def test_a_text_at_the_limit_is_read_and_beyond_it_cut_or_refused(run, translator, caplog):
    tokenizer = AutoTokenizer.from_pretrained(translator)
    fits = next(text for n in range(20) if len(tokenizer(text := " ".join("1" * n))["input_ids"]) == 10)
    status, out, _ = run("translate.py", "--model", translator, "--truncation", "false", stdin=f"{fits}\n")
    assert (status, caplog.text) == (0, "") and out.split("\n")[:-1] == list(
        expected_translations(translator, [fits], 1)
    )

    long = f"1\n{fits} 2 3\n"
    status, out, _ = run("translate.py", "--model", translator, stdin=long)
    assert status == 0 and out.split("\n")[1:-1] == list(expected_translations(translator, [f"{fits} 2 3"], 1))
    (record,) = caplog.records
    assert re.search(r"text 2 has 1\d tokens, the model reads 10; cut: 1 of 2 texts", record.getMessage())
    status, out, err = run("translate.py", "--model", translator, "--truncation", "false", stdin=long)
    assert (status, out) == (2, "") and re.search(r"error: text 2 has 1\d tokens, the model reads 10$", err.strip())


def test_translations_can_be_kept_short(run, translator):
    status, out, _ = run("translate.py", "--model", translator, "--max_new_tokens", "1", stdin="4 0 1 2\n")
    assert status == 0 and len(out.split()) <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "{}/nowhere"], "nowhere"),
        (["--model", "{}/classifier"], "not a translator but a VanillaTransformerForSequenceClassification"),
        (["--model", "{}/bare"], "no tokenizer"),
        (["--model", "{}/bare", "--file", "{}/nowhere.txt"], "nowhere.txt"),
        (["--model", "{}/bare", "--num_beams", "0"], "--num_beams"),
        (["--model", "{}/bare", "--batch_size", "-1"], "--batch_size"),
        ([], "--model"),
    ],
)
def test_translating_refuses_with_one_line(run, tmp_path, arguments, message):
    VanillaTransformerForSequenceClassification(tiny_config()).save_pretrained(tmp_path / "classifier")
    VanillaTransformerForConditionalGeneration(tiny_config()).save_pretrained(tmp_path / "bare")
    status, out, err = run("translate.py", *(argument.replace("{}", str(tmp_path)) for argument in arguments))
    assert (status, out) == (2, "")
    assert message in err.splitlines()[-1] and "Traceback" not in err


# --- The benchmark ---


@pytest.mark.parametrize("preset", ["pytorch-seq2seq", "base"])
def test_the_benchmark_compares_what_is_the_same(run, corpus, tmp_path, preset):
    """All three ways give the same translations, so that only their time differs."""
    status, _, _ = train(run, corpus, tmp_path / "run", "--preset", preset, "--vocabularies", "separate")
    assert status == 0
    status, out, _ = run(
        "benchmark_translation.py",
        *("--model", tmp_path / "run", "--data", corpus, "--source_column", "num", "--target_column", "de"),
        *("--rounds", "1", "--batch_size", "4", "--max_new_tokens", "8", "--file", tmp_path / "times.json"),
    )
    assert status == 0 and out.count("tokens/s") == 3
    report = json.loads((tmp_path / "times.json").read_text())
    assert report["sentences"] == 13
    assert set(report["same_translations"].values()) == {13}


def test_the_benchmark_refuses_with_one_line(run, corpus, tmp_path):
    VanillaTransformerForSequenceClassification(tiny_config()).save_pretrained(tmp_path / "classifier")
    columns = ["--source_column", "en", "--target_column", "de"]
    (tmp_path / "there.json").touch()
    for arguments, message in (
        (["--rounds", "0"], "--rounds: at least 1"),
        (["--file", tmp_path / "there.json"], "there.json is there, and nothing is overwritten"),
        (["--file", tmp_path / "nowhere" / "times.json"], "--file: no folder"),
        ([], "not a translator"),
    ):
        status, _, err = run(
            "benchmark_translation.py", "--model", tmp_path / "classifier", "--data", corpus, *columns, *arguments
        )
        assert status == 2 and message in err and "Traceback" not in err


def test_the_benchmark_refuses_what_marian_is_not(run, corpus, tmp_path):
    assert train(run, corpus, tmp_path / "run", "--preset", "annotated-transformer")[0] == 0
    status, _, err = run(
        "benchmark_translation.py",
        *("--model", tmp_path / "run", "--data", corpus, "--source_column", "num", "--target_column", "de"),
    )
    assert status == 2 and "Marian has post-norm models alone" in err
