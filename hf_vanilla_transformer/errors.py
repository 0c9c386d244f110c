# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Errors in what the user gives."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError


# What no file makes the model's own code raise.
FAULTS_OF_CODE = (TypeError, AttributeError, LookupError, NameError, AssertionError)
MODEL_FILE = str(Path(__file__).with_name("modeling_vanilla_transformer.py"))

# The extra that installs a package without which models answer lines and CSV.
EXTRAS = dict.fromkeys(("accelerate", "datasets", "matplotlib", "sacrebleu", "sklearn"), "train")


class DataError(ValueError):
    """A problem in what the user gave: data, files, settings. The message names it, and the line where there is one.

    Commands show it in one line; any other ValueError, which may be a fault of this package, keeps its traceback.
    """


def missing_extra(error: ImportError) -> str | None:
    """What to say of a package that is not installed, if an extra installs it."""
    package = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package not in EXTRAS:
        return None
    return f"{package} is not installed: pip install 'hf-vanilla-transformer[{EXTRAS[package]}]'"


@contextmanager
def user_errors() -> Iterator[None]:
    """Raise a ValueError as a `DataError`: under it, a library checks what the user gave."""
    try:
        yield
    except ValueError as error:
        raise error if isinstance(error, DataError) else DataError(str(error)) from error


@contextmanager
def named_errors(folder: str, what: str) -> Iterator[None]:
    """Raise an error of a library that reads files of this folder as one `DataError` with the folder's name."""
    try:
        yield
    except (ImportError, DataError):  # an extra; what is said already
        raise
    except UnpicklingError as error:  # torch's own message says how to run the code
        raise DataError(f"{folder}: no {what} can be read here (a file of torch that holds code)") from error
    except Exception as error:
        if isinstance(error, FAULTS_OF_CODE) and passes_through(error, MODEL_FILE):
            raise
        raise DataError(f"{folder}: no {what} can be read here ({error})") from error


def passes_through(error: BaseException, file: str) -> bool:
    """Whether code of a file was running when an error was raised."""
    return any(frame.f_code.co_filename == file for frame, _ in traceback.walk_tb(error.__traceback__))
