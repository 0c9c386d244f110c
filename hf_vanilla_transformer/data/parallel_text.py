# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Parallel text: load pairs of sentences, check them, tokenize them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, Features, List, Value, concatenate_datasets
from transformers import PreTrainedTokenizerBase

from .errors import DataError
from .plain_text import read_texts
from .rows import complete_splits, convert_rows, data_errors, tokenize_rows
from .sources import NAMES, is_in_memory, name_of
from .tables import check_type, find_splits, read_tables


_PAIR = Features({"source": Value("string"), "target": Value("string")})
_TOKENIZED = Features({"input_ids": List(Value("int32")), "labels": List(Value("int32")), "length": Value("int32")})


def load_parallel_text(
    source: Any,
    source_column: str,
    target_column: str,
    *,
    prefixes: Mapping[str, str] | None = None,
    validation_fraction: float = 0.05,
    seed: int = 42,
    encoding: str = "utf-8",
    config_name: str | None = None,
    cut: bool = True,
) -> DatasetDict:
    """Load pairs of sentences, as the splits `train`, `validation` and `test`.

    A split that the source lacks is taken from `train`, the same rows for the same seed. Training pairs with an empty
    side are left out, and the log says how many. In other splits they are an error: leaving them out would change the
    metrics.

    Args:
        source: A folder of aligned text files, one sentence per line, plain or gzip: `PREFIX.SOURCE_COLUMN` and
            `PREFIX.TARGET_COLUMN`, with or without `.gz`, for each split, as in `train.de.gz` and `train.en.gz`; or a
            table, a folder of tables, a Hub name, a data set or a DataFrame, as in `load_labelled_text`.
        source_column: The column with the sentences to translate, or the files' ending: a language, say.
        target_column: The column with their translations, or the files' ending. An entry of the mapping that the
            Hub's translation data sets have is named `translation.de`.
        prefixes: How the names of aligned files begin, by split, in place of `train`; `validation`, `valid`, `val` or
            `dev`; and `test`.
        validation_fraction, seed, encoding, config_name, cut: As in `load_labelled_text`.

    Returns:
        The splits, each with the columns `source` and `target` (strings).

    Raises:
        OSError: A file cannot be read.
        DataError: The source does not exist, the Hub cannot be reached, or the sides are not aligned or have an error.
    """
    if source_column == target_column:
        raise DataError(f"source and target are the same column, {source_column!r}")
    name, columns, data = name_of(source), {"source": source_column, "target": target_column}, DatasetDict()
    if not is_in_memory(source) and Path(name).is_dir():
        data = _read_aligned_files(Path(name), columns, prefixes or {}, encoding)
    if not data:
        data = read_tables(source, columns, None, encoding, config_name)
        for column in columns:
            check_type(name, data, column, "(large_)?string", "no texts")

    def strip(*sides: str | None) -> list[str] | None:
        stripped = [(side or "").strip() for side in sides]
        return stripped if all(stripped) else None

    for split, pairs in data.items():
        is_error = split != "train" or not (cut or len(data) > 1)
        data[split] = convert_rows(pairs, f"{name}, split {split}", strip, _PAIR, "an empty side", is_error)
    return complete_splits(data, name, validation_fraction, seed) if cut else data


def tokenize_pairs(
    dataset: Dataset | DatasetDict, tokenizer: PreTrainedTokenizerBase, target_tokenizer: PreTrainedTokenizerBase
) -> Dataset | DatasetDict:
    """Turn pairs of sentences into token ids, for `Seq2SeqTrainer`, each side truncated to its tokenizer's limit.

    Args:
        dataset: What `load_parallel_text` returns, or one split of it.
        tokenizer, target_tokenizer: Of source and target; the same one where there is one vocabulary.

    Returns:
        The same rows with the columns `input_ids`, `labels` and `length`, the length of the longer side.
    """
    for one in (tokenizer, target_tokenizer):
        one("", truncation=True)  # `save_pretrained` writes this, so it must not depend on the cache

    def tokenize_batch(batch: dict[str, list]) -> dict[str, list]:
        sides = zip((tokenizer, target_tokenizer), (batch["source"], batch["target"]), strict=True)
        input_ids, labels = (one(texts, truncation=True)["input_ids"] for one, texts in sides)
        lengths = [max(len(side) for side in pair) for pair in zip(input_ids, labels, strict=True)]
        return {"input_ids": input_ids, "labels": labels, "length": lengths}

    options = {"remove_columns": ["source", "target"], "features": _TOKENIZED}
    return tokenize_rows(dataset, tokenize_batch, [tokenizer, target_tokenizer], **options)


def _read_aligned_files(
    folder: Path, columns: dict[str, str], prefixes: Mapping[str, str], encoding: str
) -> DatasetDict:
    """Read the splits that a folder holds as aligned files; there may be none."""
    names = {**NAMES, **{split: (prefix,) for split, prefix in prefixes.items()}}
    endings = [(f".{column}", f".{column}.gz") for column in columns.values()]
    sides = [find_splits(folder, plain_or_gzip, names) for plain_or_gzip in endings]
    for split, file in sides[0].items() | sides[1].items():
        if not all(split in side for side in sides):
            raise DataError(f"{file}: the file of the other language is missing, plain or .gz")
    return DatasetDict({split: _align([side[split] for side in sides], encoding) for split in sides[0]})


def _align(files: list[Path], encoding: str) -> Dataset:
    named = zip(files, _PAIR, strict=True)
    sides = [read_texts([file], encoding).rename_column("text", side) for file, side in named]
    with data_errors(f"{files[0]} and {files[1].name}"):  # if one has more lines
        return concatenate_datasets(sides, axis=1)
