# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Texts in a Parquet file: read some at a time, and written with the answers added."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..data.lines import local_path
from ..data.table_files import find_columns
from ..errors import DataError


# Rows that are read at a time, and that a row group of the answers has.
ROWS = 2**13


class ParquetTable:
    """A Parquet file. Answers go to a file of lines first, which can be gone on with; `write` makes Parquet of it.

    Attributes:
        header: The names of the columns.
        first, last: The rows to be answered: from `first` to before `last`.

    Raises:
        DataError: it is no such file, or the column is missing or holds no texts.
    """

    def __init__(self, name: str, column: str):
        self.name = name
        with self._errors():
            self.file = pq.ParquetFile(local_path(name), buffer_size=2**20)
            schema = self.file.schema_arrow
        self.header, self.first, self.last = schema.names, 0, self.file.metadata.num_rows
        (place,) = find_columns(name, self.header, [column])
        self.column, kind = self.header[place], schema.types[place]
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise DataError(f"{name}: the column {column!r} holds no texts but {schema.types[place]}")

    @property
    def rows(self) -> Iterator[str]:
        batches = self._batches([self.column])
        return islice((text or "" for batch in batches for text in batch.column(0).to_pylist()), self.first, self.last)

    def text(self, row: str) -> str:
        return row

    def beginning(self, names: Sequence[str]) -> list[str]:
        return [json.dumps([*names], ensure_ascii=False)]

    def line(self, row: str, names: Sequence[str], answers: Sequence[Any]) -> str:
        return json.dumps(answers, ensure_ascii=False)

    def write(self, answers: str, names: Sequence[str], output: str) -> None:
        """Write the rows with the answers of a file of lines."""
        kinds: list[type | None] = [None] * len(names)
        with open(answers, encoding="utf-8") as lines:
            for row in map(json.loads, islice(lines, 1, None)):
                kinds = [known or (None if one is None else type(one)) for known, one in zip(kinds, row, strict=True)]
        kinds = [
            known or (float if name.startswith(("probability", "score")) else str)
            for known, name in zip(kinds, names, strict=True)
        ]
        types = {float: pa.float64(), str: pa.string()}
        fields = [pa.field(name, types[kind]) for name, kind in zip(names, kinds, strict=True)]
        schema, part, place = pa.schema([*self.file.schema_arrow, *fields]), f"{answers}.parquet", 0
        try:
            with pq.ParquetWriter(part, schema) as writer, open(answers, encoding="utf-8") as lines:
                next(lines)  # the names
                for batch in self._batches(None):
                    begin = min(max(0, self.first - place), len(batch))
                    place += len(batch)
                    batch = batch.slice(begin, max(0, self.last - place + len(batch) - begin))
                    rows = list(map(json.loads, islice(lines, len(batch))))
                    added = zip(*rows, strict=True) if rows else [[]] * len(names)
                    arrays = [pa.array(column, field.type) for column, field in zip(added, fields, strict=True)]
                    writer.write_table(pa.Table.from_arrays([*batch.columns, *arrays], schema=schema))
            os.replace(part, output)
        finally:
            Path(part).unlink(missing_ok=True)

    def _batches(self, columns: list[str] | None) -> Iterator[Any]:
        with self._errors():
            yield from self.file.iter_batches(ROWS, columns=columns, use_threads=False)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.name}: no Parquet that can be read ({error})") from error
