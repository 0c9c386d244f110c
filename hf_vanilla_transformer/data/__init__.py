# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Data: files, tables and Hub data sets in, checked and tokenized data sets out."""

import importlib
from typing import Any


# The names of each module. It is imported at the first use: `predict` reads lines without `datasets`.
_NAMES = {
    "labelled_text": ["encode", "load_labelled_text", "tokenize"],
    "lines": ["iterate_lines", "read_lines"],
    "parallel_text": ["load_parallel_text", "tokenize_pairs"],
    "plain_text": ["load_corpus", "stream_corpus", "tokenize_corpus"],
    "report": ["describe_data"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
