# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Labelled text: NSMC, the embedded sample, or the user's own; loaded, checked, cut into splits, tokenized."""

import csv
import hashlib
import logging
from importlib import resources
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, DownloadConfig, DownloadManager, Features, Value, load_dataset
from datasets.exceptions import DatasetsError
from transformers import PreTrainedTokenizerBase


logger = logging.getLogger(__name__)

NSMC_URL = "https://raw.githubusercontent.com/e9t/nsmc/master"
NSMC_LABELS = ["negative", "positive"]
NSMC_COLUMNS = ["id", "document", "label"]
NSMC_FILES = {"train": "ratings_train.txt", "test": "ratings_test.txt"}
NSMC_SHA256 = {
    "train": "e03b7d14e9e41be8d464a28057cd25d7396c53e67aa7fd5f7e552c59b0ee2940",
    "test": "8ac9f64052f11dbf6ae0acb5e038f03d90a76f0eda7820cfb3a92d02edfcebda",
}


class DataError(ValueError):
    """A fault in the user's data: one line that names the file, and the line where there is one."""


def load_labelled_text(
    source: str,
    *,
    text_column: str = "document",
    label_column: str = "label",
    validation_fraction: float = 0.05,
    seed: int = 42,
    cache_dir: str | None = None,
    nsmc_url: str = NSMC_URL,
) -> DatasetDict:
    """Load texts and labels, with a validation split cut from train.

    Args:
        source: One of
            `"sample"`, the reviews that come with this package;
            `"nsmc"`, the Naver sentiment movie corpus, downloaded once and cached by `datasets`;
            a folder that holds NSMC's `ratings_train.txt` and `ratings_test.txt`;
            a `.tsv`, `.csv`, `.json` or `.jsonl` file, or a folder or Hub data set that `datasets` loads.
        text_column: The column with the texts; NSMC's is "document".
        label_column: The column with the labels, whole numbers or strings; NSMC's is "label".
        validation_fraction: Share of train that becomes validation (and, where the source has no test split, another
            such share that becomes test), with the labels in equal proportion.
        seed: Seed of the cut: the same seed gives the same rows.
        cache_dir: Where `datasets` keeps what it made; by default its own cache.
        nsmc_url: Where `"nsmc"` is downloaded from, without the files' names.

    Returns:
        Splits `train`, `validation` and `test` with the columns `text`, a string that is not empty, and `label`, a
        `ClassLabel`.

    Raises:
        DataError: the source is not there, cannot be read, or has a fault.
    """
    if source == "sample":
        splits = _load_nsmc(Path(str(resources.files(__package__) / "samples")), cache_dir)
    elif source == "nsmc":
        splits = _load_nsmc(_download_nsmc(nsmc_url, cache_dir), cache_dir)
    elif any(Path(source, name).exists() for name in NSMC_FILES.values()):
        splits = _load_nsmc(Path(source), cache_dir)
    else:
        splits = _load_other(source, text_column, label_column, cache_dir)
    splits = DatasetDict({name: _drop_empty(split, f"{source}, {name}") for name, split in splits.items()})

    if "test" not in splits:
        logger.warning("%s has no test split: %g of train is cut off for it", source, validation_fraction)
        splits = _cut(splits, "test", source, validation_fraction, seed)
    return _cut(splits, "validation", source, validation_fraction, seed)


# --- NSMC's format ---


def _download_nsmc(url: str, cache_dir: str | None) -> dict[str, str]:
    """Download both files; from the official address, see that they are the official ones."""
    manager = DownloadManager(download_config=DownloadConfig(cache_dir=cache_dir, max_retries=1))
    paths = {}
    for split, name in NSMC_FILES.items():
        address = f"{url}/{name}"
        try:
            paths[split] = manager.download(address)
        except (OSError, DatasetsError) as error:
            raise DataError(f"{address}: cannot be downloaded ({error})") from error
        if url == NSMC_URL and hashlib.sha256(Path(paths[split]).read_bytes()).hexdigest() != NSMC_SHA256[split]:
            raise DataError(f"{address}: came as {paths[split]}, which is not the official file; delete it, try again")
    return paths


def _load_nsmc(files: Path | dict[str, str], cache_dir: str | None) -> DatasetDict:
    """Check NSMC's two files line by line, then load them."""
    if isinstance(files, Path):
        files = {split: str(files / name) for split, name in NSMC_FILES.items()}
    for file in files.values():
        _check_nsmc_file(file)
    # Quotes are left alone here, for a field may hold an odd number of them; `_unquote` undoes the quoting.
    splits = load_dataset(
        "csv",
        data_files=files,
        delimiter="\t",
        quoting=csv.QUOTE_NONE,
        keep_default_na=False,
        features=Features({"id": Value("string"), "document": Value("string"), "label": ClassLabel(names=NSMC_LABELS)}),
        cache_dir=cache_dir,
    )
    return splits.map(
        lambda batch: {"text": [_unquote(_unquote(text)) for text in batch["document"]]},
        batched=True,
        remove_columns=["id", "document"],
    )


