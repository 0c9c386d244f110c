# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Errors in what the user gives."""

from collections.abc import Iterator
from contextlib import contextmanager


class DataError(ValueError):
    """A problem in what the user gave: data, files, settings. The message names it, and the line where there is one.

    Commands show it in one line; any other ValueError, which may be a fault of this package, keeps its traceback.
    """


@contextmanager
def user_errors() -> Iterator[None]:
    """Raise a ValueError as a `DataError`: under it, a library checks what the user gave."""
    try:
        yield
    except ValueError as error:
        raise error if isinstance(error, DataError) else DataError(str(error)) from error


@contextmanager
def panic_as_error(name: str) -> Iterator[None]:
    """Raise a panic of a library in Rust, which is no Exception, as a `DataError` about the folder of this name."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise DataError(f"{name}: the tokenizer fails ({error})") from error
