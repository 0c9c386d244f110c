# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Kinds of labels: one of several, any number of several, or a number."""

import contextlib
import logging
import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from datasets import ClassLabel, Dataset

from .errors import DataError
from .lines import appearance
from .problem_types import MULTI, REGRESSION, SINGLE


logger = logging.getLogger(__name__)
# Separates the labels of a text in a CSV or TSV file.
SEPARATOR = "|"
# Vectors of 0 and 1 as text, and lists, tuples and sets of names as Python prints them; no interval such as [0, 10).
_VECTOR, _PRINTED = r"([\s,;|(){}\[\]]|[01](\.0+)?\b|true|false)+", r"\[(?!.*\)$)|[({]['\"]"
_NAMES = r"(null|bool|u?int\d+|(large_)?string)"
# For each kind of labels: its Arrow types, and the message about others.
LABEL_TYPES = {
    SINGLE: (_NAMES, f"neither integers nor strings; problem_type {REGRESSION} is for numbers, {MULTI} for lists"),
    MULTI: (rf"{_NAMES}|\w*list<item: {_NAMES}>.*", "no lists of labels, each with its name"),
    REGRESSION: (f"{_NAMES}|halffloat|float|double|decimal.*", "no numbers"),
}


def problem_type_of(data: Dataset) -> str:
    """Return the kind of the labels that `load_labelled_text` returned: one of `PROBLEM_TYPES`."""
    if isinstance(data.features["label"], ClassLabel):
        return SINGLE
    return MULTI if label_names(data) else REGRESSION


def label_names(data: Dataset) -> list[str]:
    """Return the names of the labels if they are `ClassLabel`, or lists of them; else none."""
    feature = data.features["label"]
    feature = getattr(feature, "feature", feature)  # of a list
    return feature.names if isinstance(feature, ClassLabel) else []


def read_labels(value: Any, names: Sequence[str], problem_type: str) -> list[str]:
    """Return the labels of one text as strings, none if it has none; `names` are those of a `ClassLabel`."""
    if problem_type == MULTI and isinstance(value, str):
        value = value.split(SEPARATOR)
    values: list[Any] = [one for one in (value if isinstance(value, list) else [value]) if one is not None]
    if names:
        return [names[number] for number in values if number >= 0]
    return [label for one in values if (label := str(one).strip())]


def labels_of(rows: Dataset, problem_type: str) -> list[str]:
    """Return the labels of a split, each once; all names of a `ClassLabel`, in their order."""
    names = label_names(rows)
    values = rows["label"] if problem_type == MULTI else rows.unique("label")
    labels = {label: None for value in values for label in read_labels(value, names, problem_type)}
    return [*names] if names and labels else [*labels]


def order_labels(source: str, labels: Mapping[str, Sequence[str]], have_order: bool, problem_type: str) -> list[str]:
    """Return the labels of all splits, sorted, numbers by their size, unless they have an order."""
    every = list(dict.fromkeys(chain.from_iterable(labels.values())))
    if not have_order:
        integers = all(re.fullmatch(r"[+-]?\d+", label) for label in every)
        every.sort(key=int if integers else str)
        are_vectors = all(re.fullmatch(_VECTOR, label, re.IGNORECASE) for label in every)
        are_printed = (any if problem_type == MULTI else all)(re.match(_PRINTED, label) for label in every)
        has_several = problem_type == MULTI or any(re.search(r"[\s,|]", label) for label in every)
        if every and has_several and (are_vectors or are_printed):
            raise DataError(
                f"{source}: the labels are vectors of 0 and 1, or lists as text: for {MULTI}, name the labels of each "
                f"text, in a list or with {SEPARATOR} between them"
            )
        forms: dict[str, str] = {}
        for label in every:
            whole = re.fullmatch(r"([+-]?\d+)(\.0+)?", label)
            other = forms.setdefault(str(int(whole[1])) if whole else appearance(label), label)
            if other != label:
                raise DataError(f"{source}: the label {label} is written in two ways, {ascii(other)}, {ascii(label)}")
    for split in labels if "train" in labels else ():
        if unknown := sorted({*labels[split]} - {*labels["train"]}):
            logger.warning(f"{source}, split {split}: no row of train has the label {', '.join(unknown)}")
    return every


def read_label(
    value: Any, names: Sequence[str], label_ids: Mapping[str, int], problem_type: str
) -> int | list[int] | float | None:
    """Return the labels of one text as they are stored; None if they are no label of this kind."""
    labels = read_labels(value, names, problem_type)
    if problem_type == MULTI:
        if len({*labels}) < len(labels):
            raise DataError(f"one text has a label twice: {', '.join(labels)}")
        return sorted(label_ids[label] for label in labels)
    if problem_type == SINGLE:
        return label_ids.get(labels[0]) if labels else None
    with contextlib.suppress(ValueError, IndexError):
        if math.isfinite(number := float(labels[0])):
            return number
    return None


def multi_hot(labels: list[list[int]], number: int) -> list[list[float]]:
    """Turn each text's labels into `number` values, 1.0 or 0.0, as the loss of several labels takes them."""
    return [[float(label in chosen) for label in range(number)] for chosen in labels]
