# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Data: files, tables and Hub data sets in, checked and tokenized data sets out."""

import importlib
from typing import Any


# The module of each name. It is imported at the first use: `predict` reads lines without `datasets`.
_MODULES = {
    **dict.fromkeys(["encode", "load_labelled_text", "tokenize"], "labelled_text"),
    **dict.fromkeys(["load_parallel_text", "tokenize_pairs"], "parallel_text"),
    **dict.fromkeys(["load_corpus", "tokenize_corpus"], "plain_text"),
    "iterate_lines": "lines",
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
