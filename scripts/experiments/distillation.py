# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Distillation (Hinton et al. 2015): texts with what a teacher makes of them, and the loss that learns from it."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from glob import escape
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import yaml
from datasets import Dataset, DatasetDict, Features, List, Value, concatenate_datasets
from scipy.signal import lfilter
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from torch import nn
from transformers import PreTrainedTokenizerBase
from transformers.modeling_outputs import Seq2SeqSequenceClassifierOutput

from hf_vanilla_transformer.data.checksums import describe_splits, file_checksum
from hf_vanilla_transformer.data.labelled_text import tokenize
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.hub.record import METRICS_FILE, RECIPE_FILE


SOFT_LABELS_FILE = "soft_labels.parquet"
SOFT_LABELS = Features({"text": Value("string"), "label": List(Value("float32"))})


def linear_classifier() -> Pipeline:
    """A classifier that is not fit yet: logistic regression on the n-grams of one to five characters within words.

    N-grams of two texts or more are counted, on a logarithmic scale, and weighted by how rare they are (tf-idf).
    """
    return make_pipeline(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 5), min_df=2, sublinear_tf=True, dtype=np.float32),
        LogisticRegression(C=8.0, max_iter=1000),
    )


def cross_fit(texts: Sequence[str], labels: Sequence[int], seed: int) -> np.ndarray:
    """What `linear_classifier` makes of texts that it was not fit to: a fifth at a time, fit to the other four.

    Returns the probabilities (texts, labels), float. Each label needs at least five texts. Of a text that is there
    twice, it may have seen the other one.
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_predict(linear_classifier(), texts, labels, cv=folds, method="predict_proba")


def compose_texts(texts: Sequence[str], number: int, seed: int) -> list[str]:
    """Texts for a teacher to label, made of pieces of other texts, where there are no unlabelled ones.

    At random, each is some consecutive words of one text, or the beginning of one text and the end of another. A piece
    may be a whole text. `number` are made for each text that has words, with single spaces between them.
    """
    generator = Random(seed)
    texts_in_words = [words for text in texts if (words := text.split())]
    composed = []
    for _ in range(number):
        for words in texts_in_words:
            if generator.random() < 0.5:
                size = generator.randint(1, len(words))
                start = generator.randint(0, len(words) - size)
                piece = words[start : start + size]
            else:
                other = generator.choice(texts_in_words)
                piece = words[: generator.randint(1, len(words))] + other[generator.randrange(len(other)) :]
            composed.append(" ".join(piece))
    return composed


def labels_nearby(
    files: Sequence[Sequence[str]], texts: Sequence[str], labels: Sequence[int], scale: int
) -> dict[str, np.ndarray]:
    """How much likelier each label is near the labelled lines of files where lines on one subject are together.

    Such as reviews of one film. A labelled line counts exp(-distance / scale), and beside these count as many lines as
    there are labels, labelled as all texts are, so that few lines say little. What is there twice, in the files or
    among the texts, is left out, for nobody knows which of the two is labelled.

    Args:
        files: The lines of each.
        texts: Labelled texts; those that are among the lines count.
        labels: Their labels, 0 and so on, each at least once.
        scale: The distance, in lines, at which a line counts a third (1 / e) and beyond which less, at least 1.

    Returns:
        For each line that is there once, (labels,), float: the share of each label near it, itself not counted, over
        its share of all texts. By Bayes' rule, the factor for the probabilities of a classifier that knows the line
        alone, where the label decides about the line, whatever the neighbours are.

    Raises:
        DataError: No text is a line, so that nothing is known.
    """
    prior = np.bincount(labels) / len(labels)
    times, times_labelled = Counter(chain.from_iterable(files)), Counter(texts)
    known = {
        text: label
        for text, label in zip(texts, labels, strict=True)
        if times[text] == 1 and times_labelled[text] == 1
    }
    if not known:
        raise DataError("no training text is a line of the files, and there once")
    decay = np.exp(-1 / scale)
    factors = {}
    for lines in files:
        labelled = np.zeros((len(lines), len(prior)))
        for row, line in zip(labelled, lines, strict=True):
            if line in known:
                row[known[line]] = 1
        # The sums over all lines before, and after: each is the next one's and what that line adds, times the decay.
        before, after = (lfilter([0, decay], [1, -decay], rows, axis=0) for rows in (labelled, labelled[::-1]))
        near = before + after[::-1] + len(prior) * prior
        shares = near / near.sum(axis=1, keepdims=True)
        factors.update((line, share / prior) for line, share in zip(lines, shares, strict=True) if times[line] == 1)
    return factors


def load_soft_labels(folder: str | os.PathLike, number_of_labels: int) -> Dataset:
    """Read what soft_labels.py wrote: rows of `SOFT_LABELS`, with the probability of each label.

    Raises:
        DataError: There is no such file, or it holds something else.
    """
    file = os.path.join(folder, SOFT_LABELS_FILE)
    if not os.path.isfile(file):
        raise DataError(f"{file}: no such file")
    rows = Dataset.from_parquet(escape(file))
    if rows.features != SOFT_LABELS:
        raise DataError(f"{file}: not made by soft_labels.py, its columns are {dict(rows.features)}")
    numbers = {len(label) for label in rows["label"][:]}
    if numbers - {number_of_labels}:
        raise DataError(f"{file}: probabilities of {max(numbers)} labels, where the data have {number_of_labels}")
    return rows


def describe_soft_labels(folder: str | os.PathLike, data: DatasetDict) -> dict[str, Any]:
    """Describe soft labels for a run's record, and see that they were made for its data.

    Made for another cut of the data they would hold texts of validation or test, or what was learned from these.

    Returns:
        The settings that they were made with, `recipe`; the file's checksum, `sha256`; and what was measured then.

    Raises:
        DataError: They were made for other splits.
    """
    metrics = json.loads(Path(folder, METRICS_FILE).read_text(encoding="utf-8"))
    recipe = Path(folder, RECIPE_FILE).read_text(encoding="utf-8")
    splits = {name: metrics.get("data", {}).get(name) for name in data}
    if splits != describe_splits(data):
        raise DataError(f"{folder}: the soft labels were made for other data, or for another cut of these")
    return {
        "recipe": yaml.safe_load(recipe),
        "sha256": file_checksum(Path(folder, SOFT_LABELS_FILE)),
        **metrics,
    }


class SoftLabels:
    """The soft labels of a folder, that a classifier learns from, as the hooks of `commands.classifier.train`."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = folder

    def describe(self, data: DatasetDict) -> dict[str, Any]:
        """Read the soft labels, and describe them for the run's record."""
        self.number_of_labels = len(data["train"].features["label"].names)
        self.rows = load_soft_labels(self.folder, self.number_of_labels)
        return {"soft_labels": describe_soft_labels(self.folder, data)}

    def extend(self, labelled: Dataset, tokenizer: PreTrainedTokenizerBase, max_length: int) -> Dataset:
        """Add the soft labels' rows to the tokenized training set, whose labels become 0 and 1; after `describe`."""
        soft = tokenize(self.rows, tokenizer, max_length, keep_texts="text" in labelled.column_names)
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

    The sum over the rows of logits (B, C), divided by their number. Labels are (B, C), float, each row of sum 1; or in
    an evaluation (B,), int64. Trainer counts C items for each row of all calls that make up a batch.
    """
    loss = nn.functional.cross_entropy(outputs.logits.float(), labels, reduction="sum")
    rows = len(labels) if num_items_in_batch is None else num_items_in_batch * len(labels) / labels.numel()
    return loss / rows
