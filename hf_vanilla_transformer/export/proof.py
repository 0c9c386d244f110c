# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Prove an export: compare its answers with torch's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..errors import DataError
from ..inference.batches import pad
from ..inference.ctranslate2 import CTranslate2Engine
from ..inference.engine import TASKS, Engine, end_tokens
from ..inference.folder import load_tokenizer
from ..inference.pytorch import TorchEngine


# Greatest difference of an export in float32: absolute, and relative to torch's value.
TOLERANCE = 1e-5
# Greatest mean difference of an export in int8 from the model rounded in torch, relative to the error of rounding.
# Engine and torch may round an input near a half to different integers, and then all that follows differs. But both
# are about one rounding error away from the model, so at most two from each other.
QUANTIZED_TOLERANCE = 2.0
# Two tokens whose log-probabilities differ by less may be taken for each other.
TIE = 2e-5
# Random texts have many lengths up to this one; of longer texts there is one, as long as the model takes.
MOST_TOKENS = 256
# Longest text that is translated, and longest translation of it.
MOST_GENERATED = 64
BATCH = 8


def prove(
    model: TorchEngine,
    export: Engine,
    *,
    rounded: TorchEngine | None,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    texts: list[str],
) -> dict[str, Any]:
    """Compare an export with its model; a ValueError names the difference where they do not agree.

    An export in int8 is compared with `rounded`, the model rounded in torch as the engine does.

    Returns:
        `same_ids`, of how many texts the tokenizers were compared; `random_texts`, what was compared on random ids of
        many lengths; and where there are texts, `validation_texts`, the same on those.
    """
    compare_answers = compare_logits if TASKS[model.model_class] == "classification" else compare_translations
    limit = {"truncation": True, "max_length": min(tokenizer.model_max_length, model.config.max_position_embeddings)}
    proof = {
        "same_ids": prove_tokenizer(tokenizer, folder, model.config, limit),
        "random_texts": compare_answers(model, export, rounded, random_texts(model.config)),
    }
    if texts:
        # A text without a token of its own is none to translate.
        rows = tokenizer(texts, **limit)["input_ids"]
        rows = [row for row in rows if len(row) > tokenizer.num_special_tokens_to_add()]
        proof["validation_texts"] = compare_answers(model, export, rounded, rows)
    return proof


