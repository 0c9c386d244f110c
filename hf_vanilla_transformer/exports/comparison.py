# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Compare an export's answers with torch's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..errors import DataError
from ..inference.engine import Engine, ModelFacts
from ..inference.folder import load_tokenizer
from ..inference.torch_engine import TorchEngine
from ..tasks import CLASSIFICATION, task_of


# Greatest difference of an export in float32: absolute, and relative to torch's value.
TOLERANCE = 1e-5
# The least share of texts that an export in int8 gives the model's label.
LEAST_AGREEMENT = 0.95
# The greatest mean difference of log-probabilities of a translator in int8: a factor of 1.6 in a token's probability.
MAX_QUANTIZED_DIFFERENCE = 0.5
# Two tokens whose log-probabilities differ by less may be taken for each other.
TIE = 2e-5
# Random texts have many lengths up to this one; of longer texts there is one, as long as the model takes.
MAX_TOKENS = 256
# Longest text that is translated, and longest translation of it.
MAX_GENERATED = 64
BATCH = 8


def compare(
    model: TorchEngine,
    export: Engine,
    *,
    is_quantized: bool,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    texts: list[str],
) -> dict[str, Any]:
    """Compare an export with its model; a DataError names the difference where they do not agree.

    In float32, numbers must be equal up to rounding; in int8, labels, or the mean of log-probabilities, must be near.

    Returns:
        `same_ids`, of how many texts the tokenizers were compared; `random_texts`, what was compared on random ids of
        many lengths; and where there are texts, `validation_texts`, the same on those.
    """
    is_classifier = task_of(model.facts.model_class) is CLASSIFICATION
    compare_answers = compare_logits if is_classifier else compare_translations
    config = model.model.config
    limit = {"truncation": True, "max_length": min(tokenizer.model_max_length, config.max_position_embeddings)}
    report = {
        "same_ids": compare_tokenizers(tokenizer, folder, config, limit),
        "random_texts": compare_answers(model, export, random_texts(config), is_quantized),
    }
    if texts:
        # A text without a token of its own is none to translate.
        rows = tokenizer(texts, **limit)["input_ids"]
        rows = [row for row in rows if len(row) > tokenizer.num_special_tokens_to_add()]
        report["validation_texts"] = compare_answers(model, export, rows, is_quantized)
    return report


def compare_tokenizers(
    tokenizer: PreTrainedTokenizerBase, folder: Path, config: VanillaTransformerConfig, limit: dict[str, Any]
) -> str:
    """Compare the ids of the model's tokenizer with those of the exported one, also as `tokenizers` alone reads it.

    The last text is longer than the model. Returns how many texts have the same ids.
    """
    texts = tokenizer.batch_decode([row for row in random_texts(config) if max(row) < len(tokenizer)])
    texts.append(" ".join(texts))
    alone = Tokenizer.from_file(str(folder / "tokenizer.json"))
    alone.enable_truncation(limit["max_length"])
    expected = tokenizer(texts, **limit)["input_ids"]
    found = [load_tokenizer(str(folder))(texts, **limit)["input_ids"], [alone.encode(text).ids for text in texts]]
    if found != [expected, expected]:
        raise DataError("the export does not agree with torch: its tokenizer gives other ids than the model's")
    return count_equal(expected, found[1])


def model_ends(config: VanillaTransformerConfig) -> list[int]:
    return ModelFacts.of(config).end_token_ids


def random_texts(config: VanillaTransformerConfig) -> list[list[int]]:
    """Texts of random ids: two of each of many lengths, from one token on, and one of the greatest length."""
    longest = config.max_position_embeddings
    outside = {config.pad_token_id, *model_ends(config)}  # CTranslate2 takes an end token alone for an empty text
    rows = _random_rows(config.vocab_size, outside, 1, min(longest, MAX_TOKENS))
    return [*rows, _random_rows(config.vocab_size, outside, longest, longest)[0]]


def random_translations(config: VanillaTransformerConfig, number: int) -> list[list[int]]:
    """Translations of random ids and many lengths, from none to the greatest number of tokens."""
    longest = min(config.max_target_positions - 1, MAX_TOKENS)
    outside = {config.pad_token_id, config.decoder_start_token_id, *model_ends(config)}
    rows = _random_rows(config.target_vocab_size, outside, 0, longest)
    return [rows[place % len(rows)] for place in range(number)]


