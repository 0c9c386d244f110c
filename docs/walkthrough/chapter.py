# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What each chapter's first cell sets."""

import sys
from pathlib import Path

import datasets
import matplotlib
import torch
import transformers
import words

import hf_vanilla_transformer.inference.registration  # noqa: F401 - its models load by transformers' Auto classes


def begin(language: str) -> tuple[Path, Path]:
    """Set the language of drawings and checks, the seed, and how pictures and progress are shown.

    Returns:
        The folders of the trained models and of what the reader makes.
    """
    words.use(language)
    if language == "en":
        sys.path.insert(0, str(Path(__file__).parent / "en"))  # its my_transformer has English comments
    torch.manual_seed(0)
    torch.set_num_threads(1)  # threads of such small models wait for each other
    matplotlib.rcParams.update({"figure.dpi": 80, "text.hinting": "none"})  # small Hangul can be read
    datasets.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
    from kept import folder  # it imports the edition's my_transformer

    clone = next(place for place in [Path.cwd(), *Path.cwd().parents] if (place / "model_cards").is_dir())
    folder().mkdir(exist_ok=True)
    return clone / "model_cards", folder()
