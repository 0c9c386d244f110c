# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Prove an export: compare its answers with torch's, and measure quality and speed of both."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..data.labelled_text import encode
from ..engines import Engine, end_tokens
from ..engines.engine import MODEL_CLASSES
from ..engines.pytorch import TorchEngine
from ..loading import load_tokenizer
from ..metrics import classification_report, translation_report


# Greatest difference of an export in float32: absolute, and relative to torch's value.
TOLERANCE = 1e-5
# Greatest mean difference of an export in int8 from the model rounded in torch, relative to what rounding costs there.
# Where float32 puts an input on the other side of a half, all that follows changes; two errors of the same size are
# at most twice that size apart.
QUANTIZED_TOLERANCE = 2.0
# Two tokens or translations whose log-probabilities differ by less may be taken for each other.
TIE = 2e-5
# Share of translations by beam search that may differ: in a tie within a beam, all that follows can.
DIFFERING_BEAMS = 0.05
# Lengths up to which random texts are dense; of longer ones there is the longest only.
MOST_TOKENS = 256
# Longest random text that is translated, and longest translation of it.
MOST_GENERATED = 64
BEAMS = 5
PROOF_BATCH, DATA_BATCH = 8, 64

Tokenizers = tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]


def prove(
    model: TorchEngine,
    export: Engine,
    *,
    rounded: TorchEngine | None,
    tokenizers: Tokenizers,
    folder: Path,
    texts: list[str] | None = None,
    answers: list[Any] | None = None,
) -> dict[str, Any]:
    """Compare an export with its model.

    Args:
        model: The model in torch.
        export: The engine of the export.
        rounded: For an export in int8, the model rounded in torch as the engine does; None for one in float32, which
            must agree.
        tokenizers: The model's tokenizers of source and target.
        folder: The exported folder.
        texts: Texts on which quality and speed are measured.
        answers: The label or the translation of each text.

    Returns:
        `same_ids`, of how many texts the tokenizers were compared; `random_texts`, what was compared on random ids of
        many lengths; and with texts `data`, what was measured.

    Raises:
        ValueError: the export does not agree with the model; the message names the difference.
    """
    classifies = model.model_class == MODEL_CLASSES["classifier"]
    prove_random = prove_logits if classifies else prove_translations
    proof = {
        "same_ids": prove_tokenizer(tokenizers[0], folder, model.config),
        "random_texts": prove_random(model, export, rounded),
    }
    if texts:
        measure = measure_classification if classifies else measure_translation
        proof["data"] = measure(model, export, rounded is None, tokenizers, texts, answers)
    return proof


def prove_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: Path, config: VanillaTransformerConfig) -> str:
    """Compare the ids that a model's tokenizer and the exported one give, which is also read by `tokenizers` alone.

    The last text is longer than the model.

    Args:
        tokenizer: The model's source tokenizer.
        folder: The exported folder.
        config: The model's configuration.

    Returns:
        How many texts have the same ids.

    Raises:
        ValueError: one has not.
    """
    texts = tokenizer.batch_decode([row for row in random_texts(config) if max(row) < len(tokenizer)])
    texts.append(" ".join(texts))
    limit = {"truncation": True, "max_length": min(tokenizer.model_max_length, config.max_position_embeddings)}
    alone = Tokenizer.from_file(str(folder / "tokenizer.json"))
    alone.enable_truncation(limit["max_length"])
    expected = tokenizer(texts, **limit)["input_ids"]
    found = [load_tokenizer(str(folder))(texts, **limit)["input_ids"], [alone.encode(text).ids for text in texts]]
    if found != [expected, expected]:
        raise ValueError("the export does not agree with torch: its tokenizer gives other ids than the model's")
    return count_equal(expected, found[1])


def random_texts(config: VanillaTransformerConfig) -> list[list[int]]:
    """Texts of random ids: two of each of many lengths, from one token on, and last one of the greatest length."""
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


def prove_logits(model: TorchEngine, export: Engine, rounded: TorchEngine | None) -> dict[str, Any]:
    """Compare the logits of random texts."""
    rows = random_texts(model.config)
    expected, found = (_in_two(engine.logits, rows) for engine in (model, export))
    report = compare("logits", expected, found, rounded is None)
    if rounded is not None:
        report |= compare_rounded("logits", expected, found, _in_two(rounded.logits, rows))
    return {
        "texts": len(rows),
        "longest": len(rows[-1]),
        **report,
        "same_label": count_equal([row.argmax() for row in expected], [row.argmax() for row in found]),
    }