def _random_rows(vocab_size: int, outside: set[int | None], shortest: int, longest: int) -> list[list[int]]:
    random = np.random.default_rng(len(outside))
    ids = [token for token in range(vocab_size) if token not in outside]
    lengths = {longest, *range(shortest, min(longest, 8)), *range(max(shortest, 8), longest, 1 + longest // 16)}
    return [random.choice(ids, length).tolist() for length in sorted(lengths) for _ in range(2)]


def compare_logits(model: TorchEngine, export: Engine, rows: list[list[int]], is_quantized: bool) -> dict[str, Any]:
    rows = [[], *rows]
    expected, found = (in_batches(lambda part, one=one: [*one.logits(part, BATCH)], rows) for one in (model, export))
    labels = [[row.argmax() for row in scores] for scores in (expected, found)]
    report = {
        "texts": len(rows),
        "longest": max(map(len, rows)),
        **differences("logits", expected, found, is_quantized),
        "same_label": count_equal(*labels),
    }
    agreement = np.mean(np.array(labels[0]) == np.array(labels[1]))
    if is_quantized and agreement < LEAST_AGREEMENT:
        raise DataError(f"the export does not agree with torch: the same label for {agreement:.0%} of the texts")
    return report


def compare_translations(
    model: TorchEngine, export: Engine, rows: list[list[int]], is_quantized: bool
) -> dict[str, Any]:
    """Compare the log-probabilities of random translations, and the greedy translations."""
    config = model.model.config
    targets = random_translations(config, len(rows))
    expected, found = (in_batches(one.log_probabilities, rows, targets) for one in (model, export))
    report: dict[str, Any] = {"texts": len(rows), "longest": max(map(len, rows))}
    report |= differences("log-probabilities", expected, found, is_quantized)
    if (mean := report["mean_difference"]) > MAX_QUANTIZED_DIFFERENCE:
        raise DataError(f"the export does not agree with torch: log-probabilities differ by {mean:.2g} on average")
    rows = [row for row in rows if len(row) <= MAX_GENERATED]
    limit = None if config.max_target_positions <= MAX_GENERATED else MAX_GENERATED
    written = [[first for first, *_ in one.translate(rows, BATCH, max_new_tokens=limit)] for one in (model, export)]
    for source, ours, theirs in zip(rows, *written, strict=True):
        if not is_quantized and ours != theirs and not is_tie(model, source, ours, theirs):
            raise DataError(
                f"the export does not agree with torch: translations differ, the ids {theirs} instead of {ours}"
            )
    return {**report, "same_translation": count_equal(*written)}


def in_batches(score: Callable[..., list[np.ndarray]], *columns: list[list[int]]) -> list[np.ndarray]:
    """Score the rows in batches of mixed lengths, and the last, long one alone."""
    last = len(columns[0]) - 1
    parts = [*(slice(begin, min(begin + BATCH, last)) for begin in range(0, last, BATCH)), slice(last, None)]
    return [row for part in parts for row in score(*(column[part] for column in columns))]


def differences(
    name: str, expected: list[np.ndarray], found: list[np.ndarray], is_quantized: bool
) -> dict[str, float]:
    """The greatest and the mean difference; a DataError if in float32 one is beyond the tolerance, or not a number."""
    ours, theirs = np.concatenate(expected), np.concatenate(found)
    difference = np.abs(ours - theirs)
    greatest, mean = float(difference.max()), float(difference.mean())
    # Written so that a number that is not finite fails.
    near = np.inf if is_quantized else TOLERANCE * np.maximum(1, np.abs(ours))
    if not (difference <= near).all() or not np.isfinite(difference).all():
        raise DataError(f"the export does not agree with torch: {name} differ by up to {greatest:.2g}")
    return {"greatest_difference": greatest, "mean_difference": mean}


def is_tie(model: TorchEngine, source: list[int], expected: list[int], found: list[int]) -> bool:
    """Whether two greedy translations first differ where the two tokens are equally probable."""
    shorter = min(len(expected), len(found))
    part = next((n for n in range(shorter) if expected[n] != found[n]), shorter)
    one, other = model.log_probabilities([source] * 2, [expected[: part + 1], found[: part + 1]])
    return abs(float(one[part] - other[part])) < TIE


def count_equal(expected: list[Any], found: list[Any]) -> str:
    equal = sum(one == other for one, other in zip(expected, found, strict=True))
    return f"{equal:,} of {len(expected):,}"
