# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Errors in the user's data."""

from collections.abc import Iterator
from contextlib import contextmanager


class DataError(ValueError):
    """A problem in the user's data; the message names the file, and the line where there is one."""


@contextmanager
def data_errors(source: str) -> Iterator[None]:
    """Raise an error of `datasets` about `source` as a `DataError` with the message of its first cause."""
    from datasets.exceptions import DatasetsError  # not at the top: `predict` needs no datasets

    try:
        yield
    except DataError:
        raise
    except (DatasetsError, FileNotFoundError, ValueError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise DataError(f"{source}: {cause}") from error
