# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Compare an export's answers with torch's, on random texts."""

from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from ..data.errors import DataError
from ..inference.engine import Engine, log_probabilities
from ..inference.torch_engine import TorchEngine


# Greatest difference of a number in float32; of a number above 1, relative to it.
TOLERANCE = 1e-5
# Greatest mean difference in int8, relative to the numbers' standard deviation: beyond it, rounding and not the text
# decides many answers.
INT8_TOLERANCE = 0.25
# Two tokens whose log-probabilities differ by less may be taken for each other.
TIE = 2e-5
# Random texts have many lengths up to this one, each twice, and one text has the model's greatest length.
MAX_TOKENS = 256
# The longest text that is translated, and the longest translation.
MAX_GENERATED = 64
BATCH = 8
DISAGREEMENT = "the export does not agree with torch: "


def compare(
    model: TorchEngine, export: Engine, tokenizer: PreTrainedTokenizerBase, folder: Path, *, is_quantized: bool
) -> dict[str, Any]:
    """Compare an export with its model on random texts.

    Returns:
        The number of texts, the length of the longest, how far logits or log-probabilities differ, and how many labels
        or greedy translations are the same.

    Raises:
        DataError: the tokenizers give other ids, the numbers differ too much, or greedy translations differ in
            float32.
    """
    config, engines = model.model.config, (model, export)
    common = min(config.max_position_embeddings, MAX_TOKENS)
    lengths = sorted([*range(1, min(common, 8)), *range(8, common, 1 + common // 16), common] * 2)
    lengths.append(config.max_position_embeddings)
    # CTranslate2 takes an end token alone for an empty text.
    special = {model.facts.pad_token_id, model.facts.start_token_id, *model.facts.end_token_ids}
    texts = random_rows(config.vocab_size, special, lengths)
    compare_tokenizers(tokenizer, folder, texts)
    if model.model.can_generate():
        target_lengths = [min(length, config.max_target_positions) - 1 for length in lengths]  # without the end token
        targets = random_rows(config.target_vocab_size, special, target_lengths)
        expected, actual = (log_probabilities(one, texts, targets) for one in engines)
        report = differences(expected, actual, is_quantized)
        name, same = "same_translation", same_translations(model, export, texts, is_quantized)
    else:
        texts = [[], *texts]
        expected, actual = (one.logits(texts, BATCH) for one in engines)
        report = differences(expected, actual, is_quantized)
        name, same = "same_label", expected.argmax(axis=-1) == actual.argmax(axis=-1)
    return {"texts": len(texts), "longest": max(lengths), **report, name: f"{sum(same):,} of {len(same):,}"}


def compare_tokenizers(tokenizer: PreTrainedTokenizerBase, folder: Path, rows: list[list[int]]) -> None:
    """Compare the model's tokenizer with the exported file, read by `tokenizers` alone."""
    longest = max(map(len, rows))
    texts = tokenizer.batch_decode([row for row in rows if max(row) < len(tokenizer)])
    texts.append(" ".join(texts))  # longer than the model
    alone = Tokenizer.from_file(str(folder / "tokenizer.json"))
    alone.enable_truncation(longest)
    expected = tokenizer(texts, truncation=True, max_length=longest)["input_ids"]
    if expected != [alone.encode(text).ids for text in texts]:
        raise DataError(f"{DISAGREEMENT}its tokenizer gives other ids than the model's")


def differences(expected: np.ndarray, actual: np.ndarray, is_quantized: bool) -> dict[str, float]:
    """Return the greatest and the mean difference; a `DataError` if they are beyond the tolerance or not finite."""
    difference = np.abs(expected - actual)
    if is_quantized:
        agrees = difference.mean() <= INT8_TOLERANCE * expected.std(axis=0).mean()
    else:
        agrees = (difference <= TOLERANCE * np.maximum(1, np.abs(expected))).all()
    if not agrees:
        raise DataError(f"{DISAGREEMENT}numbers differ by up to {difference.max():.2g}")
    return {"greatest_difference": float(difference.max()), "mean_difference": float(difference.mean())}


def same_translations(model: TorchEngine, export: Engine, rows: list[list[int]], is_quantized: bool) -> list[bool]:
    """Return for each short text if its two greedy translations are the same."""
    rows = [row for row in rows if len(row) <= MAX_GENERATED]
    limit = min(MAX_GENERATED, model.facts.max_new_tokens)
    ours, theirs = ([best for best, *_ in one.translate(rows, BATCH, max_new_tokens=limit)] for one in (model, export))
    for source, expected, actual in zip(rows, ours, theirs, strict=True):
        if not is_quantized and expected != actual and not is_tie(model, source, expected, actual):
            raise DataError(f"{DISAGREEMENT}translations differ, {actual} instead of {expected}")
    return [expected == actual for expected, actual in zip(ours, theirs, strict=True)]


def is_tie(model: TorchEngine, source: list[int], expected: list[int], actual: list[int]) -> bool:
    """Return if two greedy translations first differ at two tokens of equal probability."""
    shorter = min(len(expected), len(actual))
    place = next((n for n in range(shorter) if expected[n] != actual[n]), shorter)
    one, other = model.log_probabilities([source] * 2, [expected[: place + 1], actual[: place + 1]])
    return abs(float(one[place] - other[place])) < TIE


def random_rows(vocab_size: int, excluded: set[int | None], lengths: list[int]) -> list[list[int]]:
    """Make texts of random ids of these lengths."""
    random = np.random.default_rng(0)
    ids = [token for token in range(vocab_size) if token not in excluded]
    return [random.choice(ids, length).tolist() for length in lengths]
