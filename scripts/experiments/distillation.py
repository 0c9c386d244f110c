# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Distillation (Hinton et al. 2015): texts with a teacher's probabilities, and the loss that learns from them."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from glob import escape
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from datasets import Dataset, DatasetDict, Features, List, Value, concatenate_datasets
from scipy.signal import lfilter
from torch import nn
from transformers import PreTrainedTokenizerBase
from transformers.modeling_outputs import Seq2SeqSequenceClassifierOutput

from hf_vanilla_transformer import DataError
from hf_vanilla_transformer.data.labelled_text import tokenize
from hf_vanilla_transformer.data.sources import describe_splits, file_checksum
from hf_vanilla_transformer.hub.record import METRICS_FILE, RECIPE_FILE


SOFT_LABELS_FILE = "soft_labels.parquet"
SOFT_LABELS = Features({"text": Value("string"), "label": List(Value("float32"))})


def labels_nearby(
    files: Sequence[Sequence[str]], texts: Sequence[str], labels: Sequence[int], scale: int
) -> dict[str, np.ndarray]:
    """Estimate from the labelled lines near each line how much likelier each label is there.

    In these files, lines on one subject are together, such as reviews of one film. A labelled line has the weight
    exp(-distance / scale). As many lines as there are labels are added to all of them, labelled as all texts are, so
    that few lines change little. Texts and lines that occur twice are left out: which of the two the label belongs to
    is unknown.

    Args:
        files: The lines of each.
        texts: Labelled texts, some of which are lines of the files.
        labels: Their labels, 0 and so on, each at least once.
        scale: The distance, in lines, at which a line has the weight 1/e; at least 1.

    Returns:
        For each line that occurs once, (labels,), float: the share of each label near it, without the line itself,
        over its share of all texts. If line and neighbours are independent given the label, Bayes' rule multiplies a
        classifier's probabilities for the line by this factor.

    Raises:
        DataError: No text is a line.
    """
    prior = np.bincount(labels) / len(labels)
    times, times_labelled = Counter(chain.from_iterable(files)), Counter(texts)
    known = {
        text: label
        for text, label in zip(texts, labels, strict=True)
        if times[text] == 1 and times_labelled[text] == 1
    }
    if not known:
        raise DataError("no training text is a line of the files, or all of them occur twice")
    decay = np.exp(-1 / scale)
    factors = {}
    for lines in files:
        labelled = np.zeros((len(lines), len(prior)))
        for row, line in zip(labelled, lines, strict=True):
            if line in known:
                row[known[line]] = 1
        # Weighted sums over all lines before each line, and after it: sum[i] = decay * (sum[i - 1] + labelled[i - 1]).
        before, after = (lfilter([0, decay], [1, -decay], rows, axis=0) for rows in (labelled, labelled[::-1]))
        near = before + after[::-1] + len(prior) * prior
        shares = near / near.sum(axis=1, keepdims=True)
        factors.update((line, share / prior) for line, share in zip(lines, shares, strict=True) if times[line] == 1)
    return factors


def describe_soft_labels(folder: str | os.PathLike, data: DatasetDict) -> dict[str, Any]:
    """Describe soft labels for a run's record.

    Returns:
        The settings that they were made with, `recipe`; the file's checksum, `sha256`; and the metrics of then.

    Raises:
        DataError: They were made for other splits, so that they may hold texts of validation or test.
    """
    metrics = json.loads(Path(folder, METRICS_FILE).read_text(encoding="utf-8"))
    recipe = Path(folder, RECIPE_FILE).read_text(encoding="utf-8")
    splits = {name: metrics["data"].get(name) for name in data}
    if splits != describe_splits(data):
        raise DataError(f"{folder}: the soft labels were made for other data, or for another cut of these")
    return {
        "recipe": yaml.safe_load(recipe),
        "sha256": file_checksum(Path(folder, SOFT_LABELS_FILE)),
        **metrics,
    }


class SoftLabels:
    """A folder's soft labels, as hooks of `training.classifier.train`."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = folder

    def describe(self, data: DatasetDict) -> dict[str, Any]:
        """Describe the soft labels for the run's record."""
        self.number_of_labels = len(data["train"].features["label"].names)
        return {"soft_labels": describe_soft_labels(self.folder, data)}

    def extend(self, labelled: Dataset, tokenizer: PreTrainedTokenizerBase) -> Dataset:
        """Add the soft labels' rows to the tokenized training set, whose labels become one-hot; after `describe`."""
        rows = Dataset.from_parquet(escape(os.path.join(self.folder, SOFT_LABELS_FILE)))
        soft = tokenize(rows, tokenizer, keep_texts="text" in labelled.column_names)
        one_hot = np.eye(self.number_of_labels, dtype=np.float32)
        labelled = labelled.map(
            lambda batch: {"labels": one_hot[batch["labels"]]},
            batched=True,
            features=soft.features,
            desc="One-hot labels",
        )
        return concatenate_datasets([labelled, soft])


def soft_label_loss(
    outputs: Seq2SeqSequenceClassifierOutput,
    labels: torch.Tensor,
    num_items_in_batch: int | torch.Tensor | None = None,
) -> torch.Tensor:
    """Cross-entropy with probabilities as labels, as a `compute_loss_func` for Trainer.

    Args:
        outputs: With `logits`, (B, C).
        labels: (B, C), float, each row of sum 1; in an evaluation (B,), int64.
        num_items_in_batch: Trainer's, which counts C items for each row.
    """
    loss = nn.functional.cross_entropy(outputs.logits.float(), labels, reduction="sum")
    rows = len(labels) if num_items_in_batch is None else num_items_in_batch * len(labels) / labels.numel()
    return loss / rows
