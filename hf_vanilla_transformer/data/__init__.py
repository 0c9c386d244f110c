# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Data: files, tables and Hub data sets in, checked and tokenized data sets out.

The names are imported at their first use: `predict` reads lines without `datasets`.
"""

from .imports import lazy_names


__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
