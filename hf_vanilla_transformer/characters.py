# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The characters of a text that can still matter to a model."""

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import DataError


# More than any piece has, also where NFKC composes three or four to one: what lies behind so many is not read.
CHARACTERS_PER_TOKEN = 64


def part_that_matters(texts: list[str], tokens: float, side: str) -> list[str]:
    """The part of each text that can matter to so many tokens; the rest is on the `side` where a tokenizer cuts."""
    limit = int(min(CHARACTERS_PER_TOKEN * tokens, 2**30))
    part = slice(-limit, None) if side == "left" else slice(limit)
    return [text[part] for text in texts]


@contextmanager
def tokenizer_errors(name: str) -> Iterator[None]:
    """Raise a panic of `tokenizers`, which is no Exception, as a `DataError`."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise DataError(f"{name}: the tokenizer fails ({error})") from error
