# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A summary of the data, printed before a training."""

import copy
from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
from datasets import Dataset, DatasetDict
from transformers import PreTrainedTokenizerBase

from .labels import REGRESSION, SINGLE, label_names, problem_type_of


# Texts whose tokens are counted, and labels that are listed.
SAMPLE, MAX_LABELS = 1000, 20


def describe_data(
    data: DatasetDict, tokenizers: Mapping[str, PreTrainedTokenizerBase], max_length: int | None = None
) -> list[str]:
    """Describe data before they are tokenized: rows, labels and lengths.

    Args:
        data: What `load_labelled_text`, `load_parallel_text` or `load_corpus` returned.
        tokenizers: The tokenizer of each column of texts, `text` or `source` and `target`.
        max_length: The number of tokens that a text is cut to; by default each tokenizer's `model_max_length`.

    Returns:
        Lines to print, in English.
    """
    train = data["train"]
    rows = "rows: " + ", ".join(f"{split} {len(rows):,}" for split, rows in data.items())
    labels = _describe_labels(train) if "label" in train.column_names else []
    lengths = [_describe_lengths(train, column, tokenizer, max_length) for column, tokenizer in tokenizers.items()]
    return [rows, *labels, *lengths]


def _describe_labels(rows: Dataset) -> Iterator[str]:
    kind, names, labels = problem_type_of(rows), label_names(rows), rows["label"][:]
    if kind == REGRESSION:
        yield f"labels: numbers from {min(labels):g} to {max(labels):g}, mean {np.mean(labels):.4g}"
        return
    flat = labels if kind == SINGLE else [*chain.from_iterable(labels)]
    counts = np.bincount(np.asarray(flat, dtype=int), minlength=len(names))
    order = np.argsort(-counts, kind="stable")[:MAX_LABELS]
    listed = [f"{names[label]} {counts[label]:,} ({counts[label] / len(rows):.0%})" for label in order]
    more = [f"{len(names) - MAX_LABELS} more"] if len(names) > MAX_LABELS else []
    yield f"labels of train: {', '.join(listed + more)}"


def _describe_lengths(rows: Dataset, column: str, tokenizer: PreTrainedTokenizerBase, max_length: int | None) -> str:
    size, max_length = min(SAMPLE, len(rows)), max_length or tokenizer.model_max_length
    texts = rows[(np.arange(size) * len(rows) // size).tolist()][column]
    # A copy: `save_pretrained` writes how a tokenizer cut its last texts.
    ids = copy.deepcopy(tokenizer)(texts, truncation=False, padding=False, verbose=False)["input_ids"]
    lengths = np.array([*map(len, ids)])
    cut = f"{np.mean(lengths > max_length):.1%} are cut to {max_length:,}"
    sample = f" (of {size:,} rows)" if size < len(rows) else ""
    return f"length of {column}: median {np.median(lengths):.0f} tokens, longest {lengths.max():,}; {cut}{sample}"
