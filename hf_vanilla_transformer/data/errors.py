# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Errors in what the user gives, and the end of a training that was stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class DataError(ValueError):
    """A problem in the user's data, files or settings.

    Commands show it in one line. Any other ValueError may be a fault of this package, and keeps its traceback.
    """


class TrainingStopped(Exception):
    """`ResumableTrainer.stop` ended the training with a checkpoint."""


def check_at_least(minimum: int, **values: Any) -> None:
    """Raise a `DataError` unless each of these settings is None or a whole number of at least `minimum`."""
    for name, value in values.items():
        if value is not None and (not isinstance(value, int) or value < minimum):
            raise DataError(f"{name}: a whole number, at least {minimum}, not {value!r}")


@contextmanager
def user_errors() -> Iterator[None]:
    """Raise a library's ValueError about the user's settings or data as a `DataError`."""
    try:
        yield
    except ValueError as error:
        raise error if isinstance(error, DataError) else DataError(str(error)) from error


@contextmanager
def named_errors(folder: str, what: str, *others: type[Exception]) -> Iterator[None]:
    """Raise a library's error about a folder's files as a `DataError` with the folder's name; raise `others` as is."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (ImportError, DataError, *others)):
            raise
        raise DataError(f"{folder}: no {what} can be read here ({error})") from error
