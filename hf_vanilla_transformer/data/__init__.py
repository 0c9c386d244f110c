# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Data: files, tables and Hub data sets in, checked and tokenized data sets out."""

from .errors import DataError
from .labelled_text import encode, load_labelled_text, tokenize
from .lines import iterate_lines, read_lines
from .parallel_text import load_parallel_text, tokenize_pairs
from .plain_text import load_corpus, stream_corpus, tokenize_corpus


__all__ = [
    "DataError",
    "encode",
    "iterate_lines",
    "load_corpus",
    "load_labelled_text",
    "load_parallel_text",
    "read_lines",
    "stream_corpus",
    "tokenize",
    "tokenize_corpus",
    "tokenize_pairs",
]
