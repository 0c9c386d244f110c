# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Texts to ids and back, with the tokenizer of an export, which needs `tokenizers` alone, or one of transformers."""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tokenizers import Encoding, Tokenizer

from ..characters import part_that_matters, tokenizer_errors
from ..errors import DataError, named_errors
from .alignments import last_word


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Texts that are tokenized together.
MAX_AT_ONCE = 256
# Characters that a normalizer or decoder may make of one: a chain of twelve could make 10^12.
MAX_OF_ONE = 1000
# Tokens, such as [EOS], that a template may add to a text.
MAX_ADDED = 16


class TextTokenizer(Protocol):
    """What `Classifier` and `Translator` need of a tokenizer. Threads can share it."""

    max_length: int
    added_tokens: int  # those that are added to each text, such as [EOS]

    def encode(self, texts: list[str], max_length: int) -> tuple[list[list[int]], list[int]]:
        """The ids of texts, cut to `max_length` as the tokenizer cuts, and how many ids they had before."""
        ...

    def words(self, texts: list[str], max_length: int) -> list[list[int]]:
        """For each id that `encode` returns, the number, from 0, of the word in which it ends; -1 if it was added.

        Raises:
            DataError: the tokenizer does not know the places of its tokens.
        """
        ...

    def decode(self, rows: list[list[int]]) -> list[str]:
        """The texts of ids, without special tokens."""
        ...


class ExportedTokenizer:
    """The tokenizer of an exported folder."""

    def __init__(self, folder: str, subfolder: str = "", vocab_size: int | None = None):
        file = Path(folder, subfolder, "tokenizer.json")
        with named_errors(folder, "tokenizer"), tokenizer_errors(folder):
            check_growth(folder, json.loads(file.read_bytes()))
            self._tokenizer = Tokenizer.from_file(str(file))
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            settings = json.loads(file.with_name("tokenizer_config.json").read_text(encoding="utf-8"))
            self.max_length = settings.get("model_max_length", sys.maxsize)
            self._side = settings.get("truncation_side", "right")
        ids = [*self._tokenizer.get_vocab().values(), *self._tokenizer.encode("").ids]
        check_ids(folder, 1 + max(ids, default=0), vocab_size)
        self._folder = folder
        self.added_tokens = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        check_lengths(folder, self.max_length, self.added_tokens)

    def encode(self, texts: list[str], max_length: int) -> tuple[list[list[int]], list[int]]:
        rows: list[list[int]] = []
        lengths: list[int] = []
        for part in in_parts(part_that_matters(texts, max_length, self._side)):
            with tokenizer_errors(self._folder):
                encoded = self._tokenizer.encode_batch(part)
            rows += [cut(one, max_length, self._side) for one in encoded]
            lengths += map(len, encoded)
        return rows, lengths

    def words(self, texts: list[str], max_length: int) -> list[list[int]]:
        parts = part_that_matters(texts, max_length, self._side)
        with tokenizer_errors(self._folder):
            encoded = self._tokenizer.encode_batch(parts)
        return [words_of(*each, max_length, self._side) for each in zip(encoded, parts, texts, strict=True)]

    def decode(self, rows: list[list[int]]) -> list[str]:
        return self._tokenizer.decode_batch(rows, skip_special_tokens=True)


