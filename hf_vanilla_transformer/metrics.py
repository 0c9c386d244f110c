# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What is measured: classification with scikit-learn, perplexity, translation with sacreBLEU."""

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
        `accuracy`; `f1`, of label 1 where there are two labels and the unweighted mean over labels otherwise;
        `confusion_matrix`, rows the true labels and columns the predicted ones; `rows`.
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
    """Measure whether a classifier is right as often as it says (Guo et al. 2017, "On Calibration").

    Args:
        probabilities: (rows, labels), float.
        labels: (rows,), int.
        bins: Into how many bins of equal width the probabilities of the predicted labels go.

    Returns:
        `expected_calibration_error` (Eq. 3), the mean difference of confidence and accuracy in a bin, weighted by its
        rows; and `bins`, those with rows: `rows`, `confidence`, the mean probability of the predicted label, and
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
    """Measure an evaluation during training, for Trainer's log and its choice of the best epoch.

    Args:
        prediction: Logits (rows, labels) and labels (rows,).

    Returns:
        `accuracy` and `f1`, as `classification_report` has them.
    """
    report = classification_report(prediction.predictions, prediction.label_ids)
    return {name: report[name] for name in ("accuracy", "f1")}


def token_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Reduce an evaluation's logits while they are at hand (Trainer's `preprocess_logits_for_metrics`).

    Args:
        logits: (B, T, V).
        labels: (B, T), -100 for pads.

    Returns:
        (B, 2), float: each row's sum of losses and number of tokens.
    """
    losses = nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none")
    return torch.stack([losses.view_as(labels).sum(dim=1), (labels != -100).sum(dim=1)], dim=1)


def compute_perplexity(prediction: EvalPrediction) -> dict[str, float]:
    """Measure an evaluation: over all its tokens, where Trainer's `eval_loss` is a mean of batches' means.

    Args:
        prediction: What `token_losses` returned for all rows, (rows, 2).

    Returns:
        `token_loss`, the mean loss of a token without any label smoothing, and its exponential, `perplexity`.
    """
    losses, tokens = prediction.predictions.astype(np.float64).sum(axis=0)
    return {"token_loss": float(losses / tokens), "perplexity": float(np.exp(losses / tokens))}


def translation_report(translations: list[str], references: list[str]) -> dict[str, Any]:
    """Measure translations with sacreBLEU.

    Args:
        translations: What the model wrote, as plain text.
        references: What a translator wrote.

    Returns:
        `bleu`, cased and detokenised; `bleu_lowercased`, of lower-cased tokens (13a); the signature of each; `rows`.

    Raises:
        ValueError: there is not one reference for each translation.
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
    """Measure translations as the tutorials do: BLEU of words, which are lower-cased where the tokenizer's texts are.

    Args:
        translations: The ids that the model gave; pads may be -100.
        references: What a translator wrote.
        tokenizer: The target side's. In a vocabulary of words, an unknown one is never right.

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
    """Measure a trained model on a split.

    Args:
        trainer: Holds the model.
        split: What `tokenize` returned for it.

    Returns:
        The mean `loss`, and what `classification_report` returns.
    """
    prediction = trainer.predict(split)
    report = classification_report(prediction.predictions, prediction.label_ids)
    return {"loss": prediction.metrics["test_loss"], **report}