def prove_tokenizer(
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


def random_texts(config: VanillaTransformerConfig) -> list[list[int]]:
    """Texts of random ids: two of each of many lengths, from one token on, and one of the greatest length."""
    longest = config.max_position_embeddings
    outside = {config.pad_token_id, *end_tokens(config)}  # CTranslate2 takes an end token alone for an empty text
    rows = _random_rows(config.vocab_size, outside, 1, min(longest, MOST_TOKENS))
    return [*rows, _random_rows(config.vocab_size, outside, longest, longest)[0]]


def random_translations(config: VanillaTransformerConfig, number: int) -> list[list[int]]:
    """Translations of random ids and many lengths, from none to the greatest number of tokens."""
    longest = min(config.max_target_positions - 1, MOST_TOKENS)
    outside = {config.pad_token_id, config.decoder_start_token_id, *end_tokens(config)}
    rows = _random_rows(config.target_vocab_size, outside, 0, longest)
    return [rows[place % len(rows)] for place in range(number)]


def _random_rows(vocab_size: int, outside: set[int | None], shortest: int, longest: int) -> list[list[int]]:
    random = np.random.default_rng(len(outside))
    ids = [token for token in range(vocab_size) if token not in outside]
    lengths = {longest, *range(shortest, min(longest, 8)), *range(max(shortest, 8), longest, 1 + longest // 16)}
    return [random.choice(ids, length).tolist() for length in sorted(lengths) for _ in range(2)]


def compare_logits(
    model: TorchEngine, export: Engine, rounded: TorchEngine | None, rows: list[list[int]]
) -> dict[str, Any]:
    def score(engine: Engine) -> list[np.ndarray]:
        return in_batches(lambda part: list(engine.logits(part, BATCH)), rows)

    rows = [[], *rows]
    expected, found = score(model), score(export)
    return {
        "texts": len(rows),
        "longest": max(map(len, rows)),
        **compare("logits", expected, found, None if rounded is None else score(rounded)),
        "same_label": count_equal([row.argmax() for row in expected], [row.argmax() for row in found]),
    }


def compare_translations(
    model: TorchEngine, export: Engine, rounded: TorchEngine | None, rows: list[list[int]]
) -> dict[str, Any]:
    """Compare the log-probabilities of random translations, and the greedy translations."""
    targets = random_translations(model.config, len(rows))

    def score(engine: Engine) -> list[np.ndarray]:
        return in_batches(lambda *parts: log_probabilities(engine, *parts), rows, targets)

    report: dict[str, Any] = {"texts": len(rows), "longest": max(map(len, rows))}
    report |= compare("log-probabilities", score(model), score(export), None if rounded is None else score(rounded))
    rows = [row for row in rows if len(row) <= MOST_GENERATED]
    limit = None if model.config.max_target_positions <= MOST_GENERATED else MOST_GENERATED
    written = [engine.translate(rows, BATCH, max_new_tokens=limit) for engine in (model, export)]
    for source, ours, theirs in zip(rows, *written, strict=True):
        if rounded is None and ours != theirs and not is_tie(model, source, ours, theirs):
            raise DataError(
                f"the export does not agree with torch: translations differ, the ids {theirs} instead of {ours}"
            )
    return {**report, "same_translation": count_equal(*written)}


@torch.inference_mode()
def log_probabilities(engine: Any, input_ids: list[list[int]], target_ids: list[list[int]]) -> list[np.ndarray]:
    """The log-probability of each token of given translations, and of the end token after it.

    Each source has at least one id, and each translation fewer than there are target positions.

    Returns:
        For each text (tokens + 1,), float32.
    """
    if isinstance(engine, CTranslate2Engine):
        targets = [[engine.target_tokens[token] for token in row] for row in target_ids]
        results = engine.translator.score_batch(engine.sources(input_ids), targets, max_input_length=0)
        return [np.array(result.log_probs, dtype=np.float32) for result in results]
    config = engine.config
    start, end, padding = config.decoder_start_token_id, end_tokens(config)[0], config.pad_token_id
    decoder_input_ids, _ = pad([[start, *ids] for ids in target_ids], padding)
    labels, in_target = pad([[*ids, end] for ids in target_ids], padding)
    inputs = [*pad(input_ids, padding), decoder_input_ids]
    ids, mask, targets = (tensor.to(engine.model.device) for tensor in inputs)
    logits = engine.model(ids, attention_mask=mask, decoder_input_ids=targets).logits.float().cpu()
    chosen = logits.log_softmax(dim=-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return [one[inside.bool()].numpy() for one, inside in zip(chosen, in_target, strict=True)]


def in_batches(score: Callable[..., list[np.ndarray]], *columns: list[list[int]]) -> list[np.ndarray]:
    """Score the rows in batches of mixed lengths, and the last, long one alone."""
    last = len(columns[0]) - 1
    parts = [*(slice(begin, min(begin + BATCH, last)) for begin in range(0, last, BATCH)), slice(last, None)]
    return [row for part in parts for row in score(*(column[part] for column in columns))]


def compare(
    name: str, expected: list[np.ndarray], found: list[np.ndarray], rounded: list[np.ndarray] | None
) -> dict[str, float]:
    """Compare numbers of an export with torch's; in int8 also with those of the model that is rounded in torch.

    A ValueError says that they differ by more than the tolerance.
    """
    expected, found = np.concatenate(expected), np.concatenate(found)
    difference = np.abs(expected - found)
    greatest, mean = float(difference.max()), float(difference.mean())
    report = {"greatest_difference": greatest, "mean_difference": mean}
    # Both conditions are written so that a number that is not finite fails.
    if rounded is None:
        if not (difference <= TOLERANCE * np.maximum(1, np.abs(expected))).all():
            raise DataError(f"the export does not agree with torch: {name} differ by up to {greatest:.2g}")
        return report
    apart, cost = (float(np.abs(np.concatenate(rounded) - one).mean()) for one in (found, expected))
    if not apart <= QUANTIZED_TOLERANCE * cost:
        raise DataError(
            f"the export does not agree with torch: {name} differ by {apart:.2g} on average from those of the model "
            f"rounded in torch, and these by {cost:.2g} from those of the model"
        )
    return {**report, "mean_difference_from_rounded": apart}


def is_tie(model: TorchEngine, source: list[int], expected: list[int], found: list[int]) -> bool:
    """Whether two greedy translations first differ where the two tokens are equally probable."""
    shorter = min(len(expected), len(found))
    part = next((n for n in range(shorter) if expected[n] != found[n]), shorter)
    one, other = log_probabilities(model, [source] * 2, [expected[: part + 1], found[: part + 1]])
    return abs(float(one[part] - other[part])) < TIE


def count_equal(expected: list[Any], found: list[Any]) -> str:
    equal = sum(one == other for one, other in zip(expected, found, strict=True))
    return f"{equal:,} of {len(expected):,}"
