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
