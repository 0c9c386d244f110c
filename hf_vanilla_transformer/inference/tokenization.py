# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Texts to ids and back, with the tokenizer of an export (without transformers) or one of transformers."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Encoding, Tokenizer

from ..data.errors import named_errors


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class ExportedTokenizer:
    """The tokenizer of an exported folder; each text gets `added_tokens`, such as [EOS]. Threads can share it."""

    def __init__(self, folder: str, subfolder: str = ""):
        file = Path(folder, subfolder, "tokenizer.json")
        with named_errors(folder, "tokenizer"):
            self.backend = Tokenizer.from_file(str(file))
            settings = json.loads(file.with_name("tokenizer_config.json").read_text(encoding="utf-8"))
        self.backend.no_truncation()
        self.backend.no_padding()
        self.max_length = settings.get("model_max_length", sys.maxsize)
        self.added_tokens = self.backend.num_special_tokens_to_add(is_pair=False)
        self._side = settings.get("truncation_side", "right")

    def encode(self, texts: list[str], max_length: int) -> tuple[list[list[int]], list[int]]:
        """Return the ids of texts, cut to `max_length` as the tokenizer cuts, and the number of ids before that."""
        encoded = self.backend.encode_batch(texts)
        return [cut(one, max_length, self._side) for one in encoded], [len(one) for one in encoded]

    def decode(self, rows: list[list[int]]) -> list[str]:
        """Return the texts of ids, without special tokens."""
        return self.backend.decode_batch(rows, skip_special_tokens=True)


class TransformersTokenizer:
    """A tokenizer of transformers, as an `ExportedTokenizer`.

    A fast tokenizer keeps the truncation and padding of its last call, and another thread would use them. So all calls
    here have the same settings, and `cut` truncates.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase"):
        self._tokenizer: Any = tokenizer
        self.backend = tokenizer.backend_tokenizer if tokenizer.is_fast else None
        self.max_length, self.added_tokens = tokenizer.model_max_length, tokenizer.num_special_tokens_to_add()

    def encode(self, texts: list[str], max_length: int) -> tuple[list[list[int]], list[int]]:
        encoded = self._tokenizer(texts, truncation=False, padding=False, verbose=False)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        if self.backend is not None:
            rows = [cut(one, max_length, self._tokenizer.truncation_side) for one in encoded.encodings]
        else:
            rows = self._tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
        return rows, lengths

    def decode(self, rows: list[list[int]]) -> list[str]:
        return self._tokenizer.batch_decode(rows, skip_special_tokens=True)


TextTokenizer = ExportedTokenizer | TransformersTokenizer


def cut(encoding: Encoding, max_length: int, side: str) -> list[int]:
    """Return the ids of a text, truncated on one side to `max_length`; the tokens that a template adds stay."""
    if len(encoding) <= max_length:
        return encoding.ids
    own = [place for place, is_special in enumerate(encoding.special_tokens_mask) if not is_special]
    surplus = min(len(encoding) - max_length, len(own))
    left_out = {*(own[:surplus] if side == "left" else own[len(own) - surplus :])}
    return [token for place, token in enumerate(encoding.ids) if place not in left_out]