def _check_nsmc_file(file: str) -> None:
    """Raise a DataError that names file and line unless a file is in NSMC's format."""
    try:
        content = Path(file).read_bytes()
    except FileNotFoundError:
        raise DataError(f"{file}: no such file") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from error
    # Not str.splitlines, which would also split at characters like U+2028 inside a review.
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, raw in enumerate(lines, start=1):
        where = f"{file}, line {number}"
        try:
            line = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{where}: not UTF-8 ({error.reason} at byte {error.start + 1} of the line)") from error
        fields = line.split("\t")
        if number == 1:
            if fields != NSMC_COLUMNS:
                raise DataError(f"{where}: the columns are {', '.join(fields)}, not {', '.join(NSMC_COLUMNS)}")
        elif len(fields) != len(NSMC_COLUMNS):
            reason = "the file is truncated" if number == len(lines) else "wrong number of columns"
            raise DataError(f"{where}: {reason} ({len(fields)} columns instead of {len(NSMC_COLUMNS)})")
        elif "\r" in line:
            raise DataError(f"{where}: a carriage return inside the line")
        elif fields[-1] not in ("0", "1"):
            raise DataError(f"{where}: the label is {fields[-1]!r}, neither 0 nor 1")
    if len(lines) < 2:
        raise DataError(f"{file}, line {len(lines) + 1}: the file ends before its first review")


def _unquote(field: str) -> str:
    """Undo CSV quoting once: take off the quotes round a field, and halve the doubled ones inside.

    NSMC's fields with a quote went through CSV quoting twice when the files were made.
    """
    inner = field[1:-1]
    if len(field) < 2 or field[0] != '"' or field[-1] != '"' or '"' in inner.replace('""', ""):
        return field
    return inner.replace('""', '"')


# --- Other sources ---


def _load_other(source: str, text_column: str, label_column: str, cache_dir: str | None) -> DatasetDict:
    """Load a file, folder or Hub data set by `datasets`, and bring its two columns into our form."""
    readers: dict[str, tuple[str, dict[str, Any]]] = {
        ".tsv": ("csv", {"delimiter": "\t"}),
        ".csv": ("csv", {}),
        ".json": ("json", {}),
        ".jsonl": ("json", {}),
    }
    path = Path(source)
    if path.is_file():
        if path.suffix not in readers:
            raise DataError(f"{source}: not a {', '.join(readers)} file")
        builder, options = readers[path.suffix]
        options = {**options, "data_files": {"train": source}}
    else:
        builder, options = source, {}
    try:
        splits = load_dataset(builder, cache_dir=cache_dir, **options)
    except (DatasetsError, OSError, ValueError, UnicodeError) as error:
        cause = error.__cause__ or error
        raise DataError(f"{source}: cannot be loaded ({' '.join(str(cause).split())})") from error
    if "train" not in splits:
        raise DataError(f"{source}: no train split, only {', '.join(splits)}")
    splits = DatasetDict({name: splits[name] for name in ("train", "validation", "test") if name in splits})

    for name, split in splits.items():
        for column in (text_column, label_column):
            if column not in split.column_names:
                raise DataError(f"{source}, {name}: no column {column!r}, only {', '.join(split.column_names)}")
    splits = splits.select_columns([text_column, label_column])
    splits = splits.rename_columns({text_column: "text", label_column: "label"})
    if isinstance(splits["train"].features["label"], ClassLabel):
        return splits
    return _number_labels(splits, source)


def _number_labels(splits: DatasetDict, source: str) -> DatasetDict:
    """Turn whole numbers or strings into a ClassLabel whose names are theirs, sorted."""
    kinds = set()
    for name, split in splits.items():
        for row, label in enumerate(split["label"], start=1):
            if not isinstance(label, (int, str)) or label == "":
                raise DataError(f"{source}, {name}, row {row}: the label is {label!r}, not a whole number or a string")
            kinds.add(label)
    names = [str(label) for label in sorted(kinds, key=lambda label: (isinstance(label, str), label))]
    features = Features({"text": Value("string"), "label": ClassLabel(names=names)})
    return splits.map(
        lambda batch: {"label": [names.index(str(label)) for label in batch["label"]]},
        batched=True,
        features=features,
    )


# --- Splits and tokens ---


def _drop_empty(split: Dataset, name: str) -> Dataset:
    kept = split.filter(lambda batch: [bool(text and text.strip()) for text in batch["text"]], batched=True)
    if dropped := len(split) - len(kept):
        logger.warning("%s: %d of %d texts are empty and dropped; %d left", name, dropped, len(split), len(kept))
    return kept


def _cut(splits: DatasetDict, name: str, source: str, fraction: float, seed: int) -> DatasetDict:
    """Cut a new split from train, unless it is there."""
    if name in splits:
        return splits
    try:
        parts = splits["train"].train_test_split(test_size=fraction, seed=seed, stratify_by_column="label")
    except ValueError as error:
        raise DataError(f"{source}: no {name} split can be cut from train ({error})") from error
    return DatasetDict({**splits, "train": parts["train"], name: parts["test"]})


def tokenize(
    data: Dataset | DatasetDict, tokenizer: PreTrainedTokenizerBase, max_length: int | None = None
) -> Dataset | DatasetDict:
    """Turn texts into what Trainer takes.

    Args:
        data: Rows with `text` and, where they are known, `label`.
        tokenizer: The model's tokenizer.
        max_length: Tokens kept of a text; by default the tokenizer's limit.

    Returns:
        The same rows in the same order with `input_ids`, `labels` where there were labels, and `length`, the number
        of tokens, by which Trainer groups. A text of which no token is left gets the unknown token, since the model
        needs one.
    """

    def encode(batch: dict[str, list]) -> dict[str, list]:
        ids = tokenizer(batch["text"], truncation=True, max_length=max_length)["input_ids"]
        ids = [row or [tokenizer.unk_token_id] for row in ids]
        return {"input_ids": ids, "length": [len(row) for row in ids]}

    tokenized = data.map(encode, batched=True, remove_columns=["text"])
    columns = tokenized.column_names if isinstance(data, Dataset) else tokenized["train"].column_names
    return tokenized.rename_column("label", "labels") if "label" in columns else tokenized
