# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Metrics: classification with scikit-learn, perplexity, translation with sacreBLEU."""

from typing import Any

import numpy as np
import torch
from datasets import Dataset
from tokenizers.models import WordLevel
from torch import nn
from transformers import EvalPrediction, PreTrainedTokenizerBase, Trainer

from .tokenizer import split_words


def classification_report(logits: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Measure a classifier's predictions with scikit-learn.

    Args:
        logits: (rows, labels), float.
        labels: (rows,), int.

    Returns:
        `accuracy`; `f1`, of label 1 if there are two labels, else the macro average; `confusion_matrix`, true labels
        in rows and predicted ones in columns; `rows`.
    """
    from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

    number_of_labels = logits.shape[-1]
    predicted = logits.argmax(axis=-1)
    average = "binary" if number_of_labels == 2 else "macro"
    return {
        "accuracy": float(accuracy_score(labels, predicted)),
        "f1": float(f1_score(labels, predicted, average=average, zero_division=0.0)),
        "confusion_matrix": confusion_matrix(labels, predicted, labels=range(number_of_labels)).tolist(),
        "rows": len(labels),
    }


def calibration_report(probabilities: np.ndarray, labels: np.ndarray, bins: int = 10) -> dict[str, Any]:
    """Measure a classifier's calibration (Guo et al. 2017, "On Calibration of Modern Neural Networks").

    Args:
        probabilities: (rows, labels), float.
        labels: (rows,), int.
        bins: Number of bins of equal width for the probability of the predicted label.

    Returns:
        `expected_calibration_error` (Eq. 3), the mean of |accuracy - confidence| over bins, weighted by their rows;
        and `bins`, those that are not empty: `rows`, `confidence` (mean probability of the predicted label),
        `accuracy`.
    """
    confidence, right = probabilities.max(axis=-1), probabilities.argmax(axis=-1) == labels
    number = np.minimum((confidence * bins).astype(int), bins - 1)
    filled = [
        {
            "rows": int(chosen.sum()),
            "confidence": float(confidence[chosen].mean()),
            "accuracy": float(right[chosen].mean()),
        }
        for chosen in (number == place for place in range(bins))
        if chosen.any()
    ]
    error = sum(one["rows"] * abs(one["confidence"] - one["accuracy"]) for one in filled) / len(labels)
    return {"expected_calibration_error": error, "bins": filled}


def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
    """Compute Trainer's metrics of a classifier (`compute_metrics`).

    Args:
        prediction: Logits (rows, labels) and labels (rows,).

    Returns:
        `accuracy` and `f1` of `classification_report`.
    """
    report = classification_report(prediction.predictions, prediction.label_ids)
    return {name: report[name] for name in ("accuracy", "f1")}


def token_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Reduce a batch's logits to sums, so that Trainer need not keep them (`preprocess_logits_for_metrics`).

    Args:
        logits: (B, T, V).
        labels: (B, T), -100 for pads.

    Returns:
        (B, 2), float: each row's sum of losses and number of tokens.
    """
    losses = nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none")
    return torch.stack([losses.view_as(labels).sum(dim=1), (labels != -100).sum(dim=1)], dim=1)


def compute_perplexity(prediction: EvalPrediction) -> dict[str, float]:
    """Compute perplexity over all tokens; Trainer's `eval_loss` is a mean of batch means (`compute_metrics`).

    Args:
        prediction: The rows of `token_losses`, (rows, 2).

    Returns:
        `token_loss`, the mean loss per token without label smoothing, and its exponential, `perplexity`.
    """
    losses, tokens = prediction.predictions.astype(np.float64).sum(axis=0)
    return {"token_loss": float(losses / tokens), "perplexity": float(np.exp(losses / tokens))}


def translation_report(translations: list[str], references: list[str]) -> dict[str, Any]:
    """Measure translations with sacreBLEU.

    Args:
        translations: The model's translations, detokenized.
        references: One reference per translation.

    Returns:
        `bleu`, cased, and `bleu_lowercased`, both with sacreBLEU's own tokenizer (13a); the signature of each; `rows`.

    Raises:
        ValueError: the numbers of translations and references differ.
    """
    from sacrebleu.metrics import BLEU

    if len(translations) != len(references):
        raise ValueError(f"{len(translations)} translations, {len(references)} references")

    report = {}
    for name, metric in (("bleu", BLEU()), ("bleu_lowercased", BLEU(lowercase=True))):
        report[name] = metric.corpus_score(translations, [references]).score
        report[f"{name}_signature"] = str(metric.get_signature())
    return {**report, "rows": len(references)}


def word_report(
    translations: list[list[int]], references: list[str], tokenizer: PreTrainedTokenizerBase
) -> dict[str, Any]:
    """Measure translations as the tutorials do: BLEU of words, lower-cased if the tokenizer lower-cases.

    Args:
        translations: The ids that the model wrote; pads may be -100.
        references: One reference per translation.
        tokenizer: The target tokenizer. In a vocabulary of words, `[UNK]` matches nothing.

    Returns:
        `bleu_words`, of words as `split_words` cuts them, and its signature.
    """
    from sacrebleu.metrics import BLEU

    outside = {-100, tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id}
    rows = [[token for token in row if token not in outside] for row in translations]
    if isinstance(tokenizer.backend_tokenizer.model, WordLevel):
        words = [tokenizer.convert_ids_to_tokens(row) for row in rows]
    else:
        words = [split_words(text) for text in tokenizer.batch_decode(rows, skip_special_tokens=True)]
    normalizer = tokenizer.backend_tokenizer.normalizer
    expected = [split_words(normalizer.normalize_str(text)) for text in references]
    metric = BLEU(tokenize="none", force=True)
    return {
        "bleu_words": metric.corpus_score(list(map(" ".join, words)), [list(map(" ".join, expected))]).score,
        "bleu_words_signature": str(metric.get_signature()),
    }


def evaluate_split(trainer: Trainer, split: Dataset) -> dict[str, Any]:
    """Measure a trained classifier on a split.

    Args:
        trainer: Holds the model.
        split: The tokenized split.

    Returns:
        The mean `loss`, and what `classification_report` returns.
    """
    prediction = trainer.predict(split)
    report = classification_report(prediction.predictions, prediction.label_ids)
    return {"loss": prediction.metrics["test_loss"], **report}
