# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Translate texts with the engine of the model's folder."""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from ..data.errors import DataError, check_at_least
from .engine import TARGET_TOKENIZER
from .loaded import LoadedModel, check_finite, load_text_tokenizer
from .tokenization import TextTokenizer, TransformersTokenizer


class Translator(LoadedModel):
    """A translator.

        translate = Translator("model_cards/multi30k-de-en", num_beams=5)
        translate(["Zwei Hunde spielen im Schnee."])  # ["Two dogs play in the snow."]

    Args:
        model: A translator's folder or Hub name, an exported folder, or a loaded model.
        tokenizer: The source tokenizer; by default that of the folder.
        target_tokenizer: The target tokenizer where the target has its own vocabulary; by default that of the folder.
        num_beams: Beams of the search; 1 is greedy; by default as many as the model's `generate` has.
        max_new_tokens: Greatest number of tokens of a translation; by default the model's limit.
        batch_size, dtype, num_threads: As in `Classifier`.

    Attributes:
        num_beams: Beams of the search.

    Raises:
        DataError: the model cannot be read, does not translate, or is loaded and comes without its tokenizers.
        ImportError: an extra that an export's engine needs is not installed.
    """

    task = "translation"

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        target_tokenizer: Any = None,
        *,
        num_beams: int | None = None,
        max_new_tokens: int | None = None,
        **options: Any,
    ):
        super().__init__(model, tokenizer, **options)
        check_at_least(1, num_beams=num_beams, max_new_tokens=max_new_tokens)
        self.num_beams = num_beams or self.engine.facts.num_beams
        self.max_new_tokens = max_new_tokens
        self.max_length = self.engine.facts.max_positions
        self.target_tokenizer: TextTokenizer
        if target_tokenizer is not None:
            self.target_tokenizer, self._folder = TransformersTokenizer(target_tokenizer), None
        elif (size := self.engine.facts.target_vocab_size) is None:
            self.target_tokenizer = self.tokenizer
        elif tokenizer is not None:
            raise DataError("a loaded model with two vocabularies needs its target_tokenizer, too")
        else:
            self.target_tokenizer = load_text_tokenizer(os.fspath(model), size, TARGET_TOKENIZER)
        self._options |= {"num_beams": num_beams, "max_new_tokens": max_new_tokens}

    def stream(
        self, texts: str | Iterable[Any], *, num_return_sequences: int | None = None, return_scores: bool = False
    ) -> Iterator[Any]:
        """Translate any number of texts, in their order; `WINDOW` batches of them are in memory.

        Args:
            texts: The texts.
            num_return_sequences: How many translations of each text, at most `num_beams`; first what the search
                rates best: the log-probability by length (`length_penalty`).
            return_scores: Whether a translation comes with its log-probability.

        Yields:
            The translation of a text; with scores, a mapping `{"translation": str, "score": float,
            "score_per_token": float}`: the natural logarithm of its probability, and that divided by the number of
            its tokens, the end included. With `num_return_sequences`, a list of these. A blank text, None and NaN
            have no answer: None.

        Raises:
            DataError: there are fewer beams than translations.
        """
        check_at_least(1, num_return_sequences=num_return_sequences)
        if (number := num_return_sequences or 1) > self.num_beams:
            raise DataError(f"num_return_sequences: {number}, and the search has {self.num_beams} beams (num_beams)")
        for answers in self._answers(texts, partial(self._translate, number=number, return_scores=return_scores)):
            yield answers[0] if answers and num_return_sequences is None else answers

    def ids(self, texts: str | Iterable[Any]) -> Iterator[list[tuple[list[int], list[int]]] | None]:
        """Yield for each text a pair of its ids and its translation's, in a list, and None for a blank one."""
        return self._answers(texts, partial(self._pairs, number=1))

    def _pairs(self, texts: list[str], number: int) -> Iterator[list[tuple[list[int], list[int]]]]:
        rows = self._encode(texts)
        sources, options = [*filter(self._has_tokens, rows)], (self.num_beams, self.max_new_tokens, number)
        written = iter(self.engine.translate(sources, self.batch_size, *options) if sources else [])
        for ids in rows:
            yield [(ids, target) for target in (next(written) if self._has_tokens(ids) else [[]] * number)]

    def _has_tokens(self, ids: list[int]) -> bool:
        """Return whether a text has tokens of its own; the engines get none without, such as one of U+200B alone."""
        return len(ids) > self.tokenizer.added_tokens

    def _translate(self, texts: list[str], number: int, return_scores: bool) -> list[list[Any]]:
        """Return `number` translations of each text."""
        pairs = [pair for translations in self._pairs(texts, number) for pair in translations]
        translations: list[Any] = self.target_tokenizer.decode([ids for _, ids in pairs])
        if return_scores:
            has_tokens = [self._has_tokens(source) for source, _ in pairs]
            scores = self._scores([*compress(pairs, has_tokens)])
            scored = [next(scores) if one else (0.0, 1) for one in has_tokens]
            translations = [
                {"translation": text, "score": score, "score_per_token": score / max(1, tokens)}
                for text, (score, tokens) in zip(translations, scored, strict=True)
            ]
        return [translations[place : place + number] for place in range(0, len(translations), number)]

    def _scores(self, pairs: list[tuple[list[int], list[int]]]) -> Iterator[tuple[float, int]]:
        """Yield the log-probability of each translation, and its tokens; one that was broken off has no end token."""
        limit = self.max_new_tokens or self.engine.facts.max_new_tokens
        for begin in range(0, len(pairs), self.batch_size):
            sources, targets = zip(*pairs[begin : begin + self.batch_size], strict=True)
            rows = self.engine.log_probabilities([*sources], [*targets])
            check_finite(np.concatenate(rows))
            for ids, row in zip(targets, rows, strict=True):
                tokens = len(ids) + (len(ids) < limit)
                yield float(row[:tokens].sum()), tokens
