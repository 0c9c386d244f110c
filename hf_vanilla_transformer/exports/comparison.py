# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Compare an export's answers with torch's, on random texts."""

from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..errors import DataError
from ..inference.engine import Engine, ModelFacts
from ..inference.torch_engine import TorchEngine
from ..tasks import CLASSIFICATION, task_of


# Greatest difference of an export in float32: absolute, and relative to torch's value.
TOLERANCE = 1e-5
# The least share of texts that an export in int8 gives the model's label.
MIN_QUANTIZED_AGREEMENT = 0.95
# The greatest mean difference of log-probabilities of a translator in int8: a factor of 1.6 in a token's probability.
MAX_QUANTIZED_DIFFERENCE = 0.5
# Two tokens whose log-probabilities differ by less may be taken for each other.
TIE = 2e-5
# Random texts have many lengths up to this one, and one text has the model's greatest length.
MAX_TOKENS = 256
# The longest text that is translated, and the longest translation.
MAX_GENERATED = 64
BATCH = 8


def compare(
    model: TorchEngine, export: Engine, tokenizer: PreTrainedTokenizerBase, folder: Path, *, is_quantized: bool
) -> dict[str, Any]:
    """Compare an export with its model.

    Returns:
        `random_texts`: their number and greatest length, and how far the answers differ.

    Raises:
        DataError: in float32, numbers or greedy translations differ by more than rounding; in int8, labels or the mean
            of log-probabilities are too far away; or the tokenizers give other ids.
    """
    rows = random_texts(model.model.config)
    if task_of(model.facts.model_class) is CLASSIFICATION:
        compare_answers, rows = compare_logits, [[], *rows]
    else:
        compare_answers = compare_translations
    compare_tokenizers(tokenizer, folder, rows)
    report = compare_answers(model, export, rows, is_quantized)
    return {"random_texts": {"texts": len(rows), "longest": max(map(len, rows)), **report}}


def compare_tokenizers(tokenizer: PreTrainedTokenizerBase, folder: Path, rows: list[list[int]]) -> None:
    """Compare the ids of the model's tokenizer with those that `tokenizers` alone finds by the exported file."""
    longest = max(map(len, rows))
    texts = tokenizer.batch_decode([row for row in rows if row and max(row) < len(tokenizer)])
    texts.append(" ".join(texts))  # longer than the model
    alone = Tokenizer.from_file(str(folder / "tokenizer.json"))
    alone.enable_truncation(longest)
    expected = tokenizer(texts, truncation=True, max_length=longest)["input_ids"]
    if expected != [alone.encode(text).ids for text in texts]:
        raise DataError("the export does not agree with torch: its tokenizer gives other ids than the model's")


def compare_logits(model: TorchEngine, export: Engine, rows: list[list[int]], is_quantized: bool) -> dict[str, Any]:
    expected, found = (
        np.concatenate([one.logits(batch, BATCH) for batch in in_batches(rows)]) for one in (model, export)
    )
    report: dict[str, Any] = differences("logits", expected, found, is_quantized)
    is_same = expected.argmax(axis=-1) == found.argmax(axis=-1)
    if is_quantized and is_same.mean() < MIN_QUANTIZED_AGREEMENT:
        raise DataError(f"the export does not agree with torch: the same label for {is_same.mean():.0%} of the texts")
    return {**report, "same_label": f"{is_same.sum():,} of {len(rows):,}"}


def compare_translations(
    model: TorchEngine, export: Engine, rows: list[list[int]], is_quantized: bool
) -> dict[str, Any]:
    """Compare the log-probabilities of random translations, and the greedy translations."""
    config = model.model.config
    batches = [*zip(in_batches(rows), in_batches(random_translations(config, len(rows))), strict=True)]
    expected, found = (
        np.concatenate([row for batch in batches for row in one.log_probabilities(*batch)]) for one in (model, export)
    )
    report: dict[str, Any] = differences("log-probabilities", expected, found, is_quantized)
    if is_quantized and (mean := report["mean_difference"]) > MAX_QUANTIZED_DIFFERENCE:
        raise DataError(f"the export does not agree with torch: log-probabilities differ by {mean:.2g} on average")
    rows = [row for row in rows if len(row) <= MAX_GENERATED]
    limit = min(MAX_GENERATED, config.max_target_positions - 1)
    ours, theirs = ([best for best, *_ in one.translate(rows, BATCH, max_new_tokens=limit)] for one in (model, export))
    differ = [each for each in zip(rows, ours, theirs, strict=True) if each[1] != each[2]]
    for source, one, other in [] if is_quantized else differ:
        if not is_tie(model, source, one, other):
            raise DataError(f"the export does not agree with torch: translations differ, {other} instead of {one}")
    return {**report, "same_translation": f"{len(rows) - len(differ):,} of {len(rows):,}"}


def differences(name: str, expected: np.ndarray, found: np.ndarray, is_quantized: bool) -> dict[str, float]:
    """The greatest and the mean difference; a DataError if one is not a number, or in float32 beyond the tolerance."""
    difference = np.abs(expected - found)
    near = np.inf if is_quantized else TOLERANCE * np.maximum(1, np.abs(expected))
    if not np.isfinite(difference).all() or (difference > near).any():
        raise DataError(f"the export does not agree with torch: {name} differ by up to {difference.max():.2g}")
    return {"greatest_difference": float(difference.max()), "mean_difference": float(difference.mean())}


def is_tie(model: TorchEngine, source: list[int], expected: list[int], found: list[int]) -> bool:
    """Whether two greedy translations first differ where the two tokens are equally probable."""
    shorter = min(len(expected), len(found))
    part = next((n for n in range(shorter) if expected[n] != found[n]), shorter)
    one, other = model.log_probabilities([source] * 2, [expected[: part + 1], found[: part + 1]])
    return abs(float(one[part] - other[part])) < TIE


def random_texts(config: VanillaTransformerConfig) -> list[list[int]]:
    """Make texts of random ids: two of each of many lengths, and last one of the greatest length."""
    longest = config.max_position_embeddings
    # CTranslate2 takes an end token alone for an empty text.
    excluded = {config.pad_token_id, *ModelFacts.of(config).end_token_ids}
    rows = _random_rows(config.vocab_size, excluded, 1, min(longest, MAX_TOKENS))
    return [*rows, _random_rows(config.vocab_size, excluded, longest, longest)[0]]


def random_translations(config: VanillaTransformerConfig, number: int) -> list[list[int]]:
    """Make translations of random ids and many lengths, from none to the greatest number of tokens."""
    longest = min(config.max_target_positions - 1, MAX_TOKENS)
    excluded = {config.pad_token_id, config.decoder_start_token_id, *ModelFacts.of(config).end_token_ids}
    rows = _random_rows(config.target_vocab_size, excluded, 0, longest)
    return [rows[place % len(rows)] for place in range(number)]


def _random_rows(vocab_size: int, excluded: set[int | None], shortest: int, longest: int) -> list[list[int]]:
    random = np.random.default_rng(0)
    ids = [token for token in range(vocab_size) if token not in excluded]
    lengths = {longest, *range(shortest, min(longest, 8)), *range(max(shortest, 8), longest, 1 + longest // 16)}
    return [random.choice(ids, length).tolist() for length in sorted(lengths) for _ in range(2)]


def in_batches(rows: list[list[int]]) -> list[list[list[int]]]:
    """Batches of mixed lengths, and the last, long row alone."""
    return [*(rows[:-1][begin : begin + BATCH] for begin in range(0, len(rows) - 1, BATCH)), rows[-1:]]
