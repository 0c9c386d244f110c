# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Plain text for pretraining: lines of files, memory-mapped and tokenized once."""

import logging
import os
from collections.abc import Iterator, Sequence

import numpy as np
from datasets import Dataset, DatasetDict, Features, List, Value
from transformers import PreTrainedTokenizerBase

from .errors import DataError
from .lines import iterate_lines
from .rows import generate_rows, tokenize_rows
from .sources import file_checksum


logger = logging.getLogger(__name__)


def load_corpus(
    files: Sequence[str | os.PathLike], *, validation: float = 0.01, seed: int = 42, encoding: str = "utf-8"
) -> DatasetDict:
    """Load the lines of text files, memory-mapped, as the splits `train` and `validation`.

    The lines are cached by the checksums of their files.

    Args:
        files: As `iterate_lines` reads them, one after the other.
        validation: The lines held out for validation: a share of them, or from 1 on their number.
        seed: The seed of their choice.
        encoding: Of the files.

    Returns:
        The two splits, with the column `text` (string), lines without text included.

    Raises:
        OSError: A file cannot be read.
        DataError: There is an error in a file, or too few lines to hold any out.
    """
    lines = read_texts(files, encoding)
    if not 0 < validation < len(lines):  # also NaN
        raise DataError(f"{len(lines):,} lines, of which {validation} cannot be held out for validation")
    size = int(validation) if validation >= 1 else max(1, round(validation * len(lines)))
    order = np.random.default_rng(seed).permutation(len(lines))
    parts = {"train": order[size:], "validation": order[:size]}
    return DatasetDict({split: lines.select(np.sort(part)) for split, part in parts.items()})


def read_texts(files: Sequence[str | os.PathLike], encoding: str = "utf-8") -> Dataset:
    """Read the lines of text files, memory-mapped, as rows with the column `text` (string)."""
    names = [os.fspath(file) for file in files]
    settings = {"names": tuple(names), "encoding": encoding, "content": tuple(map(file_checksum, names))}
    return generate_rows(", ".join(names), _texts, ["text"], **settings)


def _texts(names: Sequence[str], encoding: str, content: Sequence[str]) -> Iterator[dict[str, str]]:
    for name in names:
        yield from ({"text": text} for text in iterate_lines(name, encoding))


def tokenize_corpus(corpus: DatasetDict, tokenizer: PreTrainedTokenizerBase, max_length: int) -> DatasetDict:
    """Turn lines into token ids, without special tokens; drop lines without tokens.

    Args:
        corpus: The splits, with the column `text`.
        max_length: The number of ids at which a line is cut.

    Returns:
        The splits with the columns `input_ids` (int32), `row` (the line's place in its split, which seeds its
        corruption) and `length` (end-of-text token included).

    Raises:
        DataError: A split has no line with a token.
    """

    def tokenize_batch(batch: dict[str, list], rows: list[int]) -> dict[str, list]:
        options = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
        encoded = tokenizer(batch["text"], **options)["input_ids"]
        lines = {row: ids[:max_length] for row, ids in zip(rows, encoded, strict=True) if ids}
        lengths = [len(ids) + 1 for ids in lines.values()]
        return {"input_ids": [*lines.values()], "row": [*lines], "length": lengths}

    features = Features({"input_ids": List(Value("int32")), "row": Value("int64"), "length": Value("int32")})
    options = {"with_indices": True, "remove_columns": ["text"], "features": features}
    tokenized = tokenize_rows(corpus, tokenize_batch, [tokenizer, max_length], **options)
    for split, lines in corpus.items():
        if not len(tokenized[split]):
            raise DataError(f"{split}: no line has a text")
        if dropped := len(lines) - len(tokenized[split]):
            logger.warning(f"{split}: {dropped:,} of {len(lines):,} lines have no text and are dropped")
    return tokenized