class TransformersTokenizer:
    """A tokenizer of transformers.

    A fast one keeps the settings of its last call: with others in another thread, it would cut or not cut by those.
    So it gets the same ones in every call, and cuts nothing.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase"):
        self._tokenizer: Any = tokenizer
        self.max_length, self.added_tokens = tokenizer.model_max_length, tokenizer.num_special_tokens_to_add()

    def encode(self, texts: list[str], max_length: int) -> tuple[list[list[int]], list[int]]:
        rows, lengths, side = [], [], self._tokenizer.truncation_side
        for part in in_parts(part_that_matters(texts, max_length, side)):
            with tokenizer_errors(self._tokenizer.name_or_path):
                encoded = self._tokenizer(part, truncation=False, padding=False, verbose=False)
            for place, ids in enumerate(encoded["input_ids"]):
                lengths.append(len(ids))
                if len(ids) > max_length:
                    slow = not self._tokenizer.is_fast
                    ids = self._cut_slowly(part[place], max_length) if slow else cut(encoded[place], max_length, side)
                rows.append(ids)
        return rows, lengths

    def _cut_slowly(self, text: str, max_length: int) -> list[int]:
        return self._tokenizer(text, truncation=True, max_length=max_length)["input_ids"]

    def words(self, texts: list[str], max_length: int) -> list[list[int]]:
        name, side = self._tokenizer.name_or_path, self._tokenizer.truncation_side
        if not self._tokenizer.is_fast:
            raise DataError(f"{name}: a {type(self._tokenizer).__name__} does not know the places of its tokens")
        parts = part_that_matters(texts, max_length, side)
        with tokenizer_errors(name):
            encoded = self._tokenizer(parts, truncation=False, padding=False, verbose=False).encodings
        return [words_of(*each, max_length, side) for each in zip(encoded, parts, texts, strict=True)]

    def decode(self, rows: list[list[int]]) -> list[str]:
        return self._tokenizer.batch_decode(rows, skip_special_tokens=True)


def cut(encoding: Encoding, max_length: int, side: str) -> list[int]:
    """The ids of a text without those that are too many on one side; what the tokenizer added to it stays."""
    if len(encoding) <= max_length:
        return encoding.ids
    return [encoding.ids[place] for place in _kept(encoding, max_length, side)]


def _kept(encoding: Encoding, max_length: int, side: str) -> list[int]:
    own = [place for place, mark in enumerate(encoding.special_tokens_mask) if not mark]
    surplus = min(max(0, len(encoding) - max_length), len(own))
    left_out = {*(own[:surplus] if side == "left" else own[len(own) - surplus :])}
    return [place for place in range(len(encoding)) if place not in left_out]


def words_of(encoding: Encoding, part: str, text: str, max_length: int, side: str) -> list[int]:
    """The number of the word of a text in which each id of `cut` ends; `part` of the text was encoded."""
    before = len(text) - len(part) if side == "left" else 0
    added, ends = encoding.special_tokens_mask, [end for _, end in encoding.offsets]
    kept = _kept(encoding, max_length, side)
    return [-1 if added[place] else last_word(text[: before + ends[place]]) for place in kept]


def in_parts(texts: list[str]) -> Iterator[list[str]]:
    """At most `MAX_AT_ONCE` texts at a time, which are tokenized together."""
    return (texts[place : place + MAX_AT_ONCE] for place in range(0, len(texts), MAX_AT_ONCE))


def check_growth(folder: str, content: Mapping[str, Any]) -> None:
    """Raise a DataError if what is in tokenizer.json makes too many characters of one."""
    with named_errors(folder, "tokenizer"):
        growth = max(longest_of_one(content.get(name)) for name in ("normalizer", "decoder"))
    if growth > MAX_OF_ONE:
        raise DataError(f"{folder}: the tokenizer makes {growth:,} characters of one")


def longest_of_one(step: Any) -> int:
    """How many characters a normalizer or decoder of tokenizer.json makes of one by what it puts in."""
    step = step or {}
    steps = map(longest_of_one, [*step.get("normalizers", []), *step.get("decoders", [])])
    return (1 + len(step.get("content", "")) + len(step.get("prepend", ""))) * math.prod(steps)


def check_lengths(folder: str, limit: Any, added: int) -> None:
    """Raise a DataError if texts are cut to no number of tokens, or if a template adds too many."""
    if not isinstance(limit, int | float) or not limit >= 1 or limit % 1 > 0:
        raise DataError(f"{folder}: model_max_length is {limit!r}, no number of tokens")
    if added > MAX_ADDED:
        raise DataError(f"{folder}: the tokenizer adds {added:,} tokens to each text")


def check_ids(folder: str, needed: int, vocab_size: int | None) -> None:
    """Raise a DataError if a tokenizer, which needs a vocabulary of this size, has ids that the model lacks."""
    if vocab_size is not None and needed > vocab_size:
        raise DataError(f"{folder}: the tokenizer has the id {needed - 1}, the model's vocabulary {vocab_size} tokens")
