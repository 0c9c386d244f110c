# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Errors in the user's data, in one line each."""

from collections.abc import Iterator
from contextlib import contextmanager


class DataError(ValueError):
    """A problem in the user's data; the message is one line, with file and line number where there is one."""


@contextmanager
def one_line_errors(source: str) -> Iterator[None]:
    """Turn what `datasets` raises about the user's data into a `DataError` of one line that begins with `source`."""
    from datasets.exceptions import DatasetsError  # not at the top: `predict` needs no datasets

    try:
        yield
    except DataError:
        raise
    except (DatasetsError, OSError, ValueError) as error:
        raise DataError(f"{source}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """The message of the first error in the chain of causes, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__
