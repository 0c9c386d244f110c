"""Denoising: what the corruption hides and keeps, in batches and through Trainer."""

import numpy as np
import pytest
import torch
from datasets import Dataset
from shared import tiny_config
from transformers import Seq2SeqTrainingArguments

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.training.denoising import SpanInfilling
from hf_vanilla_transformer.training.trainer import TokenBudgetTrainer


PAD, BOS, EOS, MASK = 0, 2, 3, 6


def infilling(text_tokenizer, epoch=0, **settings) -> SpanInfilling:
    model = VanillaTransformerForConditionalGeneration(tiny_config())
    collator = SpanInfilling(text_tokenizer, model, **settings)
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


def find_spans(inputs: list[int], ids: list[int]) -> list[tuple[int, int]]:
    """Between visible tokens, of which none is like another: how many masks there are, and tokens that they hide."""
    found, start, masks = [], 0, 0
    for token in [*inputs, None]:
        if token == MASK:
            masks += 1
        else:
            end = len(ids) if token is None else ids.index(token, start)
            assert masks or end == start
            found += [(masks, end - start)] if masks else []
            start, masks = end + 1, 0
    return found


@pytest.mark.parametrize(("mask_rate", "mean_span_length"), [(0.01, 1.0), (0.3, 3.0), (0.5, 10.0), (0.9, 3.0)])
def test_masks_stand_for_what_is_missing(text_tokenizer, mask_rate, mean_span_length):
    settings = {"mask_rate": mask_rate, "mean_span_length": mean_span_length, "seed": 5}
    features = [{"input_ids": list(range(7, 8 + row % 39)), "row": row} for row in range(300)]
    inputs, labels = unpadded(infilling(text_tokenizer, **settings)(features))
    assert labels == [[*feature["input_ids"], EOS] for feature in features]
    for feature, corrupted in zip(features, inputs, strict=True):
        ids = feature["input_ids"]
        masks, hidden = map(sum, zip(*find_spans(corrupted, ids), strict=True))
        assert 1 <= hidden <= max(1, np.floor(len(ids) * mask_rate) + 1)
        assert masks <= min(hidden, max(1, len(ids) - hidden))


def test_rates_and_lengths_are_as_configured(text_tokenizer):
    features = [{"input_ids": list(range(7, 97 + row % 30)), "row": row} for row in range(4000)]
    inputs, _ = unpadded(infilling(text_tokenizer, mask_rate=0.1, mean_span_length=3.0)(features))
    spans = [find_spans(ids, feature["input_ids"]) for ids, feature in zip(inputs, features, strict=True)]
    tokens = sum(len(feature["input_ids"]) for feature in features)
    assert sum(hidden for text in spans for _, hidden in text) / tokens == pytest.approx(0.1, abs=0.001)

    # The last span is cut to fit: compare with the same drawn one by one. Few spans lie side by side.
    generator = np.random.default_rng(0)
    expected = []
    for text in spans:
        left = sum(hidden for _, hidden in text)
        while left > 0:
            expected.append(min(generator.poisson(3.0), left))
            left -= expected[-1]
    assert sum(masks for text in spans for masks, _ in text) == pytest.approx(len(expected), rel=0.02)
    found = np.bincount([hidden for text in spans for masks, hidden in text if masks == 1], minlength=9)[:9]
    expected = np.bincount(expected, minlength=9)[:9]
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), rtol=0, atol=0.01)
    assert found[0] > 0


def test_spans_lie_anywhere_alike(text_tokenizer):
    ids = list(range(7, 27))
    inputs, _ = unpadded(infilling(text_tokenizer)([{"input_ids": ids, "row": row} for row in range(5_000)]))
    counts = 1 - np.mean([np.isin(ids, corrupted) for corrupted in inputs], axis=0)
    # Tokens at the ends lie in fewer spans than those in the middle, the same on both sides.
    np.testing.assert_allclose(counts, counts[::-1], atol=0.03)
    assert counts.mean() == pytest.approx(0.3, abs=2e-3)
    assert counts.min() > 0.13 and counts.max() < 0.36
    spans = [find_spans(corrupted, ids) for corrupted in inputs]
    lengths = [np.mean([text[place][1] for text in spans if text[place][0] == 1]) for place in (0, -1)]
    assert lengths[0] == pytest.approx(lengths[1], abs=0.1)  # the span that is cut to fit is at no fixed place


def test_a_batch_is_what_the_model_reads(text_tokenizer):
    features = [{"input_ids": [9, 10, 11, 12, 13, 14], "row": 3}, {"input_ids": [15], "row": 4}]
    batch = infilling(text_tokenizer)(features)
    assert batch.keys() == {"input_ids", "attention_mask", "labels", "decoder_input_ids"}
    assert all(value.dtype == torch.int64 for value in batch.values())
    assert batch["labels"].tolist() == [[9, 10, 11, 12, 13, 14, EOS], [15, EOS] + [-100] * 5]
    assert batch["decoder_input_ids"].tolist() == [[BOS, 9, 10, 11, 12, 13, 14], [BOS, 15, EOS] + [PAD] * 4]
    assert batch["attention_mask"][1].tolist() == [1] + [0] * (batch["input_ids"].shape[1] - 1)
    assert batch["input_ids"][1].tolist() == [MASK] + [PAD] * (batch["input_ids"].shape[1] - 1)
    assert (batch["input_ids"][0] != PAD).equal(batch["attention_mask"][0].bool())


