# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What scripts that answer texts have in common: where the texts come from, and batches of like length."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import BatchEncoding, DataCollatorWithPadding, PreTrainedTokenizerBase

from .data import read_lines


Answer = TypeVar("Answer")


def given_texts(file: str | None) -> Iterable[list[str]]:
    """The texts that a user gives a script, in the groups in which they are to be answered.

    Args:
        file: Texts, one a line; None for standard input.

    Returns:
        All lines of the file, or of standard input, as one group; at a terminal each line as it is typed, until an
        empty one or the end of input.

    Raises:
        OSError: The file cannot be read.
        DataError: It is not text.
    """
    if file is None and sys.stdin.isatty():
        return _typed_lines()
    texts = [line.rstrip("\r\n") for line in sys.stdin] if file is None else read_lines(file)
    return [texts] if texts else []


def _typed_lines() -> Iterator[list[str]]:
    with suppress(EOFError):
        while line := input("> "):
            yield [line]


def answer_by_length(
    input_ids: list[list[int]],
    tokenizer: PreTrainedTokenizerBase,
    batch_size: int,
    answer: Callable[[BatchEncoding], list[Answer]],
) -> list[Answer]:
    """Answer texts in batches of like length, which have few pads. A terminal shows how far it has come.

    Args:
        input_ids: The token ids of each text.
        tokenizer: Pads the batches.
        batch_size: Greatest number of texts in a batch.
        answer: Takes a batch, `input_ids` and `attention_mask` (B, S), and returns an answer for each row.

    Returns:
        The answers in the order of `input_ids`.
    """
    order = sorted(range(len(input_ids)), key=lambda place: len(input_ids[place]))
    batches = DataLoader(
        [{"input_ids": input_ids[place]} for place in order],
        batch_size=batch_size,
        collate_fn=DataCollatorWithPadding(tokenizer),
    )
    # disable=None: no bar where standard error is not a terminal.
    answers = [one for batch in tqdm(batches, disable=None, leave=False) for one in answer(batch)]
    in_order = [None] * len(order)
    for place, one in zip(order, answers, strict=True):
        in_order[place] = one
    return in_order
