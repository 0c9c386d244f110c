# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Temperature scaling (Guo et al. 2017, "On Calibration of Modern Neural Networks"), folded into the head."""

import math
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer

from ..data.problem_types import MULTI


# Fewer rows say nothing about probabilities.
MIN_ROWS = 20
# With fewer wrong answers, the temperature is at least 1: with none, the best one would be 0.
MIN_WRONG = 10
BOUNDS = (0.1, 10.0)  # of temperatures


def calibrate(trainer: Trainer, split: Dataset, problem_type: str) -> dict[str, Any]:
    """Divide a trained classifier's head by the temperature that fits a tokenized split best.

    So every engine, export and pipeline has the temperature without further code. Of several labels a text, each has
    a temperature of its own.

    Returns:
        `temperature`, a number or a list, and `rows`; or `skipped`, the reason.
    """
    halves = {name: getattr(trainer.args, name) for name in ("bf16_full_eval", "fp16_full_eval")}
    vars(trainer.args).update(dict.fromkeys(halves, False))  # they would round the weights before these are saved
    prediction = trainer.predict(split)
    vars(trainer.args).update(halves)
    logits, labels = np.asarray(prediction.predictions), np.asarray(prediction.label_ids)
    if len(labels) < MIN_ROWS:
        return {"skipped": f"the validation split has {len(labels)} rows, fewer than {MIN_ROWS}"}
    if (labels == labels[0]).all():
        return {"skipped": "the validation split has a single label"}
    temperature = fit_temperature(torch.tensor(logits), torch.tensor(labels), problem_type)
    wrong = (logits > 0) != (labels > 0.5) if problem_type == MULTI else logits.argmax(axis=-1) != labels
    few = torch.as_tensor(wrong.sum(axis=0) < MIN_WRONG)
    temperature = torch.where(few, temperature.clamp(min=1.0), temperature)
    model: Any = trainer.model
    with torch.no_grad():
        weight = model.classifier.weight
        weight.div_(temperature.to(weight).unsqueeze(-1))
    return {"temperature": temperature.tolist(), "rows": len(labels)}


def fit_temperature(logits: torch.Tensor, labels: torch.Tensor, problem_type: str) -> torch.Tensor:
    """Find the temperatures with the least mean loss, by L-BFGS.

    Args:
        logits: (rows, labels), float.
        labels: (rows,), int; or (rows, labels), 1 or 0.
        problem_type: One of `tasks.PROBLEM_TYPES`.

    Returns:
        (), or of several labels a text (labels,), float32, within `BOUNDS`; 1 for a label that all texts or none have.
    """
    multi = problem_type == MULTI
    logits = logits.double()
    labels = labels.double() if multi else labels.long()
    logarithm = torch.zeros(logits.shape[-1] if multi else (), dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS([logarithm], max_iter=100, line_search_fn="strong_wolfe")
    lowest, highest = map(math.log, BOUNDS)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        scaled = logits / logarithm.clamp(lowest, highest).exp()
        entropy = nn.functional.binary_cross_entropy_with_logits if multi else nn.functional.cross_entropy
        value = entropy(scaled, labels)
        value.backward()
        return value

    optimizer.step(loss)
    temperature = logarithm.detach().clamp(lowest, highest).exp().float()
    if multi:
        temperature[(labels == labels[0]).all(dim=0)] = 1.0
    return temperature
