# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Labelled text: load it, check it, split it, tokenize it.

Every source, from NSMC (the Naver sentiment movie corpus, https://github.com/e9t/nsmc) to a table of the user's own,
comes out of `load_labelled_text` in the same shape; `datasets` does the downloading, reading, caching and splitting.
"""

import csv
import gzip
import hashlib
import logging
import os
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import numpy as np
from datasets import (
    ClassLabel,
    Dataset,
    DatasetDict,
    DownloadConfig,
    DownloadManager,
    Features,
    Value,
    load_dataset,
)
from datasets.exceptions import DatasetsError
from transformers import PreTrainedTokenizerBase


logger = logging.getLogger(__name__)

SAMPLES = Path(__file__).parent / "samples"
SPLITS = ("train", "validation", "test")
NSMC_URL = "https://raw.githubusercontent.com/e9t/nsmc/master"
NSMC_FILES = {"train": "ratings_train.txt", "test": "ratings_test.txt"}
NSMC_SHA256 = {
    "train": "e03b7d14e9e41be8d464a28057cd25d7396c53e67aa7fd5f7e552c59b0ee2940",
    "test": "8ac9f64052f11dbf6ae0acb5e038f03d90a76f0eda7820cfb3a92d02edfcebda",
}
NSMC_COLUMNS = ["id", "document", "label"]
NSMC_LABELS = {"0": "negative", "1": "positive"}
# NSMC's files were written by two CSV writers in turn: a document with a double quote is quoted twice.
NSMC_QUOTING_LEVELS = 2

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NO_ROW = "the file ends here, without any row"
CUT_OFF = "the last line is incomplete, the file has been cut off"
TAB_SEPARATED_SUFFIXES = (".tsv", ".txt")
JSON_SUFFIXES = (".json", ".jsonl")
TABLE_SUFFIXES = (".csv", *TAB_SEPARATED_SUFFIXES, *JSON_SUFFIXES)
# The split that a table in a folder holds, by the file's name.
TABLE_NAMES = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "dev": "validation",
    "test": "test",
}
HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?")


class DataError(ValueError):
    """A problem in the user's data; the message is one line, with file and line number where there is one."""


def load_labelled_text(
    source: str | os.PathLike,
    *,
    text_column: str = "document",
    label_column: str = "label",
    validation_fraction: float = 0.05,
    seed: int = 42,
    cache_dir: str | os.PathLike | None = None,
    nsmc_url: str = NSMC_URL,
) -> DatasetDict:
    """Load texts with one label each, as the splits `train`, `validation` and `test`.

    A split that the source does not have is cut from `train`, stratified by label: the same rows for the same seed.
    The source's own `test` is never cut. Rows without text are dropped, and the log says how many.

    Args:
        source: One of
            `"sample"`: the reviews that come with the package;
            `"nsmc"`: NSMC, downloaded once;
            a folder that holds `ratings_train.txt` and `ratings_test.txt` in NSMC's format;
            a table: `.csv`, `.tsv` or `.txt` (tab-separated, one row a line, fields CSV-quoted or not), `.json` or
            `.jsonl`;
            any other folder or Hub name that `datasets.load_dataset` takes.
        text_column: The column with the texts.
        label_column: The column with the labels: integers or strings.
        validation_fraction: The share of the rows that is cut from `train` for a split, at least one row a label.
        seed: The seed of the cut.
        cache_dir: The folder for downloads and prepared data; by default that of `datasets`.
        nsmc_url: Where `"nsmc"` is downloaded from. What comes from the official address must be the official files
            byte for byte; other files from elsewhere are only remarked on in the log.

    Returns:
        The three splits, each with the columns `text` (string) and `label` (`ClassLabel`). The label's names are
        `negative` and `positive` for NSMC's format, else the labels found, sorted.

    Raises:
        DataError: The source is not there, or there is something wrong in it.
    """
    if not 0 < validation_fraction < 1:
        raise DataError(f"validation_fraction must lie between 0 and 1, not be {validation_fraction}")
    source = os.fspath(source)
    if not source:
        raise DataError("the name of the data is empty")
    columns = [text_column, label_column]
    if text_column == label_column:
        raise DataError(f"texts and labels are the same column, {text_column!r}")
    with one_line_errors(source):
        if source == "nsmc":
            nsmc_files = _download_nsmc(nsmc_url, cache_dir)
        else:
            nsmc_files = _find_nsmc_files(SAMPLES if source == "sample" else Path(source).expanduser())
        if nsmc_files:
            check_columns(source, NSMC_COLUMNS, columns)
            data = _read_tab_separated(nsmc_files, NSMC_COLUMNS, columns, NSMC_QUOTING_LEVELS, cache_dir)
        else:
            data = known_splits(source, read_tables(source, columns, cache_dir))
            check_texts(source, data, text_column)
            _check_labels(source, data, label_column)
        label_names = NSMC_LABELS if nsmc_files and label_column == "label" else _find_label_names(data, label_column)
        data = DatasetDict(
            {
                split: _keep_text_and_label(rows, f"{source}, split {split}", text_column, label_column, label_names)
                for split, rows in data.items()
            }
        )
        if len(label_names) < 2:
            raise DataError(f"{source}: the column {label_column!r} has fewer than two labels: {list(label_names)}")
        return _complete_splits(data, source, validation_fraction, seed)


def tokenize(
    dataset: Dataset | DatasetDict,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None = None,
) -> Dataset | DatasetDict:
    """Turn texts into token ids, for `Trainer`.

    There is no attention mask: `DataCollatorWithPadding` makes it when it pads. `length` is what
    `train_sampling_strategy="group_by_length"` sorts by.

    Args:
        dataset: What `load_labelled_text` returns, or one split of it.
        tokenizer: The model's tokenizer.
        max_length: The number of tokens that a text is cut to; by default `tokenizer.model_max_length`.

    Returns:
        The same rows with the columns `input_ids`, `labels` and `length`. No row is empty: see `encode`.

    Raises:
        ValueError: `max_length` is less than 1.
    """
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length must be at least 1, not {max_length}")
    return dataset.rename_column("label", "labels").map(
        _tokenize_batch,
        batched=True,
        remove_columns=["text"],
        fn_kwargs={"tokenizer": tokenizer, "max_length": max_length},
        desc="Tokenizing",
    )


def _tokenize_batch(
    batch: dict[str, list], tokenizer: PreTrainedTokenizerBase, max_length: int | None
) -> dict[str, list]:
    input_ids = encode(batch["text"], tokenizer, max_length)
    return {"input_ids": input_ids, "length": [len(ids) for ids in input_ids]}


def encode(texts: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int | None = None) -> list[list[int]]:
    """Turn texts into token ids, at least one a text, since the model needs one.

    Args:
        texts: Any texts.
        tokenizer: The model's tokenizer.
        max_length: The number of tokens that a text is cut to; by default `tokenizer.model_max_length`.

    Returns:
        The ids of each text. A text that gives no token (nothing but zero-width characters, say) is the unknown
        token alone.

    Raises:
        ValueError: The tokenizer has no unknown token.
    """
    if tokenizer.unk_token_id is None:
        raise ValueError("the tokenizer has no unk_token")
    encoded = tokenizer(
        texts,
        truncation=True,
        max_length=max_length,
        return_attention_mask=False,
        return_token_type_ids=False,
    )
    return [ids or [tokenizer.unk_token_id] for ids in encoded["input_ids"]]


def iterate_lines(file: str | os.PathLike) -> Iterator[str]:
    """Read a text file line by line.

    Args:
        file: UTF-8, with or without a byte order mark; gzip where the name ends in `.gz`.

    Yields:
        The lines without their ends. They end with a line feed, alone or after a carriage return, and with none of
        Unicode's other line separators: reviews contain those.

    Raises:
        OSError: The file cannot be read.
        DataError: A line is not UTF-8, or the compressed file is damaged.
    """
    file = os.fspath(file)
    with (gzip.open if file.endswith(".gz") else open)(file, "rb") as lines:
        try:
            for _, text, _ in _decode_lines(lines, file):
                yield text
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{file}: {error}") from error


def read_lines(file: str | os.PathLike) -> list[str]:
    """Read the lines of a text file at once, as `iterate_lines` does one by one."""
    return list(iterate_lines(file))


def read_standard_input() -> list[str]:
    """Read the lines of standard input, as `read_lines` does those of a file, whatever the locale."""
    return [text for _, text, _ in _decode_lines(sys.stdin.buffer, "standard input")]


def squeeze(text: str) -> str:
    """The text with single spaces between its words, and none round it."""
    return " ".join(text.split())


@contextmanager
def one_line_errors(source: str) -> Iterator[None]:
    """Turn what `datasets` raises about the user's data into a `DataError` of one line.

    Args:
        source: What the line begins with.

    Raises:
        DataError: in place of what was raised in the context.
    """
    try:
        yield
    except DataError:
        raise
    except (DatasetsError, OSError, ValueError) as error:
        raise DataError(f"{source}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """What went wrong first, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__


def _download_nsmc(base_url: str, cache_dir: str | os.PathLike | None) -> dict[str, Path]:
    """Download NSMC's two files, unless they are in the cache, and check them."""
    if not base_url.startswith(("http://", "https://")):
        raise DataError(f"{base_url}: not an http or https address; a folder is given as the source itself")
    config = DownloadConfig(
        cache_dir=Path(cache_dir) / "downloads" if cache_dir else None,
        use_etag=False,  # what is in the cache needs no network
    )
    nsmc_files = {}
    for split, name in NSMC_FILES.items():
        url = f"{base_url.rstrip('/')}/{name}"
        try:
            file = Path(DownloadManager(download_config=config).download(url))
        except (OSError, ImportError) as error:
            raise DataError(f"{url}: cannot be downloaded: {_reason(error)}") from error
        try:
            _check_tab_separated(file, url, NSMC_COLUMNS, NSMC_LABELS)
            _check_nsmc_checksum(file, split, url, official=base_url.rstrip("/") == NSMC_URL)
        except DataError:
            file.unlink()  # the next try is to download it anew
            raise
        nsmc_files[split] = file
    return nsmc_files


def _find_nsmc_files(folder: Path) -> dict[str, Path] | None:
    """NSMC's two files in a folder, checked; None if there is neither.

    Raises:
        DataError: Only one of them is there, or there is something wrong in one.
    """
    nsmc_files = {split: folder / name for split, name in NSMC_FILES.items()}
    missing = [file for file in nsmc_files.values() if not file.is_file()]
    if len(missing) == len(nsmc_files):
        return None
    if missing:
        raise DataError(f"{missing[0]}: no such file")
    for split, file in nsmc_files.items():
        _check_tab_separated(file, str(file), NSMC_COLUMNS, NSMC_LABELS)
        if folder != SAMPLES:
            _check_nsmc_checksum(file, split, str(file), official=False)
    return nsmc_files


def _check_nsmc_checksum(file: Path, split: str, url: str, official: bool) -> None:
    """Compare a downloaded file with the official one.

    Raises:
        DataError: It differs, although it comes from the official address.
    """
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() == NSMC_SHA256[split]:
        return
    message = f"{url}: not the official file: {len(content):,} bytes with another SHA-256 than {NSMC_SHA256[split]}"
    if official:
        raise DataError(message)
    logger.warning(message)


def _check_tab_separated(
    file: Path, name: str, header: list[str] | None = None, labels: Collection[str] | None = None
) -> list[str]:
    """Check a tab-separated file line by line.

    A byte order mark at the start, and a last row without line feed, are let pass.

    Args:
        file: The file.
        name: What the file is called in the message.
        header: What the header must be; by default any.
        labels: What the last column must be one of; by default anything.

    Returns:
        The header.

    Raises:
        DataError: A row has not as many columns as the header, there is no row, or what `header` and `labels` ask
            for does not hold. The message is `NAME, line N: reason`.
    """
    number = 0
    with open(file, "rb") as lines:
        for number, text, whole in _decode_lines(lines, name):
            fields, problem = text.split("\t"), None
            if number == 1:
                header = header or fields
                if fields != header:
                    problem = f"the header is not {' '.join(header)}, with tabs between"
            elif len(fields) != len(header):
                problem = f"{len(fields)} columns instead of {len(header)}"
            elif labels and fields[-1] not in labels:
                problem = f"the label is {fields[-1]!r}, not {' or '.join(labels)}"
            if problem:
                raise DataError(f"{name}, line {number}: {problem if whole else CUT_OFF}")
    if number < 2:
        raise DataError(f"{name}, line {number + 1}: {NO_ROW}")
    return header


def _check_comma_separated(file: Path, name: str) -> list[str]:
    """Check a comma-separated file row by row; lines without anything are let pass.

    Returns:
        The header.

    Raises:
        DataError: A row has not as many columns as the header, there is no row, or the quoting is wrong. The message
            is `NAME, line N: reason`, with the last line of a row that covers several.
    """
    header = None
    with open(file, encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines, strict=True)
        rows = 0
        try:
            for fields in filter(None, reader):
                header = header or fields
                if len(fields) != len(header):
                    raise DataError(f"{name}, line {reader.line_num}: {len(fields)} columns instead of {len(header)}")
                rows += 1
        except csv.Error as error:
            raise DataError(f"{name}, line {reader.line_num}: {error}") from error
    if rows < 2:
        raise DataError(f"{name}, line {reader.line_num + 1}: {NO_ROW}")
    return header


def _decode_lines(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str, bool]]:
    """The number of each line, its text without its end, and whether it has its line feed.

    Raises:
        DataError: A line is not UTF-8.
    """
    for number, line in enumerate(lines, start=1):
        whole = line.endswith(b"\n")
        try:
            text = line.removeprefix(BYTE_ORDER_MARK if number == 1 else b"").decode()
        except UnicodeDecodeError as error:
            cut_off = not whole and error.reason == "unexpected end of data"
            reason = CUT_OFF if cut_off else f"byte {error.start + 1} is not UTF-8 ({error.reason})"
            raise DataError(f"{name}, line {number}: {reason}") from None
        yield number, text.removesuffix("\n").removesuffix("\r"), whole


def _read_tab_separated(
    tables: dict[str, Path],
    header: list[str],
    columns: list[str],
    quoting_levels: int,
    cache_dir: str | os.PathLike | None,
) -> DatasetDict:
    """Read some columns of tab-separated files as strings, a row a line, and undo the fields' quoting."""
    data = load_dataset(
        "csv",
        data_files={split: escape(str(file)) for split, file in tables.items()},
        sep="\t",
        lineterminator="\n",
        quoting=csv.QUOTE_NONE,
        header=0,
        column_names=header,
        na_filter=False,
        features=Features({column: Value("string") for column in columns}),
        cache_dir=cache_dir,
    )
    return data.map(_unquote_batch, batched=True, fn_kwargs={"levels": quoting_levels}, desc="Undoing the quotes")


def _unquote_batch(batch: dict[str, list[str]], levels: int) -> dict[str, list[str]]:
    unquoted = {}
    for column, fields in batch.items():
        fields = [field.removesuffix("\r") for field in fields]
        for _ in range(levels):
            fields = [_unquote(field) for field in fields]
        unquoted[column] = fields
    return unquoted


def _unquote(field: str) -> str:
    """Undo one level of CSV quoting; a field that is not quoted by CSV's rules stays as it is."""
    if len(field) < 2 or not field.startswith('"') or not field.endswith('"'):
        return field
    inside = field[1:-1]
    return field if '"' in inside.replace('""', "") else inside.replace('""', '"')


def read_tables(source: str, columns: list[str], cache_dir: str | os.PathLike | None = None) -> DatasetDict:
    """Read a table, a folder or a data set of the Hub.

    Args:
        source: A `.csv`, `.tsv`, `.txt`, `.json` or `.jsonl` file; a folder with such files, named after their splits
            (`train.csv`, `test.csv`); or another folder or a Hub name that `datasets.load_dataset` takes.
        columns: The columns that must be there; of a column that holds a mapping, as in the Hub's translation data
            sets, one entry is named `column.entry`.
        cache_dir: The folder for downloads and prepared data; by default that of `datasets`.

    Returns:
        The splits that there are; a file is the split `train`.

    Raises:
        DataError: The source is not there, something is wrong in it, or it lacks a column.
    """
    path = Path(source).expanduser()
    if path.is_file():
        data = DatasetDict({"train": _read_table(path, columns, cache_dir)})
    elif path.is_dir():
        tables = _tables_of_splits(path)
        data = DatasetDict({split: _read_table(file, columns, cache_dir) for split, file in tables.items()})
        data = data or load_dataset(str(path.resolve()), cache_dir=cache_dir)
    elif path.suffix in TABLE_SUFFIXES or not HUB_NAME.fullmatch(source):
        raise DataError(f"{source}: no such file or folder")
    else:
        with one_line_errors(f"{source}: no such file or folder, and not a data set on the Hub that can be had"):
            data = load_dataset(source, cache_dir=cache_dir)
    data = data.flatten()
    for rows in data.values():
        check_columns(source, list(rows.features), columns)
    return data


def known_splits(source: str, data: DatasetDict) -> DatasetDict:
    """Leave out splits that are none of `SPLITS`, such as one of unlabelled texts.

    Args:
        source: What the data are called in the message.
        data: What `read_tables` returned.

    Returns:
        The others, `train` among them.

    Raises:
        DataError: There is no `train`.
    """
    if "train" not in data:
        raise DataError(f"{source}: no split train; the splits are {', '.join(data)}")
    return DatasetDict({split: data[split] for split in SPLITS if split in data})


def check_texts(source: str, data: DatasetDict, column: str) -> None:
    """See that a column holds strings.

    Args:
        source: What the data are called in the message.
        data: What `read_tables` returned.
        column: A column of it.

    Raises:
        DataError: It holds something else.
    """
    for rows in data.values():
        if not _has_type(feature := rows.features[column], r"(large_)?string"):
            raise DataError(f"{source}: the column {column!r} holds no texts but {feature}")


def _check_labels(source: str, data: DatasetDict, column: str) -> None:
    for rows in data.values():
        if not _has_type(feature := rows.features[column], r"(large_)?string|bool|u?int\d+"):
            raise DataError(f"{source}: the column {column!r} holds neither integers nor strings but {feature}")


def _has_type(feature: object, pattern: str) -> bool:
    """Whether the name of a feature's Arrow type matches; lists and the like have none."""
    return re.fullmatch(pattern, str(getattr(feature, "dtype", None))) is not None


def _tables_of_splits(folder: Path) -> dict[str, Path]:
    """A folder's tables by split; none where there is a table that is not named after one, or two of one split."""
    tables = [file for file in sorted(folder.iterdir()) if file.suffix.lower() in TABLE_SUFFIXES]
    splits = {TABLE_NAMES.get(file.stem.lower()): file for file in tables}
    return {} if None in splits or len(splits) < len(tables) else splits


def _read_table(file: Path, columns: list[str], cache_dir: str | os.PathLike | None) -> Dataset:
    """Read one file.

    Raises:
        DataError: The file is of no known kind, is not UTF-8, or does not have the columns.
    """
    name, suffix = str(file), file.suffix.lower()
    if suffix in TAB_SEPARATED_SUFFIXES:
        header = [_unquote(column) for column in _check_tab_separated(file, name)]
        check_columns(name, header, columns)
        return _read_tab_separated({"train": file}, header, columns, 1, cache_dir)["train"]
    if suffix not in TABLE_SUFFIXES:
        raise DataError(f"{name}: not a .csv, .tsv, .txt, .json or .jsonl file")
    if not read_lines(file):
        raise DataError(f"{name}, line 1: {NO_ROW}")
    if suffix in JSON_SUFFIXES:
        return load_dataset("json", data_files=escape(name), split="train", cache_dir=cache_dir)
    check_columns(name, _check_comma_separated(file, name), columns)
    return load_dataset(
        "csv",
        data_files=escape(name),
        split="train",
        na_filter=False,
        features=Features({column: Value("string") for column in columns}),
        cache_dir=cache_dir,
    )


def check_columns(source: str, found: list[str], wanted: list[str]) -> None:
    """See that every column is there.

    Args:
        source: What the data are called in the message.
        found: The columns that are there.
        wanted: The columns that must be.

    Raises:
        DataError: One is not, or two have its name; the message lists those that are.
    """
    for column in wanted:
        if found.count(column) != 1:
            number = "two columns" if column in found else "no column"
            raise DataError(f"{source}: {number} {column!r}; the columns are {', '.join(found)}")


def _find_label_names(data: DatasetDict, label_column: str) -> dict[str, str]:
    """The name of each label, by the label as a string; in numerical order if all are integers."""
    feature = next(iter(data.values())).features[label_column]
    if isinstance(feature, ClassLabel):
        return {str(number): name for number, name in enumerate(feature.names)}
    labels = {str(label).strip() for rows in data.values() for label in rows.unique(label_column) if label is not None}
    labels.discard("")
    integers = all(re.fullmatch(r"[+-]?\d+", label) for label in labels)
    return {label: label for label in sorted(labels, key=int if integers else None)}


def _keep_text_and_label(
    rows: Dataset, name: str, text_column: str, label_column: str, label_names: dict[str, str]
) -> Dataset:
    """Reduce rows to the columns `text` and `label`, without those that have no text.

    Raises:
        DataError: A row has no label, or none has a text.
    """
    kept = rows.map(
        _keep_batch,
        with_indices=True,
        batched=True,
        remove_columns=rows.column_names,
        features=Features({"text": Value("string"), "label": ClassLabel(names=list(label_names.values()))}),
        fn_kwargs={
            "name": name,
            "text_column": text_column,
            "label_column": label_column,
            "labels": list(label_names),
        },
        desc="Reading texts and labels",
    )
    if not len(kept):
        raise DataError(f"{name}: no row has a text")
    if dropped := len(rows) - len(kept):
        logger.warning(
            f"{name}: {dropped:,} of {len(rows):,} rows have no text and are dropped, {len(kept):,} are left"
        )
    return kept


def _keep_batch(
    batch: dict[str, list], indices: list[int], name: str, text_column: str, label_column: str, labels: list[str]
) -> dict[str, list]:
    label_ids = {label: number for number, label in enumerate(labels)}
    kept = {"text": [], "label": []}
    for index, text, label in zip(indices, batch[text_column], batch[label_column], strict=True):
        if text is None or not text.strip():
            continue
        label = "" if label is None else str(label).strip()
        if label not in label_ids:
            raise DataError(f"{name}, row {index + 1}: no label in the column {label_column}")
        kept["text"].append(text)
        kept["label"].append(label_ids[label])
    return kept


def _complete_splits(data: DatasetDict, source: str, fraction: float, seed: int) -> DatasetDict:
    """Cut from `train` what is missing of `test` and `validation`."""
    train, held_out = data["train"], {}
    for split in ("test", "validation"):
        if split in data:
            held_out[split] = data[split]
            continue
        train, held_out[split] = _cut(train, f"{source}, split {split}", fraction, seed)
        logger.log(
            logging.WARNING if split == "test" else logging.INFO,
            f"{source}: {split} is {len(held_out[split]):,} rows cut from train, {len(train):,} are left",
        )
    return DatasetDict({"train": train, "validation": held_out["validation"], "test": held_out["test"]})


def _cut(rows: Dataset, name: str, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
    """Cut a share off the rows of each label; both parts keep the rows' order.

    `Dataset.train_test_split` would do, but reads the labels one by one: ten seconds for NSMC.

    Raises:
        DataError: A label does not have the two rows that two parts need.
    """
    labels = np.array(rows["label"][:])
    generator = np.random.default_rng(seed)
    is_cut = np.zeros(len(rows), dtype=bool)
    for label in np.unique(labels):
        candidates = generator.permutation(np.flatnonzero(labels == label))
        if len(candidates) < 2:
            label_name = rows.features["label"].int2str(int(label))
            raise DataError(f"{name}: cannot be cut from train, where one row alone has the label {label_name!r}")
        size = min(max(1, round(fraction * len(candidates))), len(candidates) - 1)
        is_cut[candidates[:size]] = True
    return rows.select(np.flatnonzero(~is_cut)), rows.select(np.flatnonzero(is_cut))
