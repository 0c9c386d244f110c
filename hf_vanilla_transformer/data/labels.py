# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Kinds of labels: one of several, any number of several, or a number."""

import logging
import math
import re
from collections.abc import Collection
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict

from ..errors import DataError
from ..tasks import MULTI, REGRESSION, SINGLE
from .lines import appearance
from .tables import check_label, check_type


logger = logging.getLogger(__name__)
# Separates the labels of a text in a CSV or TSV file.
SEPARATOR = "|"
# With more labels than this, all whole numbers, the user must say whether they are classes.
MAX_NUMBERS = 50


def problem_type_of(data: Dataset) -> str:
    """The kind of the labels that `load_labelled_text` returned: one of `PROBLEM_TYPES`."""
    if isinstance(data.features["label"], ClassLabel):
        return SINGLE
    return MULTI if label_names(data) else REGRESSION


def label_names(data: Dataset) -> list[str]:
    """The names of the labels that `load_labelled_text` returned; none for numbers."""
    feature = data.features["label"]
    feature = getattr(feature, "feature", feature)  # of a list
    return feature.names if isinstance(feature, ClassLabel) else []


def check_labels(source: str, data: DatasetDict, column: str, problem_type: str) -> None:
    """Raise a `DataError` if a column's type does not allow labels of this kind."""
    names = r"(bool|u?int\d+|(large_)?string)"
    pattern, problem = {
        SINGLE: (names, "neither integers nor strings"),
        MULTI: (rf"{names}|\w*list<item: {names}>.*", "no lists of labels"),
        REGRESSION: (f"{names}|halffloat|float|double|decimal.*", "no numbers"),
    }[problem_type]
    check_type(
        source, data, column, pattern, problem, f"; problem_type {REGRESSION} is for numbers, {MULTI} for lists"
    )


def find_label_names(source: str, data: DatasetDict, column: str, problem_type: str | None) -> dict[str, str]:
    """The name of each label, by the label as a string; in numerical order if all are integers.

    Labels that may be numbers to predict are an error unless `problem_type` is given.
    """
    feature = next(iter(data.values())).features[column]
    feature = getattr(feature, "feature", feature)
    if isinstance(feature, ClassLabel):
        _check_names(source, feature.names)
        return {str(number): name for number, name in enumerate(feature.names)}
    found = {split: _labels_of(rows, column, problem_type) for split, rows in data.items()}
    labels = set().union(*found.values())
    integers = all(re.fullmatch(r"[+-]?\d+", label) for label in labels)
    numbers = all(map(is_number, labels))
    if problem_type is None and numbers and (not integers or len(labels) > MAX_NUMBERS):
        raise DataError(
            f"{source}: the column {column!r} holds {len(labels)} different numbers: is problem_type {REGRESSION}, "
            f"numbers to predict, or {SINGLE}, names of classes?"
        )
    names = sorted(labels, key=int if integers else None)
    _check_names(source, names)
    for split, its_labels in found.items() if "train" in found else ():
        if unknown := sorted(its_labels - found["train"]):
            message = f"{source}, split {split}: no row of train has the label {', '.join(unknown)}"
            if len(unknown) == len(its_labels):
                raise DataError(f"{message}; those of train are {', '.join(sorted(found['train']))}")
            logger.warning(message)
    return {name: name for name in names}


def _labels_of(rows: Dataset, column: str, problem_type: str | None) -> set[str]:
    if problem_type == MULTI:
        labels = {label for value in rows[column] for label in split_labels(value)}
    else:
        labels = {str(label).strip() for label in rows.unique(column) if label is not None}
    return labels - {""}


def _check_names(source: str, labels: Collection[str]) -> None:
    looks: dict[str, str] = {}
    for label in labels:
        check_label(source, label)
        other = looks.setdefault(appearance(label), label)
        if other != label:
            raise DataError(f"{source}: the label {label} is written in two ways, {ascii(other)} and {ascii(label)}")


def split_labels(value: Any) -> list[str]:
    """The labels of one text, from a list or from a string with `SEPARATOR` between them; None has none."""
    values = str(value).split(SEPARATOR) if isinstance(value, str) else [] if value is None else value
    values = values if isinstance(values, list) else [values]
    return [label for one in values if (label := str(one).strip())]


def read_label(value: Any, label_ids: dict[str, int], problem_type: str) -> int | list[int] | float | None:
    """One text's label, as it is stored; None if the value is no label of this kind."""
    if problem_type == MULTI:
        ids = {label_ids.get(label) for label in split_labels(value)}
        return None if None in ids else sorted(ids)
    text = "" if value is None else str(value).strip()
    if problem_type == SINGLE:
        return label_ids.get(text)
    return float(text) if is_number(text) else None


def multi_hot(labels: list[list[int]], number: int) -> list[list[float]]:
    """Each text's labels as `number` values, 1.0 or 0.0, as the loss of several labels takes them."""
    return [[float(label in chosen) for label in range(number)] for chosen in map(set, labels)]


def is_number(text: str) -> bool:
    """Whether a label is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
