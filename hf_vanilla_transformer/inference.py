# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Run a model on a user's texts: read them, batch them by length, compute class probabilities."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

import torch
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import BatchEncoding, DataCollatorWithPadding, PreTrainedModel, PreTrainedTokenizerBase

from .data.labelled_text import encode
from .data.lines import read_lines, read_standard_input


Answer = TypeVar("Answer")


def given_texts(file: str | None) -> Iterable[list[str]]:
    """Read the texts that a user gives a command, in groups to answer together.

    Args:
        file: Texts, one per line; None for standard input.

    Returns:
        All lines as one group; at a terminal each line as it is typed, up to an empty line or the end of input.

    Raises:
        OSError: The file cannot be read.
        DataError: It is not UTF-8.
    """
    if file is None and sys.stdin.isatty():
        return _typed_lines()
    texts = read_standard_input() if file is None else read_lines(file)
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
    """Answer texts in batches of similar length, which have few pads. A terminal shows a progress bar.

    Args:
        input_ids: The token ids of each text.
        tokenizer: Pads the batches.
        batch_size: Maximum number of texts in a batch.
        answer: Takes a batch, `input_ids` and `attention_mask` (B, S), and returns B answers.

    Returns:
        The answers in the order of `input_ids`.
    """
    order = sorted(range(len(input_ids)), key=lambda place: len(input_ids[place]))
    batches = DataLoader(
        [{"input_ids": input_ids[place]} for place in order],
        batch_size=batch_size,
        collate_fn=DataCollatorWithPadding(tokenizer),
    )
    # disable=None: no bar unless standard error is a terminal.
    answers = [one for batch in tqdm(batches, disable=None, leave=False) for one in answer(batch)]
    in_order = [None] * len(order)
    for place, one in zip(order, answers, strict=True):
        in_order[place] = one
    return in_order


@torch.inference_mode()
def class_probabilities(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: list[str], batch_size: int
) -> torch.Tensor:
    """Classify texts.

    Args:
        model: A classifier.
        tokenizer: Its tokenizer.
        texts: The texts; longer ones than tokenizer and model allow are truncated.
        batch_size: Texts in a batch.

    Returns:
        (texts, labels), float32: the probability of each label.
    """

    def answer(batch: BatchEncoding) -> list[torch.Tensor]:
        return list(model(**batch.to(model.device)).logits.float().softmax(dim=-1).cpu())

    max_length = min(tokenizer.model_max_length, model.config.max_position_embeddings)
    input_ids = encode(texts, tokenizer, max_length)
    return torch.stack(answer_by_length(input_ids, tokenizer, batch_size, answer))
