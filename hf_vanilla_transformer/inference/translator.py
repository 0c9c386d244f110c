# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Translate texts with the engine of the model's folder."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from ..data.lines import LONGEST_TEXT
from ..errors import DataError
from .alignments import align, last_word
from .engine import TARGET_TOKENIZER
from .loaded import LoadedModel, check_count, load_text_tokenizer
from .sentences import split_sentences as sentences_of
from .tokenization import TextTokenizer, TransformersTokenizer


logger = logging.getLogger(__name__)


class Translator(LoadedModel):
    """A translator.

        translate = Translator("model_cards/multi30k-de-en", num_beams=5)
        translate(["Zwei Hunde spielen im Schnee."])  # ["Two dogs play in the snow."]

    Args:
        model: A translator's folder or Hub name, an exported folder, an engine, or a loaded model.
        tokenizer: The source tokenizer; by default that of the folder.
        target_tokenizer: The target tokenizer where the target has its own vocabulary; by default that of the folder.
        num_beams: Beams of the search; 1 is greedy; by default as many as the model's `generate` has.
        max_new_tokens: Greatest number of tokens of a translation; by default the model's limit.
        truncation: Cut texts that are longer than the model reads, and warn at the end; False refuses them.
        split_sentences: Translate each sentence of a text by itself, as `inference.sentences.split_sentences` cuts
            them, and join the translations with spaces.
        batch_size, dtype, num_threads: As in `Classifier`.

    Attributes:
        num_beams: Beams of the search.

    Raises:
        DataError: there is no such model that can be read, or it is none that translates; or a loaded model comes
            without its tokenizers.
        ImportError: an extra that an export's engine needs is not installed.
    """

    task = "translation"
    target_tokenizer: TextTokenizer

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        target_tokenizer: Any = None,
        *,
        num_beams: int | None = None,
        max_new_tokens: int | None = None,
        truncation: bool = True,
        split_sentences: bool = False,
        **options: Any,
    ):
        super().__init__(model, tokenizer, **options)
        check_count("num_beams", num_beams)
        check_count("max_new_tokens", max_new_tokens)
        if (max_new_tokens or 0) > (limit := self.engine.facts.max_target_positions - 1):
            raise DataError(f"max_new_tokens: at most the model's {limit}, not {max_new_tokens}")
        self.num_beams = num_beams or self.engine.num_beams
        self.max_new_tokens, self.truncation, self.split_sentences = max_new_tokens, truncation, split_sentences
        if target_tokenizer is not None:
            self.target_tokenizer, self._pickled = TransformersTokenizer(target_tokenizer), None
        elif not self.engine.facts.has_target_vocabulary:
            self.target_tokenizer = self.tokenizer
        elif tokenizer is not None:
            raise DataError("a loaded model with two vocabularies needs its target_tokenizer, too")
        else:
            self.target_tokenizer = load_text_tokenizer(
                str(model), TARGET_TOKENIZER, self.engine.facts.target_vocab_size
            )
        if self._pickled is not None:
            own = {"num_beams": num_beams, "max_new_tokens": max_new_tokens, "truncation": truncation}
            self._pickled = partial(self._pickled, **own, split_sentences=split_sentences)

    @property
    def max_characters(self) -> int:
        return LONGEST_TEXT if self.split_sentences else super().max_characters

    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        num_return_sequences: int | None = None,
        return_scores: bool = False,
        alignments: bool = False,
    ) -> list[Any]:
        """The translation of each text; one text counts as a list of one. Arguments and errors as in `stream`."""
        wanted: Any = {"return_scores": return_scores, "alignments": alignments}
        return list(self.stream(texts, num_return_sequences=num_return_sequences, **wanted))

    def stream(
        self,
        texts: str | Iterable[str],
        *,
        num_return_sequences: int | None = None,
        return_scores: bool = False,
        alignments: bool = False,
        first: int = 1,
    ) -> Iterator[Any]:
        """Translate any number of texts, in their order; `WINDOW` batches of them are in memory.

        Args:
            texts: The texts.
            num_return_sequences: How many translations of each text, at most `num_beams`; first what the search
                rates best: the log-probability by length (`length_penalty`).
            return_scores: Whether a translation comes with its log-probability.
            alignments: Whether it comes with the source word of each of its words; words are what white space
                separates.
            first: The number of the first text in messages.

        Yields:
            The translation of a text, empty for a text without a token; with scores or alignments, a mapping:
            `{"translation": str, "score": float, "score_per_token": float, "alignment": list[int]}`. The score is the
            natural logarithm of its probability, and then that divided by its tokens, the end included. The alignment
            has for each word of the translation the number, from 0, of the word in the text that cross-attention
            reads most (`alignments`). With `num_return_sequences`, a list of these.

        Raises:
            DataError: a text is too long and not to be cut, there are fewer beams than translations, the tokenizer
                does not know the places of its tokens in a text, for alignments, or more than the best translation,
                scores or alignments are asked for of texts that are split into sentences.
        """
        if self.split_sentences and (num_return_sequences is not None or return_scores or alignments):
            raise DataError("split_sentences: a text's sentences have no common list of translations, and no score")
        if self.split_sentences:
            return self._stream_sentences(texts)
        return self._stream(texts, num_return_sequences, return_scores, alignments, first)

    def _stream_sentences(self, texts: str | Iterable[str]) -> Iterator[str]:
        numbers: deque[int] = deque()  # of sentences in each text that was read and not yet answered

        def sentences() -> Iterator[str]:
            for (text,) in self._windows(texts, 1, size=1):
                found = sentences_of(text)
                numbers.append(len(found))
                yield from found

        answers = self._stream(sentences(), None, False, False, 1, "sentence")
        for one in answers:
            found = [one, *islice(answers, numbers.popleft() - 1)]
            yield " ".join(filter(None, found))

    def _stream(
        self,
        texts: str | Iterable[str],
        num_return_sequences: int | None,
        return_scores: bool,
        alignments: bool,
        first: int,
        noun: str = "text",
    ) -> Iterator[Any]:
        check_count("num_return_sequences", num_return_sequences)
        if (number_of_each := num_return_sequences or 1) > self.num_beams:
            raise DataError(f"num_return_sequences: at most {self.num_beams}, num_beams, not {num_return_sequences}")
        shown: Callable = list if num_return_sequences is not None else _first
        limit, message, cut, number = self.engine.facts.max_positions, "", 0, first
        try:
            for window in self._windows(texts, first):
                rows, lengths = self.tokenizer.encode(window, limit)
                if long := [place for place, length in enumerate(lengths) if length > limit]:
                    tokens = lengths[long[0]]
                    message = (
                        message or f"{noun} {number + long[0]} has {tokens} tokens or more, the model reads {limit}"
                    )
                    if not self.truncation:
                        raise DataError(message)
                    cut += len(long)
                number += len(window)
                words = self.tokenizer.words(window, limit) if alignments else None
                yield from map(shown, self._translate(rows, number_of_each, return_scores, words))
        finally:
            if cut:
                logger.warning(f"{message}; cut: {cut} of {number - first} {noun}s")

    def _translate(
        self, rows: list[list[int]], number: int, return_scores: bool, words: list[list[int]] | None
    ) -> list[list[Any]]:
        places = [place for place, ids in enumerate(rows) if len(ids) > self.tokenizer.added_tokens]
        sources = [rows[place] for place in places]
        found: list[list[list[int]]] = []
        if places:
            found = self.engine.translate(sources, self.batch_size, self.num_beams, self.max_new_tokens, number)
        pairs = [(source, ids) for source, each in zip(sources, found, strict=True) for ids in each]
        texts = self.target_tokenizer.decode([ids for _, ids in pairs]) if pairs else []
        columns: dict[str, list[Any]] = {"translation": texts}
        empty: Any = {"translation": ""}
        if return_scores:
            scores = list(self._scores(pairs))
            columns["score"] = [score for score, _ in scores]
            columns["score_per_token"] = [score / max(1, tokens) for score, tokens in scores]
            empty |= {"score": 0.0, "score_per_token": 0.0}
        if words is not None:
            columns["alignment"] = list(
                self._alignments(
                    pairs, [words[place] for place, each in zip(places, found, strict=True) for _ in each]
                )
            )
            empty["alignment"] = []
        written: Iterator[Any] = (dict(zip(columns, one, strict=True)) for one in zip(*columns.values(), strict=True))
        if len(columns) == 1:
            written, empty = iter(texts), ""
        answers = [[empty] * number for _ in rows]
        for place, each in zip(places, found, strict=True):
            answers[place] = list(islice(written, len(each)))
        return answers

    def _scores(self, pairs: list[tuple[list[int], list[int]]]) -> Iterator[tuple[float, int]]:
        """The log-probability of each translation, and its tokens; one that was broken off has no end token."""
        limit = self.max_new_tokens or self.engine.facts.max_target_positions - 1
        for sources, targets in self._batches(pairs):
            for ids, each in zip(targets, self.engine.log_probabilities(sources, targets), strict=True):
                counted = len(ids) + (len(ids) < limit)
                yield float(each[:counted].sum()), counted

    def _alignments(self, pairs: list[tuple[list[int], list[int]]], words: list[list[int]]) -> Iterator[list[int]]:
        read = iter(words)
        for sources, targets in self._batches(pairs):
            for ids, attention in zip(targets, self.engine.cross_attention(sources, targets), strict=True):
                yield align(attention, next(read), self._words_written(ids))

    def _words_written(self, ids: list[int]) -> list[int]:
        texts = self.target_tokenizer.decode([ids[: 1 + place] for place in range(len(ids))])
        last = len(texts[-1].split()) - 1 if ids else -1  # an unknown token may write nothing behind a space
        return [min(last_word(text), last) for text in texts]

    def _batches(self, pairs: list[tuple[list[int], list[int]]]) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
        for begin in range(0, len(pairs), self.batch_size):
            sources, targets = zip(*pairs[begin : begin + self.batch_size], strict=True)
            yield [*sources], [*targets]


def _first(answers: list[Any]) -> Any:
    return answers[0]
