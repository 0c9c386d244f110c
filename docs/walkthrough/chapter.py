# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What each chapter's first cell sets."""

import sys
from pathlib import Path

import datasets
import matplotlib
import torch
import transformers
import words

import hf_vanilla_transformer.registration  # noqa: F401 - its models load by transformers' Auto classes


def begin(language: str) -> None:
    """Set the language of drawings and checks, the seed, and how pictures and progress are shown."""
    words.use(language)
    if language == "en":
        sys.path.insert(0, str(Path(__file__).parent / "en"))  # its my_transformer has English comments
    torch.manual_seed(0)
    matplotlib.rcParams.update({"figure.dpi": 80, "text.hinting": "none"})  # small Hangul can be read
    datasets.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
