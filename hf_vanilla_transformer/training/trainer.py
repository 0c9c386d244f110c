# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""transformers' Trainer, which stops at a loss that is not finite; resumed runs end as uninterrupted ones."""

import shutil
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather
from torch.utils.data import DataLoader
from transformers import (
    PreTrainedModel,
    Seq2SeqTrainer,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, EvalLoopOutput

from ..data.errors import DataError, TrainingStopped
from ..data.rows import column_array
from .batches import TokenBudgetBatchSampler
from .checkpoints import STOPPED_PREFIX, list_checkpoints


def data_seed(arguments: TrainingArguments) -> int:
    """Return the seed of random draws that concern the data: `data_seed`, or else `seed`."""
    return arguments.seed if arguments.data_seed is None else arguments.data_seed


def noam_peak(d_model: float, warmup_steps: float, factor: float = 1.0) -> float:
    """§5.3, Eq. 3: return the peak learning rate, that of update `warmup_steps`, of the tutorials' schedule "Noam".

    The schedule, factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), is transformers' `inverse_sqrt`
    with this value as its learning rate; `factor` is 2 in the Annotated Transformer's table of models.
    """
    return factor * d_model**-0.5 * warmup_steps**-0.5


class _CheckpointCallback(TrainerCallback):
    """Saves a checkpoint after the log and evaluation of its step, so that it has them, and stops a run."""

    stop = False  # whether to end the training with a checkpoint
    _postponed = False  # a checkpoint that waits for the end of its epoch
    _only_for_stop = False

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        if control.should_training_stop or state.epoch.is_integer():  # `on_epoch_end` follows
            self._postponed, control.should_save = control.should_save, False
        else:
            self._save_if_stopped(args, control)
        control.should_log |= control.should_save or control.should_evaluate

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        control.should_save |= self._postponed
        self._save_if_stopped(args, control)
        control.should_log |= control.should_save or control.should_evaluate

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        stops = self._stops(args)
        if state.is_world_process_zero:
            earlier = list_checkpoints(args.output_dir, STOPPED_PREFIX)
            if stops and self._only_for_stop:
                checkpoint = Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
                checkpoint.rename(checkpoint.with_name(f"{STOPPED_PREFIX}{state.global_step}"))
            for folder in earlier:
                shutil.rmtree(folder)
        self._raise_if(stops, state)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        self._raise_if(self._stops(args), state)  # `stop` was set after the last checkpoint

    def _save_if_stopped(self, args: TrainingArguments, control: TrainerControl) -> None:
        stops = self._stops(args)
        self._only_for_stop = stops and not control.should_save
        control.should_save |= stops

    def _stops(self, args: TrainingArguments) -> bool:
        """Return whether `stop` is set in one of the processes; all of them call this together."""
        return bool(gather(torch.tensor([int(self.stop)], device=args.device)).any())

    def _raise_if(self, stops: bool, state: TrainerState) -> None:
        if stops:
            self.stop = False
            raise TrainingStopped(f"training was stopped after step {state.global_step}")


class ResumableTrainer(Trainer):
    """`Trainer` that stops where a loss is not finite, and whose resumed runs end as uninterrupted ones."""

    model: PreTrainedModel

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._checkpoints = _CheckpointCallback()
        self.add_callback(self._checkpoints)

    def stop(self) -> None:
        """Let `train` save a checkpoint and raise `TrainingStopped`, after the running step, evaluation or save.

        A signal's handler, another thread or a callback can call this while `train` runs.
        """
        self._checkpoints.stop = True

    def _init_training_state(
        self, max_steps: int, updates: int, epochs: int, resume_from_checkpoint: str | None, trial: Any
    ) -> tuple[int, int]:
        """Begin as `Trainer` does, but leave no epoch to a run that resumes after its last step.

        Trainer (transformers 5.24) asks only after a step whether it was the last, and would take one more.
        """
        begin = super()._init_training_state(max_steps, updates, epochs, resume_from_checkpoint, trial)
        is_over = resume_from_checkpoint is not None and self.state.global_step >= max_steps
        return (epochs, 0) if is_over else begin

    def training_step(self, *args, **kwargs) -> torch.Tensor:
        """Take a step as `Trainer` does; a loss that is infinite or NaN is a FloatingPointError."""
        loss = super().training_step(*args, **kwargs)
        if not loss.isfinite():
            raise FloatingPointError(f"the loss of step {self.state.global_step + 1} is {loss.item()}")
        return loss

    def _get_num_items_in_batch(self, batch_samples: list, device: torch.device) -> Any:
        """Count as `Trainer` does; among numbers to predict, -100 is one like any other."""
        if batch_samples and "labels" in batch_samples[0] and batch_samples[0]["labels"].is_floating_point():
            batch_samples = [{"labels": torch.zeros_like(batch["labels"])} for batch in batch_samples]
        return super()._get_num_items_in_batch(batch_samples, device)

    def save_model(self, *args, **kwargs) -> None:
        """Save as `Trainer` does; a weight that is infinite or NaN is a FloatingPointError."""
        if not all(weight.isfinite().all() for weight in self.model.parameters()):
            raise FloatingPointError(f"after step {self.state.global_step} a weight is infinite or NaN")
        super().save_model(*args, **kwargs)


class TokenBudgetTrainer(ResumableTrainer, Seq2SeqTrainer):
    """`Seq2SeqTrainer` with what `ResumableTrainer` adds, whose training batches are filled up to a number of tokens
    (§5.1).

    Args:
        max_tokens: As in `TokenBudgetBatchSampler`, for each process; by default, batches are Trainer's own.
        max_rows: As in `TokenBudgetBatchSampler`.
        **kwargs: The arguments of `Seq2SeqTrainer`. The training set has the model's columns, and `length`.
    """

    def __init__(self, *, max_tokens: int | None = None, max_rows: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.max_tokens = max_tokens
        self.max_rows = max_rows
        batches: Any = self.args.accelerator_config
        if max_tokens and (batches.split_batches or batches.dispatch_batches or not batches.even_batches):
            raise DataError("--max_tokens: not with accelerate's split_batches, dispatch_batches or uneven batches")

    def get_train_dataloader(self) -> DataLoader:
        if self.max_tokens is None:
            return super().get_train_dataloader()
        rows: Any = self.train_dataset
        lengths = column_array(rows, "length")
        batches = TokenBudgetBatchSampler(lengths, self.max_tokens, data_seed(self.args), self.max_rows)
        names: Any = ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor")
        options = {name: getattr(self.args, f"dataloader_{name}") for name in names}
        rows = rows.remove_columns("length")
        return self.accelerator.prepare(
            DataLoader(rows, batch_sampler=batches, collate_fn=self.data_collator, **options)
        )

    def evaluation_loop(self, *args, **kwargs) -> EvalLoopOutput:
        """Evaluate as `Trainer` does: with several processes, `Seq2SeqTrainer` counts some rows twice."""
        self.gather_function = self.accelerator.gather_for_metrics
        return super().evaluation_loop(*args, **kwargs)
