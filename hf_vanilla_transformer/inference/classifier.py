# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Classify texts with the engine of the model's folder."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..data.errors import DataError, check_at_least
from ..data.problem_types import MULTI, REGRESSION, SINGLE
from .loaded import LoadedModel, check_finite


class Classifier(LoadedModel):
    """A classifier that answers texts as transformers' pipeline does.

        classify = Classifier("model_cards/nsmc-small")
        classify(["정말 재미있다", "지루했다"])  # [{"label": "positive", "score": 0.99}, ...]

    Args:
        model: A classifier's folder or Hub name, an exported folder, or a loaded model.
        tokenizer: The model's tokenizer; by default that of the folder. Longer texts than it allows are truncated.
        batch_size: Maximum number of texts in one pass through the model.
        dtype: The precision of torch, "float32", "bfloat16" or "auto"; an export has its own.
        num_threads: Processor threads of an export's engine; by default `OMP_NUM_THREADS`, or one for each core.
        threshold: The probability that a label needs, at least. A text without such a label has an empty one, with
            the probability as it is; of a model with several labels a text, an empty list.

    Attributes:
        labels: The names of the labels, by number.
        problem_type: What they are: one of `tasks.PROBLEM_TYPES`.

    Raises:
        DataError: the model cannot be read, does not classify, or is loaded and comes without its tokenizer.
        ImportError: an extra that an export's engine needs is not installed.
    """

    task = "classification"

    def __init__(self, model: Any, tokenizer: Any = None, *, threshold: float | None = None, **options: Any):
        super().__init__(model, tokenizer, **options)
        self.labels, self.problem_type = self.engine.facts.labels, self.engine.facts.problem_type
        if threshold is not None and self.problem_type == REGRESSION:
            raise DataError("threshold: a model of numbers has no probabilities")
        if threshold is not None and not 0 <= threshold <= 1:
            raise DataError(f"threshold: a probability from 0 to 1, not {threshold!r}")
        self.threshold = threshold
        self.max_length = int(min(self.tokenizer.max_length, self.engine.facts.max_positions))
        check_at_least(1, model_max_length=self.max_length)
        self._options |= {"threshold": threshold}

    def stream(self, texts: str | Iterable[Any], *, top_k: int | None = 0) -> Iterator[Any]:
        """Answer any number of texts, in their order; `WINDOW` batches of them are in memory.

        Args:
            texts: The texts.
            top_k: As in pipeline: a list of so many labels, the most probable first, whatever the threshold; None for
                all of them; 0, not below, for the answer alone.

        Yields:
            The most probable label of a text with its probability, as `{"label": "positive", "score": 0.99}`; of a
            model with several labels a text, a list of those above 1/2, or from the threshold on; of one with numbers,
            the value as the score. A blank text, None and NaN have no answer: None.

        Raises:
            DataError: `top_k` is below 0, or the model computes NaN or infinity.
        """
        return (None if row is None else self.answer(row, top_k) for row in self.rows(texts))

    def answer(self, row: np.ndarray, top_k: int | None = 0) -> Any:
        """Return what `stream` yields for a text with these probabilities, (labels,)."""
        check_at_least(0, top_k=top_k)
        if top_k != 0:
            return [self._named(row, place) for place in (-row).argsort(kind="stable")[:top_k]]
        if self.problem_type == SINGLE:
            best = self._named(row, row.argmax())
            if self.threshold is not None and best["score"] < self.threshold:
                best["label"] = ""
            return best
        if self.problem_type == MULTI:
            chosen = row > 0.5 if self.threshold is None else row >= self.threshold
            return [self._named(row, place) for place in chosen.nonzero()[0]]
        values = [self._named(row, place) for place in range(len(row))]
        return values[0] if len(values) == 1 else values

    def probabilities(self, texts: str | Iterable[Any]) -> np.ndarray:
        """Return the probability of each label, or the values of a model of numbers.

        Returns:
            (texts, labels), float32; NaN for a text that has no answer.
        """
        blank = np.full(len(self.labels), np.nan, dtype=np.float32)
        rows = [blank if row is None else row for row in self.rows(texts)]
        return np.array(rows, dtype=np.float32).reshape(-1, len(self.labels))

    def rows(self, texts: str | Iterable[Any]) -> Iterator[np.ndarray | None]:
        """Yield the rows of `probabilities` in a stream, and None for a text that has no answer."""
        return self._answers(texts, self._probabilities)

    def _probabilities(self, texts: list[str]) -> np.ndarray:
        # A text without a token has no ids, as in transformers' pipeline.
        logits = self.engine.logits(self._encode(texts), self.batch_size)
        check_finite(logits)
        return to_probabilities(logits, self.problem_type)

    def _named(self, row: np.ndarray, place: Any) -> dict[str, Any]:
        return {"label": self.labels[place], "score": float(row[place])}


def to_probabilities(logits: np.ndarray, problem_type: str) -> np.ndarray:
    """Return the probabilities of logits (texts, labels), float32."""
    if problem_type == REGRESSION:
        return logits
    if problem_type == MULTI:
        return np.exp(-np.logaddexp(np.float32(0), -logits))
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)
