# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Classify texts with the engine of the model's folder."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..tasks import MULTI, REGRESSION, SINGLE
from .loaded import LoadedModel


# As in transformers' pipeline: {"label": str, "score": float}.
Label = dict[str, Any]


class Classifier(LoadedModel):
    """A classifier that answers texts as transformers' pipeline does.

        classify = Classifier("model_cards/nsmc-small")
        classify(["정말 재미있다", "지루했다"])  # [{"label": "positive", "score": 0.99}, ...]

    Args:
        model: A classifier's folder or Hub name, an exported folder, an engine, or a loaded model.
        tokenizer: The model's tokenizer; by default that of the folder. Longer texts than it allows are truncated.
        batch_size: Maximum number of texts in one pass through the model.
        dtype: The precision of torch, "float32", "bfloat16" or "auto"; an export has its own.
        num_threads: Processor threads of an export's engine; by default as many as torch uses.

    Attributes:
        labels: The names of the labels, by number.
        problem_type: What they are: one of `tasks.PROBLEM_TYPES`.

    Raises:
        DataError: there is no such model that can be read, or it is none that classifies; or a loaded model comes
            without its tokenizer.
        ImportError: an extra that an export's engine needs is not installed.
    """

    task = "classification"

    @property
    def labels(self) -> list[str]:
        return self.engine.facts.labels

    @property
    def problem_type(self) -> str:
        return self.engine.facts.problem_type

    def __call__(self, texts: str | Iterable[str]) -> list[Label | list[Label]]:
        """The answer to each text, as in `stream`; one text counts as a list of one."""
        return list(self.stream(texts))

    def stream(self, texts: str | Iterable[str]) -> Iterator[Label | list[Label]]:
        """Answer any number of texts, in their order; `WINDOW` batches of them are in memory.

        Yields:
            Of a text the most probable label with its probability, as `{"label": "positive", "score": 0.99}`; of
            several labels a text, a list of those above 1/2; of numbers, the value as the score.
        """
        for row in self.stream_probabilities(texts):
            if self.problem_type == SINGLE:
                yield self._label(row, row.argmax())
            elif self.problem_type == MULTI:
                yield [self._label(row, place) for place in (row > 0.5).nonzero()[0]]
            else:
                values = [self._label(row, place) for place in range(len(row))]
                yield values[0] if len(values) == 1 else values

    def probabilities(self, texts: str | Iterable[str]) -> np.ndarray:
        """(texts, labels), float32: the probability of each label, or the values of a model of numbers."""
        rows = list(self.stream_probabilities(texts))
        return np.stack(rows) if rows else np.empty((0, len(self.labels)), dtype=np.float32)

    def stream_probabilities(self, texts: str | Iterable[str]) -> Iterator[np.ndarray]:
        """As `probabilities`, text by text: (labels,), float32."""
        max_length = min(self.tokenizer.max_length, self.engine.facts.max_positions)
        for window in self._windows(texts):
            # A text without a token has no ids, as in transformers' pipeline.
            ids, _ = self.tokenizer.encode(window, max_length)
            yield from _probabilities(self.engine.logits(ids, self.batch_size), self.problem_type)

    def _label(self, row: np.ndarray, place: Any) -> Label:
        return {"label": self.labels[place], "score": float(row[place])}


def _probabilities(logits: np.ndarray, problem_type: str) -> np.ndarray:
    """(texts, labels), float32, of logits of that shape."""
    if problem_type == REGRESSION:
        return logits
    if problem_type == MULTI:
        return np.exp(-np.logaddexp(np.float32(0), -logits))
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)