def prove_translations(model: TorchEngine, export: Engine, rounded: TorchEngine | None) -> dict[str, Any]:
    """Compare the log-probabilities of random translations, and translations of random texts."""
    rows = random_texts(model.config)
    targets = random_translations(model.config, len(rows))
    expected, found = (_in_two(engine.log_probabilities, rows, targets) for engine in (model, export))
    report: dict[str, Any] = {"texts": len(rows), "longest": len(rows[-1])}
    report |= compare("log-probabilities", expected, found, rounded is None)
    if rounded is not None:
        scores = _in_two(rounded.log_probabilities, rows, targets)
        report |= compare_rounded("log-probabilities", expected, found, scores)
    rows = [row for row in rows if len(row) <= MOST_GENERATED]
    limit = None if model.config.max_target_positions <= MOST_GENERATED else MOST_GENERATED
    for beams in (1, BEAMS):
        with same_search(model, export, beams):
            written = [engine.translate(rows, PROOF_BATCH, beams, limit) for engine in (model, export)]
        report[f"same_translation_beams_{beams}"] = compare_translations(
            model, rows, written[0], written[1], beams, rounded is None
        )
    return report


def _in_two(score: Callable, *columns: list[list[int]]) -> list[np.ndarray]:
    """Score all rows but the last in batches of different lengths, and the last, long one alone."""
    parts = ([column[:-1] for column in columns], [column[-1:] for column in columns])
    return [row for part in parts for row in score(*part, PROOF_BATCH)]


def compare(name: str, expected: list[np.ndarray], found: list[np.ndarray], exact: bool) -> dict[str, float]:
    """Compare numbers of an export with torch's.

    Raises:
        ValueError: the export is exact, and they differ by more than the tolerance.
    """
    expected, found = np.concatenate(expected), np.concatenate(found)
    difference = np.abs(expected - found)
    greatest, mean = float(difference.max()), float(difference.mean())
    # Written so that a number that is not finite fails.
    if exact and not (difference <= TOLERANCE * np.maximum(1, np.abs(expected))).all():
        raise ValueError(f"the export does not agree with torch: {name} differ by up to {greatest:.2g}")
    return {"greatest_difference": greatest, "mean_difference": mean}


def compare_rounded(
    name: str, expected: list[np.ndarray], found: list[np.ndarray], rounded: list[np.ndarray]
) -> dict[str, float]:
    """Compare numbers of an export in int8 with those of the model that is rounded in torch.

    Raises:
        ValueError: they differ by more than the tolerance.
    """
    rounded = np.concatenate(rounded)
    difference, cost = (float(np.abs(rounded - np.concatenate(one)).mean()) for one in (found, expected))
    if not difference <= QUANTIZED_TOLERANCE * cost:
        raise ValueError(
            f"the export does not agree with torch: {name} differ by {difference:.2g} on average from those of the "
            f"model rounded in torch, and these by {cost:.2g} from those of the model"
        )
    return {"mean_difference_from_rounded": difference}


def compare_translations(
    model: TorchEngine,
    sources: list[list[int]],
    expected: list[list[int]],
    found: list[list[int]],
    beams: int,
    exact: bool,
) -> str:
    """Compare translations of an export with torch's.

    Returns:
        How many are equal, and of the others how many are as probable.

    Raises:
        ValueError: the export is exact, and too many are neither.
    """
    differing = [place for place in range(len(sources)) if expected[place] != found[place]]
    ties = 0
    if exact:
        is_tie = is_greedy_tie if beams == 1 else is_beam_tie
        wrong = [n for n in differing if not is_tie(model, sources[n], expected[n], found[n])]
        ties = len(differing) - len(wrong)
        if len(wrong) > (0 if beams == 1 else DIFFERING_BEAMS * len(sources)):
            raise ValueError(
                f"the export does not agree with torch: {len(wrong)} of {len(sources)} translations differ "
                f"({'greedy search' if beams == 1 else f'{beams} beams'}); the first writes the ids "
                f"{found[wrong[0]]} instead of {expected[wrong[0]]}"
            )
    return count_equal(expected, found) + (f", {ties} in a tie" if ties else "")


