# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Texts to ids and back, without an import of transformers."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Encoding, Tokenizer

from ..errors import named_errors


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class TextTokenizer:
    """A tokenizer that adds `added_tokens` to each text, such as [EOS]. Threads can share it.

    A `Tokenizer` keeps the truncation and padding of its last call, and another thread would use them. So this one has
    none, and `cut` truncates.
    """

    def __init__(self, tokenizer: Tokenizer, max_length: int, side: str):
        self._tokenizer, self.max_length, self._side = tokenizer, max_length, side
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.added_tokens = tokenizer.num_special_tokens_to_add(is_pair=False)

    @classmethod
    def of_export(cls, folder: str, subfolder: str = "") -> "TextTokenizer":
        """Load the tokenizer of an exported folder."""
        file = Path(folder, subfolder, "tokenizer.json")
        with named_errors(folder, "tokenizer"):
            settings = json.loads(file.with_name("tokenizer_config.json").read_text(encoding="utf-8"))
            limit, side = settings.get("model_max_length", sys.maxsize), settings.get("truncation_side", "right")
            return cls(Tokenizer.from_file(str(file)), limit, side)

    @classmethod
    def of_transformers(cls, tokenizer: "PreTrainedTokenizerBase") -> "TextTokenizer":
        """Make a copy of a fast tokenizer of transformers."""
        backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        return cls(backend, tokenizer.model_max_length, tokenizer.truncation_side)

    def encode(self, texts: list[str], max_length: int) -> tuple[list[list[int]], list[int]]:
        """Return the ids of texts, cut to `max_length` as the tokenizer cuts, and the number of ids before that."""
        encoded = self._tokenizer.encode_batch(texts)
        return [cut(one, max_length, self._side) for one in encoded], [len(one) for one in encoded]

    def decode(self, rows: list[list[int]]) -> list[str]:
        """Return the texts of ids, without special tokens."""
        return self._tokenizer.decode_batch(rows, skip_special_tokens=True)


def cut(encoding: Encoding, max_length: int, side: str) -> list[int]:
    """Return the ids of a text, truncated on one side to `max_length`; the tokens that a template adds stay."""
    if len(encoding) <= max_length:
        return encoding.ids
    own = [place for place, is_special in enumerate(encoding.special_tokens_mask) if not is_special]
    surplus = min(len(encoding) - max_length, len(own))
    left_out = {*(own[:surplus] if side == "left" else own[len(own) - surplus :])}
    return [token for place, token in enumerate(encoding.ids) if place not in left_out]
