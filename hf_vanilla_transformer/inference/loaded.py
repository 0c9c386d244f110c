# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A model that is loaded once and answers any number of texts: what `Classifier` and `Translator` share."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..data.errors import DataError, check_at_least
from ..settings.tasks import TASKS
from .batches import windows
from .engine import load_engine, read_export
from .tokenization import ExportedTokenizer, TextTokenizer, TransformersTokenizer


# Batches in a window: the texts of a window are read, sorted by length, and answered together.
WINDOW = 64


class LoadedModel:
    """A model with its tokenizer. Threads can share it; it is pickled by the name of its folder, and loaded there.

    Attributes:
        engine: What computes, an `Engine`.
        tokenizer: Of the texts.
        batch_size: Maximum number of texts in one pass through the model.
        max_length: The number of tokens to which texts are cut.
        number_cut: How many texts were longer.
    """

    task: str
    max_length: int
    stream: Callable[..., Iterator[Any]]

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        batch_size: int = 64,
        dtype: str = "float32",
        num_threads: int | None = None,
    ):
        check_at_least(1, batch_size=batch_size or 0)
        self.batch_size, self.number_cut = batch_size, 0
        self.tokenizer: TextTokenizer
        self._options: dict[str, Any] = {"batch_size": batch_size, "dtype": dtype, "num_threads": num_threads}
        folder = None
        if isinstance(model, str | os.PathLike):
            folder = os.path.abspath(model) if os.path.isdir(model) else os.fspath(model)
            self.engine = load_engine(folder, dtype, num_threads)
        else:
            from .torch_engine import TorchEngine

            self.engine = TorchEngine(model.eval())
        task, model_class = TASKS[self.task], self.engine.facts.model_class
        if model_class != task.model_class:
            raise DataError(f"{folder or 'model'}: not a {task.noun} but a {model_class}")
        if tokenizer is not None:
            self.tokenizer = TransformersTokenizer(tokenizer)
        elif folder is not None:
            self.tokenizer = load_text_tokenizer(folder, self.engine.facts.vocab_size)
        else:
            raise DataError(f"a loaded {task.noun} needs its tokenizer, too")
        # What a copy is loaded from in another process; None if the caller loaded the model or a tokenizer.
        self._folder = folder if tokenizer is None else None

    def __call__(self, texts: str | Iterable[Any], **options: Any) -> list[Any]:
        """Answer each text, as `stream` does with these options; one text counts as a list of one."""
        return list(self.stream(texts, **options))

    def _answers(self, texts: str | Iterable[Any], ask: Callable[[list[str]], Iterable[Any]]) -> Iterator[Any]:
        """Yield the answer to each text, and None for a blank one; `ask` answers the other texts of a window."""
        for window in windows(texts, WINDOW * self.batch_size):
            asked = [text for text in window if not is_blank(text)]
            answers = iter(ask(asked) if asked else ())
            yield from [None if is_blank(text) else next(answers) for text in window]

    def _encode(self, texts: list[str]) -> list[list[int]]:
        rows, lengths = self.tokenizer.encode(texts, self.max_length)
        self.number_cut += sum(length > self.max_length for length in lengths)
        return rows

    def __reduce__(self) -> tuple[Callable, tuple]:
        if self._folder is None:
            raise TypeError(f"a {type(self).__name__} is pickled by its folder: this one was made of a loaded model")
        return partial(type(self), self._folder, **self._options), ()


def is_blank(text: Any) -> bool:
    """Return whether a text has no answer: white space alone, None, or what pandas has for a missing text."""
    return not text.strip() if isinstance(text, str) else text is None or str(text) in ("nan", "<NA>")


def check_finite(logits: np.ndarray) -> None:
    """Raise a `DataError` if a model computed NaN or infinity."""
    if not np.isfinite(logits).all():
        raise DataError("the model computes NaN or infinity: its weights are damaged, or its precision is too small")


def load_text_tokenizer(folder: str, vocab_size: int, subfolder: str = "") -> TextTokenizer:
    """Load the tokenizer of a model's folder or Hub name, whose ids must be below `vocab_size`, or of an export."""
    if read_export(folder) is not None:
        return ExportedTokenizer(folder, subfolder)
    from .folder import load_tokenizer

    return TransformersTokenizer(load_tokenizer(folder, subfolder, vocab_size))