def is_greedy_tie(model: TorchEngine, source: list[int], expected: list[int], found: list[int]) -> bool:
    """Whether two translations part where two tokens are equally probable."""
    part = next((n for n, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]), None)
    part = min(len(expected), len(found)) if part is None else part
    targets = [expected[: part + 1], found[: part + 1]]
    one, other = model.log_probabilities([source] * 2, targets, 2)
    return abs(float(one[part] - other[part])) < TIE


def is_beam_tie(model: TorchEngine, source: list[int], expected: list[int], found: list[int]) -> bool:
    """Whether two translations have the same mean log-probability."""
    one, other = model.log_probabilities([source] * 2, [expected, found], 2)
    return abs(float(one.mean() - other.mean())) < TIE


def count_equal(expected: list[Any], found: list[Any]) -> str:
    """How many of two lists' elements are equal, in words."""
    equal = sum(one == other for one, other in zip(expected, found, strict=True))
    return f"{equal:,} of {len(expected):,}"


@contextmanager
def same_search(model: TorchEngine, export: Engine, beams: int):
    """Have torch's beam search stop as the export's does."""
    settings = model.model.generation_config
    before = settings.early_stopping
    if beams > 1 and export.early_stopping is not None:
        settings.early_stopping = export.early_stopping
    try:
        yield
    finally:
        settings.early_stopping = before


def measure_classification(
    model: TorchEngine,
    export: Engine,
    exact: bool,
    tokenizers: Tokenizers,
    texts: list[str],
    labels: list[int],
) -> dict[str, Any]:
    """Accuracy and speed of both on labelled texts.

    Raises:
        ValueError: the export is exact, and its logits differ.
    """
    limit = min(tokenizers[0].model_max_length, model.config.max_position_embeddings)
    rows = encode(texts, tokenizers[0], limit)
    report: dict[str, Any] = {"texts": len(texts), "batch_size": DATA_BATCH}
    logits = []
    for name, engine in (("torch", model), ("export", export)):
        answer, speed = timed(engine.logits, rows)
        logits.append(answer)
        report[name] = {"accuracy": classification_report(answer, np.array(labels))["accuracy"], **speed}
    report |= compare("logits", list(logits[0]), list(logits[1]), exact)
    return report | {"same_label": count_equal(*(answer.argmax(axis=-1).tolist() for answer in logits))}


def measure_translation(
    model: TorchEngine,
    export: Engine,
    exact: bool,
    tokenizers: Tokenizers,
    texts: list[str],
    references: list[str],
) -> dict[str, Any]:
    """BLEU and speed of both on texts with their translations, by greedy search and by the model's own beams.

    Raises:
        ValueError: the export is exact, and its translations differ.
    """
    rows = tokenizers[0](texts, truncation=True, max_length=model.config.max_position_embeddings)["input_ids"]
    own = model.model.generation_config.num_beams or 1
    report: dict[str, Any] = {"texts": len(texts), "batch_size": DATA_BATCH}
    for beams in (1, own if own > 1 else BEAMS):
        part, written = {}, []
        with same_search(model, export, beams):
            for name, engine in (("torch", model), ("export", export)):
                ids, speed = timed(partial(engine.translate, num_beams=beams), rows)
                written.append(ids)
                bleu = translation_report(tokenizers[1].batch_decode(ids, skip_special_tokens=True), references)
                part[name] = {"bleu": bleu["bleu"], "bleu_lowercased": bleu["bleu_lowercased"], **speed}
        same = compare_translations(model, rows, written[0], written[1], beams, exact)
        report[f"beams_{beams}"] = {**part, "same_translation": same}
    return report


def timed(answer: Callable, rows: list[list[int]]) -> tuple[Any, dict[str, float]]:
    """What an engine answers, and how many texts it answers in a second, once it is warm."""
    answer(rows[:DATA_BATCH], DATA_BATCH)
    begin = time.perf_counter()
    answers = answer(rows, DATA_BATCH)
    return answers, {"texts_per_second": len(rows) / (time.perf_counter() - begin)}
