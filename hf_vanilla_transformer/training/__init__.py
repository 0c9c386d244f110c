# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Training: trainers, batches and schedules beside transformers' own, and a run's checkpoints."""

from ..data.errors import TrainingStopped
from .batches import TokenBudgetBatchSampler
from .denoising import SpanInfilling
from .trainer import ResumableTrainer, TokenBudgetTrainer, noam_peak


__all__ = [
    "ResumableTrainer",
    "SpanInfilling",
    "TokenBudgetBatchSampler",
    "TokenBudgetTrainer",
    "TrainingStopped",
    "noam_peak",
]
