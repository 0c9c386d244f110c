# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A model that is loaded once and answers any number of texts: what `Classifier` and `Translator` share."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..characters import CHARACTERS_PER_TOKEN
from ..errors import DataError
from ..tasks import TASKS
from .engine import Engine, check_task, format_of, load_engine, read_export
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
    tokenizer: TextTokenizer

    def __init__(
        self,
        model: "str | Path | Engine | PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase | None" = None,
        *,
        batch_size: int = 64,
        dtype: str = "float32",
        num_threads: int | None = None,
    ):
        if batch_size < 1:
            raise DataError(f"batch_size: at least 1, not {batch_size}")
        self.batch_size = batch_size
        self._pickled: Callable | None = None
        if isinstance(model, str | Path):
            folder = str(model)
            self.engine = load_engine(folder, dtype, self.task, num_threads)
            if tokenizer is not None:
                self.tokenizer = TransformersTokenizer(tokenizer)
            else:
                self.tokenizer = load_text_tokenizer(folder, vocab_size=self.engine.facts.vocab_size)
                options: Any = {"batch_size": batch_size, "dtype": dtype, "num_threads": num_threads}
                self._pickled = partial(type(self), folder, **options)
            return
        if tokenizer is None:
            raise DataError(f"a loaded {TASKS[self.task].noun} needs its tokenizer, too")
        if not isinstance(model, Engine):
            from .torch_engine import TorchEngine

            model = TorchEngine(model.eval())
        check_task(model, self.task, "model")
        self.engine, self.tokenizer = model, TransformersTokenizer(tokenizer)

    @property
    def max_characters(self) -> int:
        """The number of characters of a text that can matter."""
        return CHARACTERS_PER_TOKEN * self.engine.facts.max_positions

    def __reduce__(self) -> tuple[Callable, tuple]:
        if self._pickled is None:
            raise TypeError(f"a {type(self).__name__} is pickled by its folder: this one was made of a loaded model")
        return self._pickled, ()

    def _windows(self, texts: Iterable[str], first: int = 1) -> Iterator[list[str]]:
        texts, size = iter([texts] if isinstance(texts, str) else texts), WINDOW * self.batch_size
        while window := list(islice(texts, size)):
            for number, text in enumerate(window, first):
                if not isinstance(text, str):
                    raise TypeError(f"text {number}: {type(text).__name__}, not str")
                if half := re.search("[\ud800-\udfff]", text):
                    raise DataError(f"text {number}: {half[0]!a} is half of a character")
            yield window
            first += size


def load_text_tokenizer(folder: str, subfolder: str = "", vocab_size: int | None = None) -> TextTokenizer:
    """The tokenizer of a model's folder or Hub name, or of an exported folder.

    Raises:
        DataError: there is none that can be read, or it has ids from `vocab_size` on.
    """
    if not format_of(read_export(folder)).runs_in_torch:
        return ExportedTokenizer(folder, subfolder, vocab_size)
    from .folder import load_tokenizer

    return TransformersTokenizer(load_tokenizer(folder, subfolder, vocab_size))
