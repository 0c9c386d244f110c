# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""BPE-dropout (Provilkov et al. 2020): training texts whose words are cut into pieces at random.

`tokenizers` has it, too (`BPE(dropout=...)`), but without a seed: a resumed run, or the second of two processes, would
train on other texts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from random import Random

from datasets import Dataset, concatenate_datasets
from transformers import PreTrainedTokenizerBase

from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.tokenizer import SPACE_MARK


# Where words begin, no merge goes across: SentencePiece's mark and that of byte-level vocabularies.
_MARKS = f"{SPACE_MARK}Ġ"
_WORDS = re.compile(f"[{_MARKS}]?[^{_MARKS}]+|[{_MARKS}]")
# Rows on which `draw_segmentations` checks that it cuts as the tokenizer does.
_PROBE = 1000


class BpeDropout:
    """Cuts the words of tokenized texts anew, leaving out merges at random (Algorithm 1 of the paper).

    At each step every merge that a word allows is left out with probability `rate`. Of the others, the one that was
    learned first is applied; if none is left, the word stays as it is. Special and other added tokens stay whole.

    Args:
        tokenizer: A fast tokenizer with a BPE vocabulary that marks where words begin, as `train_tokenizer` makes it.
        rate: At least 0, which cuts as the tokenizer does, and below 1; the paper takes 0.1 for most languages.

    Raises:
        ValueError: the vocabulary is of another kind.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, rate: float):
        backend = json.loads(tokenizer.backend_tokenizer.to_str()) if tokenizer.is_fast else {"model": {}}
        model = backend["model"]
        if model.get("type") != "BPE" or model["continuing_subword_prefix"] or model["end_of_word_suffix"]:
            raise DataError(
                "BPE-dropout needs a fast tokenizer with a BPE vocabulary, whose pieces have no prefix or suffix"
            )
        self.rate = rate
        self.ids = model["vocab"]
        self.ranks = {tuple(merge): rank for rank, merge in enumerate(model["merges"])}
        # What is neither a character nor the result of a merge, such as a byte, stays as it is.
        cuttable = {"".join(merge) for merge in self.ranks} | {piece for piece in self.ids if len(piece) == 1}
        cuttable -= {token["content"] for token in backend["added_tokens"]}
        self.pieces = {self.ids[piece]: piece for piece in cuttable}

    def __call__(self, ids: Sequence[int], generator: Random) -> list[int]:
        """Cut a text's tokens anew, mostly into more of them."""
        cut = []
        for is_text, run in groupby(ids, key=self.pieces.__contains__):
            if is_text:
                for word in _WORDS.findall("".join(self.pieces[id] for id in run)):
                    cut.extend(self.ids[piece] for piece in self._cut(word, generator))
            else:
                cut.extend(run)
        return cut

    def _cut(self, word: str, generator: Random) -> list[str]:
        pieces = list(word)
        while True:
            possible = [
                (self.ranks[pair], place)
                for place, pair in enumerate(pairwise(pieces))
                if pair in self.ranks and generator.random() >= self.rate
            ]
            if not possible:
                return pieces
            _, place = min(possible)
            pieces[place : place + 2] = ["".join(pieces[place : place + 2])]


def draw_segmentations(
    rows: Dataset,
    tokenizers: Mapping[str, PreTrainedTokenizerBase],
    rate: float,
    copies: int,
    max_length: int,
    seed: int,
) -> Dataset:
    """Copies of tokenized training texts, one after the other, each cut into pieces in its own way.

    How a text is cut depends on the seed, the copy and the row's number alone.

    Args:
        rows: With columns of token ids and with `length`, as `tokenize` and `tokenize_pairs` return them.
        tokenizers: The columns that are cut anew, and the tokenizer of each.
        max_length: A text that would get more tokens than this keeps its own.

    Raises:
        ValueError: as in `BpeDropout`, or a tokenizer cuts in a way that merges alone do not explain.
    """
    dropouts = {column: BpeDropout(tokenizer, rate) for column, tokenizer in tokenizers.items()}
    for column, tokenizer in tokenizers.items():
        undropped = BpeDropout(tokenizer, 0)
        for ids in rows[:_PROBE][column]:
            if len(ids) < max_length and undropped(ids, Random(0)) != ids:  # a text that was cut off may differ
                raise DataError(
                    f"BPE-dropout cannot follow this tokenizer, which cuts {tokenizer.decode(ids)!r} in another way"
                )
    return concatenate_datasets(
        [
            rows.map(
                _cut_batch,
                batched=True,
                with_indices=True,
                fn_kwargs={"dropouts": dropouts, "max_length": max_length, "seed": f"{seed} {copy}"},
                desc=f"Cutting words at random, {copy + 1} of {copies}",
            )
            for copy in range(copies)
        ]
    )


def _cut_batch(
    batch: Mapping[str, list], rows: list[int], dropouts: dict[str, BpeDropout], max_length: int, seed: str
) -> dict[str, list]:
    batch = dict(batch)
    generators = [Random(f"{seed} {row}") for row in rows]
    for column, dropout in dropouts.items():
        cuts = [dropout(ids, generator) for ids, generator in zip(batch[column], generators, strict=True)]
        batch[column] = [cut if len(cut) <= max_length else ids for cut, ids in zip(cuts, batch[column], strict=True)]
    sides = [batch[column] for column in dropouts]
    batch["length"] = [max(map(len, row)) for row in zip(*sides, strict=True)]
    return batch
