# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Plain text for pretraining: lines of files, tokenized once and memory-mapped, or read while training."""

import logging
import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice

import numpy as np
from datasets import Dataset, DatasetDict, Features, IterableDataset, List, Value
from transformers import PreTrainedTokenizerBase

from ..errors import DataError
from .checksums import file_checksum
from .lines import iterate_lines
from .rows import cached_rows, select_rows, tokenize_rows


logger = logging.getLogger(__name__)
# Lines from which streaming draws the next one.
SHUFFLE_BUFFER = 10_000


def load_corpus(
    files: Sequence[str | os.PathLike],
    *,
    validation: float = 0.01,
    seed: int = 42,
    encoding: str = "utf-8",
    cache_dir: str | os.PathLike | None = None,
) -> DatasetDict:
    """Load the lines of text files, memory-mapped, as the splits `train` and `validation`.

    Args:
        files: As `iterate_lines` reads them, one after the other.
        validation: The lines held out for validation: a share of them, or from 1 on their number.
        seed: The seed of their choice.
        encoding: Of the files.
        cache_dir: The folder of the cache, which goes by the files' checksums; by default that of `datasets`.

    Returns:
        The two splits, with the column `text` (string); lines without text are still there.

    Raises:
        OSError: A file cannot be read.
        DataError: There is an error in a file, or too few lines to hold any out.
    """
    lines = read_texts(files, cache_dir, encoding)
    size = validation_size(validation, len(lines), ", ".join(os.fspath(file) for file in files))
    order = np.random.default_rng(seed).permutation(len(lines))
    parts = {"train": order[size:], "validation": order[:size]}
    return DatasetDict({split: select_rows(lines, np.sort(part)) for split, part in parts.items()})


def read_texts(
    files: Sequence[str | os.PathLike], cache_dir: str | os.PathLike | None = None, encoding: str = "utf-8"
) -> Dataset:
    """The lines of text files, memory-mapped, as rows with the column `text` (string)."""
    lines = _lines(files, encoding)
    batches = iter(lambda: {"text": list(islice(lines, 1000))}, {"text": []})
    key = ("lines", [file_checksum(file) for file in files], encoding)
    return cached_rows(key, batches, {"text": Value("string")}, cache_dir)


def validation_size(validation: float, lines: int, name: str) -> int:
    """The number of lines held out for validation, at least one of `lines`, and not all."""
    if not validation > 0 or (validation > 1 and validation % 1 != 0):  # also where it is NaN, or infinite
        raise DataError(f"validation must be a share of the lines or their number, not {validation}")
    size = int(validation) if validation >= 1 else max(1, round(validation * lines))
    if size >= lines:
        raise DataError(f"{name}: {lines:,} lines, of which {size:,} cannot be held back for validation")
    return size


def tokenize_corpus(corpus: DatasetDict, tokenizer: PreTrainedTokenizerBase, max_length: int) -> DatasetDict:
    """Turn lines into token ids, once: `datasets` keeps them in its cache.

    Args:
        corpus: What `load_corpus` returned.
        tokenizer: Any tokenizer; it adds no special tokens here.
        max_length: The number of tokens that a line is truncated to.

    Returns:
        The splits with the columns `input_ids` (int32), `row` (the line's place in its split, which seeds its
        corruption) and `length` (end-of-text token included). Lines without tokens are dropped; the log says how
        many.

    Raises:
        DataError: A split has no line with a token.
    """
    features = Features({"input_ids": List(Value("int32")), "row": Value("int64"), "length": Value("int32")})
    tokenize = partial(_tokenize_batch, tokenizer=tokenizer, max_length=max_length)
    options = {"with_indices": True, "remove_columns": ["text"], "features": features}
    tokenized = tokenize_rows(corpus, tokenize, [tokenizer, max_length], **options)
    for split, lines in corpus.items():
        if not (kept := len(tokenized[split])):
            raise DataError(f"{split}: no line has a text")
        if dropped := len(lines) - kept:
            logger.warning(f"{split}: {dropped:,} of {len(lines):,} lines have no text and are dropped")
    return tokenized


def _tokenize_batch(
    batch: dict[str, list], rows: list[int], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> dict[str, list]:
    options = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
    encoded = tokenizer(batch["text"], **options)
    kept = [(row, ids[:max_length]) for row, ids in zip(rows, encoded["input_ids"], strict=True) if ids]
    return {
        "input_ids": [ids for _, ids in kept],
        "row": [row for row, _ in kept],
        "length": [len(ids) + 1 for _, ids in kept],
    }


def stream_corpus(
    files: Sequence[str | os.PathLike],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    *,
    validation: int,
    seed: int = 42,
    encoding: str = "utf-8",
) -> tuple[IterableDataset, Dataset]:
    """Read and tokenize a corpus while training, if it is too large for a second copy on disk.

    The stream is endless. It is shuffled within a buffer of `SHUFFLE_BUFFER` lines, so the files should not be sorted.
    One process and one worker read it; resuming reads it again from the start.

    Args:
        files, encoding: As in `load_corpus`.
        tokenizer, max_length: As in `tokenize_corpus`.
        validation: The number of lines held out for validation, the first of the stream.
        seed: Seed of the order.

    Returns:
        The stream and the validation split, with the columns of `tokenize_corpus`; a repeated line has another
        `row`.

    Raises:
        OSError: A file cannot be read.
        DataError: There is an error in the first file, or too few lines.
    """
    names = tuple(os.fspath(file) for file in files)
    first = list(islice(_lines(names, encoding), int(validation) + 1))
    size = validation_size(max(1, validation), len(first), ", ".join(names))
    tokenize = partial(_tokenize_batch, tokenizer=tokenizer, max_length=max_length)
    held = Dataset.from_dict(tokenize({"text": first[:size]}, list(range(size))))
    if not len(held):
        raise DataError("validation: no line has a text")
    source = {"files": names, "start": size, "encoding": encoding}
    stream = IterableDataset.from_generator(_endless_text_rows, gen_kwargs=source)
    stream = stream.shuffle(seed=seed, buffer_size=SHUFFLE_BUFFER)
    return stream.map(tokenize, batched=True, with_indices=True, remove_columns=["text"]), held


def _endless_text_rows(files: tuple[str, ...], start: int, encoding: str) -> Iterator[dict[str, str]]:
    found = True
    while found:
        found = False
        for text in islice(_lines(files, encoding), start, None):
            if text.strip():
                found = True
                yield {"text": text}
    raise DataError(f"{', '.join(files)}: no line with a text after those held back for validation")


def _lines(files: Sequence[str | os.PathLike], encoding: str) -> Iterator[str]:
    return chain.from_iterable(iterate_lines(file, encoding) for file in files)