def test_the_corruption_depends_on_seed_epoch_and_row_alone(text_tokenizer):
    features = rows(200, 5)

    def inputs(features, **settings):
        return unpadded(infilling(text_tokenizer, **settings)(features))[0]

    expected = inputs(features, seed=1, epoch=2)
    assert inputs(features, seed=1, epoch=2) == expected
    assert inputs(features, seed=2, epoch=2) != expected
    # Neither the batch nor what came before it.
    collator = infilling(text_tokenizer, seed=1, epoch=2)
    collator(features[50:90])
    assert unpadded(collator(features[::-1]))[0] == expected[::-1]
    assert [unpadded(collator([feature]))[0][0] for feature in features[:20]] == expected[:20]
    # Other rows and other epochs are corrupted independently: about as many are alike by chance.
    shifted = [{**feature, "row": feature["row"] + 1} for feature in features]
    others = [inputs(features, seed=1, epoch=epoch) for epoch in (0, 1, 3)] + [inputs(shifted, seed=1, epoch=2)]
    for other in others:
        assert np.mean([a == b for a, b in zip(expected, other, strict=True)]) < 0.2


def test_validation_is_corrupted_once(text_tokenizer, tmp_path):
    features = rows(50)
    Dataset.from_list(features).save_to_disk(tmp_path)
    on_disk = Dataset.load_from_disk(tmp_path)  # what comes of it is cached beside it
    collator = infilling(text_tokenizer, epoch=4)
    fixed = collator.corrupted(on_disk)
    batch = collator(fixed.to_list())
    expected = infilling(text_tokenizer, epoch=0)(features)
    assert all(torch.equal(batch[name], expected[name]) for name in expected)
    for settings in ({"mask_rate": 0.5}, {"seed": 1}):
        other = infilling(text_tokenizer, **settings).corrupted(on_disk)
        assert other.to_list() != fixed.to_list(), settings


@pytest.mark.parametrize(("name", "value"), [("mask_rate", 1000.0), ("mean_span_length", float("nan"))])
def test_impossible_corruptions_are_refused(text_tokenizer, name, value):
    with pytest.raises(ValueError, match=name):
        infilling(text_tokenizer, **{name: value})


def train(folder, text_tokenizer, resume=None, max_tokens=None, **overrides):
    """A run that notes its batches; of each the columns that the collator made."""
    torch.manual_seed(0)
    settings = {
        **{"use_cpu": True, "report_to": "none", "disable_tqdm": True, "remove_unused_columns": False, "seed": 3},
        **{"per_device_train_batch_size": 8, "num_train_epochs": 3, "save_strategy": "steps", "save_steps": 5},
        **overrides,
    }
    data = rows(60, 1, 15)
    for row in data:
        row |= {"input_ids": [token % 22 + 7 for token in row["input_ids"]], "length": len(row["input_ids"]) + 1}
    model = VanillaTransformerForConditionalGeneration(tiny_config())
    collator = SpanInfilling(text_tokenizer, model)
    batches = []

    class NotingTrainer(TokenBudgetTrainer):
        def training_step(self, model, inputs, *args, **kwargs):
            batches.append({name: value.clone() for name, value in inputs.items()})
            return super().training_step(model, inputs, *args, **kwargs)

    trainer = NotingTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(str(folder), **settings),
        data_collator=collator,
        train_dataset=Dataset.from_list(data),
        callbacks=[collator],
        max_tokens=max_tokens,
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer, batches


@pytest.mark.slow
def test_a_resumed_run_sees_the_same_batches_and_ends_the_same(tmp_path, text_tokenizer):
    settings = {"max_tokens": 64, "gradient_accumulation_steps": 2, "dataloader_num_workers": 1}
    whole, batches = train(tmp_path / "whole", text_tokenizer, **settings)
    steps = whole.state.max_steps // 3
    checkpoints = sorted(int(path.name.split("-")[1]) for path in (tmp_path / "whole").glob("checkpoint-*"))
    middle = next(step for step in checkpoints if step > steps and step % steps)  # in the second epoch
    resumed, later = train(
        tmp_path / "resumed", text_tokenizer, str(tmp_path / "whole" / f"checkpoint-{middle}"), **settings
    )
    assert 0 < len(later) < len(batches)
    for batch, expected in zip(later, batches[-len(later) :], strict=True):
        assert batch.keys() == expected.keys()
        assert all(torch.equal(batch[name], expected[name]) for name in batch)
    for (name, expected), value in zip(whole.model.named_parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(value, expected), name


def test_trainer_tells_the_collator_its_epoch(tmp_path, text_tokenizer):
    _, batches = train(tmp_path, text_tokenizer, train_sampling_strategy="sequential", per_device_train_batch_size=60)
    assert len(batches) == 3
    for epoch, batch in enumerate(batches):
        inputs, labels = unpadded(batch)
        texts = [{"input_ids": ids[:-1], "row": row} for row, ids in enumerate(labels)]
        assert inputs == unpadded(infilling(text_tokenizer, epoch)(texts))[0]
