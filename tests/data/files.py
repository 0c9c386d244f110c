"""Files to load, in NSMC's format and as tables, and what is asserted of the data."""

import contextlib
import csv
import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Value

from hf_vanilla_transformer.data.errors import DataError


HEADER = "id\tdocument\tlabel\n"


def rows(count: int, start: int = 0) -> str:
    """Rows in NSMC's format, as many positive as negative ones."""
    return "".join(f"{i}\t{i}번째 감상\t{i % 2}\n" for i in range(start, start + count))


def write_table(path: Path, records: list[dict]) -> Path:
    if path.suffix == ".parquet":
        Dataset.from_list(records).to_parquet(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(records), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    else:
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, records[0], delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows(records)
    return path


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines; gzip, if the name says so."""
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def assert_shape(loaded: DatasetDict, names: list[str]) -> None:
    assert list(loaded) == ["train", "validation", "test"]
    for split in loaded.values():
        assert split.features == {"text": Value("string"), "label": ClassLabel(names=names)}


@contextlib.contextmanager
def data_error(*parts: str) -> Iterator[None]:
    """What is done under it must raise a `DataError` whose message is one line that holds these parts."""
    with pytest.raises(DataError) as error:
        yield
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message
