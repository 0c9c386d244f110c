# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A model that is loaded once and answers any number of texts: what `Classifier` and `Translator` share."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..characters import CHARACTERS_PER_TOKEN
from ..data.in_memory import is_in_memory
from ..errors import DataError
from ..tasks import TASKS
from .engine import PRECISIONS, Engine, check_task, format_of, load_engine, read_export
from .tokenization import ExportedTokenizer, TextTokenizer, TransformersTokenizer


if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Batches in a window: the texts of a window are read, sorted by length, and answered together.
WINDOW = 64
# Engines that a forked process has of its parent.
_OF_PARENTS: list[Engine] = []


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
        self.batch_size, self._process = batch_size, os.getpid()
        self._pickled: Callable | None = None
        if isinstance(model, str | os.PathLike):
            folder = os.fspath(model)
            folder = os.path.abspath(folder) if os.path.isdir(folder) else folder
            self.engine = load_engine(folder, dtype, self.task, num_threads)
            if tokenizer is not None:
                self.tokenizer = TransformersTokenizer(tokenizer)
            else:
                self.tokenizer = load_text_tokenizer(folder, vocab_size=self.engine.facts.vocab_size)
                options: Any = {"batch_size": batch_size, "dtype": dtype, "num_threads": num_threads}
                self._pickled = partial(type(self), folder, **options)
            return
        if tokenizer is None:
            what = f"a {type(model).__name__}: neither a folder nor a loaded model with its tokenizer"
            raise DataError(f"a loaded {TASKS[self.task].noun} needs its tokenizer, too ({what})")
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

    def _after_fork(self) -> None:
        """In a forked process, do without the parent's threads, which are not there: to wait for one is to hang."""
        if self._process == os.getpid():
            return
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)
        if not self.engine.survives_fork:
            if self._pickled is None:
                raise RuntimeError(f"a {type(self).__name__} made of a loaded engine cannot be used after a fork")
            _OF_PARENTS.append(self.engine)  # its end would wait for its threads
            self.engine = self._pickled().engine
        self._process = os.getpid()

    def _windows(self, texts: Iterable[str], first: int = 1, size: int | None = None) -> Iterator[list[str]]:
        self._after_fork()
        if isinstance(texts, Mapping) or is_in_memory(texts):
            raise TypeError(f"a {type(texts).__name__}: give a text, or the texts of one column")
        texts, size = iter([texts] if isinstance(texts, str) else texts), size or WINDOW * self.batch_size
        while window := list(islice(texts, size)):
            for number, text in enumerate(window, first):
                if not isinstance(text, str):
                    raise TypeError(f"text {number}: {type(text).__name__}, not str")
                if half := re.search("[\ud800-\udfff]", text):
                    raise DataError(f"text {number}: {half[0]!a} is half of a character")
            yield window
            first += size


def check_count(name: str, value: Any) -> None:
    """Raise a `DataError` that begins with the name of an argument which is neither None nor a number from 1 on."""
    if value is not None and (not isinstance(value, int) or value < 1):
        raise DataError(f"{name}: a whole number, at least 1, not {value!r}")


def load_text_tokenizer(folder: str, subfolder: str = "", vocab_size: int | None = None) -> TextTokenizer:
    """The tokenizer of a model's folder or Hub name, or of an exported folder.

    Raises:
        DataError: there is none that can be read, or it has ids from `vocab_size` on.
    """
    if not format_of(read_export(folder)).runs_in_torch:
        return ExportedTokenizer(folder, subfolder, vocab_size)
    from .folder import load_tokenizer

    return TransformersTokenizer(load_tokenizer(folder, subfolder, vocab_size))
