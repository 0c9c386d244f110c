# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A model that is loaded once and answers any number of texts: what `Classifier` and `Translator` share."""

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..tasks import TASKS
from .engine import PRECISIONS, Engine, check_task, load_engine, read_export
from .tokenization import ExportedTokenizer, TextTokenizer, TransformersTokenizer


if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Batches in a window: the texts of a window are read, sorted by length, and answered together.
WINDOW = 64


class LoadedModel:
    """A model with its tokenizer. Threads can share it; it is pickled by the name of its folder, and loaded there.

    Attributes:
        engine: What computes.
        tokenizer: Of the texts.
        batch_size: Maximum number of texts in one pass through the model.
    """

    task: str

    def __init__(
        self,
        model: "str | os.PathLike | Engine | PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase | None" = None,
        *,
        batch_size: int = 64,
        dtype: str = "float32",
        num_threads: int | None = None,
    ):
        check_count("batch_size", batch_size or 0)
        check_count("num_threads", num_threads)
        if dtype not in PRECISIONS:
            raise DataError(f"dtype: {', '.join(PRECISIONS)}; not {dtype!r}")
        self.batch_size = batch_size
        self.tokenizer: TextTokenizer
        self._load_again: Callable | None = None
        if isinstance(model, str | os.PathLike):
            folder = os.path.abspath(model) if os.path.isdir(model) else os.fspath(model)
            self.engine = load_engine(folder, dtype, self.task, num_threads)
            if tokenizer is not None:
                self.tokenizer = TransformersTokenizer(tokenizer)
                return
            self.tokenizer = load_text_tokenizer(folder, vocab_size=self.engine.facts.vocab_size)
            options: Any = {"batch_size": batch_size, "dtype": dtype, "num_threads": num_threads}
            self._load_again = partial(type(self), folder, **options)
            return
        if tokenizer is None:
            what = f"a {type(model).__name__}: neither a folder nor a loaded model with its tokenizer"
            raise DataError(f"a loaded {TASKS[self.task].noun} needs its tokenizer, too ({what})")
        if not isinstance(model, Engine):
            from .torch_engine import TorchEngine

            model = TorchEngine(model.eval())
        check_task(model, self.task, "model")
        self.engine, self.tokenizer = model, TransformersTokenizer(tokenizer)

    def __reduce__(self) -> tuple[Callable, tuple]:
        if self._load_again is None:
            raise TypeError(f"a {type(self).__name__} is pickled by its folder: this one was made of a loaded model")
        return self._load_again, ()


def check_count(name: str, value: Any) -> None:
    """Raise a `DataError` if an argument is neither None nor a whole number from 1 on."""
    if value is not None and (not isinstance(value, int) or value < 1):
        raise DataError(f"{name}: a whole number, at least 1, not {value!r}")


def load_text_tokenizer(folder: str, subfolder: str = "", vocab_size: int | None = None) -> TextTokenizer:
    """Load the tokenizer of a model's folder or Hub name, or of an exported folder.

    Raises:
        DataError: it cannot be read, or has ids from `vocab_size` on.
    """
    if read_export(folder) is not None:
        return ExportedTokenizer(folder, subfolder, vocab_size)
    from .folder import load_tokenizer

    return TransformersTokenizer(load_tokenizer(folder, subfolder, vocab_size))
