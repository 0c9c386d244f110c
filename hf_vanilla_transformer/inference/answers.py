# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Classify and translate any number of texts with the engine of the model's folder."""

import logging
import re
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..data.problem_types import MULTI, REGRESSION
from ..errors import DataError
from ..tokenizer import tokenize
from .engine import Engine, check_task, load_engine
from .folder import labels_of, load_target_tokenizer, load_tokenizer


logger = logging.getLogger(__name__)

# Batches in a window: the texts of a window are read, sorted by length, and answered together.
WINDOW = 64
# Texts that are tokenized together.
MOST_AT_ONCE = 256


def classify(
    texts: Iterable[str],
    model: str | Engine | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    batch_size: int = 64,
    dtype: str = "float32",
) -> tuple[np.ndarray, list[str]]:
    """Classify texts.

    Args:
        texts: The texts; longer ones than tokenizer and model allow are truncated.
        model: A classifier's folder or Hub name, an exported folder, an engine, or a loaded model.
        tokenizer: The model's tokenizer; by default that of the folder.
        batch_size: Maximum number of texts in one pass through the model.
        dtype: As in `load_engine`; without effect on a model that is already loaded.

    Returns:
        (texts, labels), float32, the probability of each label, or the value of a model of numbers; and the names of
        the labels.

    Raises:
        ValueError: as in `load_engine` and `load_tokenizer`; or a loaded model comes without its tokenizer.
    """
    engine, tokenizer = _load(model, tokenizer, "classification", dtype)
    rows = list(iterate_probabilities(texts, engine, tokenizer, batch_size=batch_size))
    labels = labels_of(engine.config)
    return np.stack(rows) if rows else np.empty((0, len(labels)), dtype=np.float32), labels


def iterate_probabilities(
    texts: Iterable[str],
    model: str | Engine | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    batch_size: int = 64,
    dtype: str = "float32",
) -> Iterator[np.ndarray]:
    """As `classify` for any number of texts, `WINDOW` batches at a time; yields (labels,), float32, text by text."""
    engine, tokenizer = _load(model, tokenizer, "classification", dtype)
    max_length = min(tokenizer.model_max_length, engine.config.max_position_embeddings)
    for window in _windows(texts, WINDOW * batch_size):
        # A text without a token has no ids, as in transformers' pipeline.
        ids, _ = token_ids(window, tokenizer, max_length)
        logits = torch.from_numpy(engine.logits(ids, batch_size))
        if (kind := engine.config.problem_type) != REGRESSION:
            logits = logits.sigmoid() if kind == MULTI else logits.softmax(dim=-1)
        yield from logits.numpy()


def translate(
    texts: Iterable[str],
    model: str | Engine | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None = None,
    target_tokenizer: PreTrainedTokenizerBase | None = None,
    **options,
) -> list[str]:
    """The translation of each text; arguments and errors as in `iterate_translations`."""
    return list(iterate_translations(texts, model, tokenizer, target_tokenizer, **options))


def iterate_translations(
    texts: Iterable[str],
    model: str | Engine | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None = None,
    target_tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    num_beams: int | None = None,
    max_new_tokens: int | None = None,
    batch_size: int = 64,
    truncation: bool = True,
    first: int = 1,
) -> Iterator[str]:
    """Translate any number of texts: read `WINDOW` batches, answer them, and go on.

    Args:
        texts: The texts.
        model: A translator's folder or Hub name, an exported folder, an engine, or a loaded model.
        tokenizer: The source tokenizer; by default that of the folder.
        target_tokenizer: The target tokenizer where the target has its own vocabulary; by default that of the folder.
        num_beams: Beams of the search; 1 is greedy; by default as many as the model's `generate` has.
        max_new_tokens: Greatest number of tokens of a translation; by default the model's limit.
        batch_size: Maximum number of texts in one pass through the model.
        truncation: Cut texts that are longer than the model reads, and warn at the end; False refuses them.
        first: The number of the first text in messages.

    Yields:
        One translation after the other; that of a text without a token is empty.

    Raises:
        ValueError: as in `load_engine` and `load_tokenizer`; or a loaded model comes without its tokenizers; or a
            text is too long and not to be cut.
    """
    folder = model if isinstance(model, str) else None
    engine, tokenizer = _load(model, tokenizer, "translation")
    if target_tokenizer is None:
        if folder is None and engine.config.decoder_vocab_size is not None:
            raise DataError("a loaded model with two vocabularies needs its target_tokenizer, too")
        target_tokenizer = load_target_tokenizer(folder, engine.config, tokenizer)
    limit, without_text = engine.config.max_position_embeddings, tokenizer.num_special_tokens_to_add()
    message, cut = "", 0
    number = first
    try:
        for window in _windows(texts, WINDOW * batch_size, first):
            input_ids, lengths = token_ids(window, tokenizer, limit)
            if long := [place for place, length in enumerate(lengths) if length > limit]:
                tokens = lengths[long[0]]
                message = message or f"text {number + long[0]} has {tokens} tokens, the model reads {limit}"
                if not truncation:
                    raise DataError(message)
                cut += len(long)
            number += len(window)
            translations = [""] * len(window)
            if places := [place for place, ids in enumerate(input_ids) if len(ids) > without_text]:
                rows, beams = [input_ids[place] for place in places], num_beams or engine.num_beams
                written = engine.translate(rows, batch_size, beams, max_new_tokens)
                decoded = target_tokenizer.batch_decode(written, skip_special_tokens=True)
                for place, translation in zip(places, decoded, strict=True):
                    translations[place] = translation
            yield from translations
    finally:
        if cut:
            logger.warning(f"{message}; cut: {cut} of {number - first} texts")


def token_ids(
    texts: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> tuple[list[list[int]], list[int]]:
    """The ids of texts, cut to `max_length` as the tokenizer cuts, and how many ids they had before.

    A fast tokenizer keeps the settings of its last call: with others in another thread, it would cut or not cut by
    those. So it gets the same ones in every call, and cuts nothing.
    """
    if len(texts) > MOST_AT_ONCE:
        parts = [texts[place : place + MOST_AT_ONCE] for place in range(0, len(texts), MOST_AT_ONCE)]
        found = [token_ids(part, tokenizer, max_length) for part in parts]
        return [ids for part, _ in found for ids in part], [length for _, part in found for length in part]
    encoded = tokenize(tokenizer, texts, max_length, truncation=False, padding=False, verbose=False)
    rows = encoded["input_ids"]
    lengths = [len(ids) for ids in rows]
    for place in (place for place, length in enumerate(lengths) if length > max_length):
        if not tokenizer.is_fast:
            rows[place] = tokenizer(texts[place], truncation=True, max_length=max_length)["input_ids"]
            continue
        added = encoded[place].special_tokens_mask
        own = [number for number, mark in enumerate(added) if not mark]
        surplus = min(lengths[place] - max_length, len(own))
        left_out = {*(own[:surplus] if tokenizer.truncation_side == "left" else own[len(own) - surplus :])}
        rows[place] = [token for number, token in enumerate(rows[place]) if number not in left_out]
    return rows, lengths


def _load(
    model: str | Engine | PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, task: str, dtype: str = "float32"
) -> tuple[Engine, PreTrainedTokenizerBase]:
    if isinstance(model, str):
        engine = load_engine(model, dtype, task)
        return engine, tokenizer or load_tokenizer(model, vocab_size=engine.config.vocab_size)
    if tokenizer is None:
        raise DataError("a loaded model needs its tokenizer, too")
    if not isinstance(model, Engine):
        from .pytorch import TorchEngine

        model = TorchEngine(model.eval())
    check_task(model, task, "model")
    return model, tokenizer


def _windows(texts: Iterable[str], size: int, first: int = 1) -> Iterator[list[str]]:
    if isinstance(texts, str):
        raise TypeError("texts: several texts, such as a list, not one string")
    texts = iter(texts)
    while window := list(islice(texts, size)):
        for number, text in enumerate(window, first):
            if half := re.search("[\ud800-\udfff]", text):
                raise DataError(f"text {number}: {half[0]!a} is half of a character")
        yield window
        first += size
