# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""transformers' Trainer that stops at a loss that is not finite, and resumes exactly."""

import os
import shutil
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from accelerate.utils import gather
from datasets import Dataset
from huggingface_hub import ModelCard
from torch.utils.data import DataLoader, Sampler
from transformers import (
    EarlyStoppingCallback,
    PreTrainedModel,
    Seq2SeqTrainer,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.dynamic_module_utils import custom_object_save
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_pt_utils import LengthGroupedSampler
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, EvalLoopOutput, IntervalStrategy, TrainOutput

from ..data.rows import column_array, list_lengths
from ..errors import DataError
from ..inference.folder import load_config
from .batches import TokenBudgetBatchSampler
from .checkpoints import (
    AUTO,
    EXTRA_PREFIX,
    StepSize,
    architecture_fields,
    is_adapter,
    last_whole_checkpoint,
    list_checkpoints,
)


def data_seed(arguments: TrainingArguments) -> int:
    """The seed of random draws that concern the data: `data_seed`, or else `seed`."""
    return arguments.seed if arguments.data_seed is None else arguments.data_seed


class TrainingStopped(Exception):
    """Training ended before its last step, as `CheckedTrainer.stop` asks, with a checkpoint."""


class _RunCallback(TrainerCallback):
    """Saves a step's checkpoint after its log and evaluation, and pushes the model's code with the model.

    A resumed run continues after that step: logs and evaluations made after the checkpoint would be lost.

    Attributes:
        stop: Whether this process is asked to stop.
        stepped: Whether the model has been updated since it was set to False.
    """

    stop = stepped = False
    _postponed = False
    _extra = False  # whether the checkpoint is made for the stop alone

    def on_optimizer_step(self, *args, **kwargs) -> None:
        self.stepped = True

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        epoch_ends = control.should_training_stop or state.epoch.is_integer()
        self._postponed = control.should_save and epoch_ends and args.eval_strategy == IntervalStrategy.EPOCH
        control.should_save &= not self._postponed
        if not epoch_ends:
            self._save_if_stopped(args, control)
        self._log(args, control)

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        control.should_save |= self._postponed
        self._save_if_stopped(args, control)
        self._log(args, control)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        stops = self._stops(args)
        checkpoint = Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
        # In a search, trials have folders of their own.
        if state.is_world_process_zero and checkpoint.is_dir():
            earlier = list_checkpoints(args.output_dir, EXTRA_PREFIX)
            if stops and self._extra:
                checkpoint.rename(checkpoint.with_name(f"{EXTRA_PREFIX}{state.global_step}"))
            for folder in earlier:
                shutil.rmtree(folder)
        if stops:
            raise TrainingStopped(f"training was stopped after step {state.global_step}")

    def on_push_begin(  # type: ignore[override]  # Trainer passes the model by name
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any, **kwargs
    ) -> None:
        # Trainer's pushes in mid-training copy weights and configuration, but not the code that it names.
        if state.is_world_process_zero and isinstance(model, PreTrainedModel) and model._auto_class is not None:
            custom_object_save(model, args.output_dir, config=model.config)

    def _log(self, args: TrainingArguments, control: TrainerControl) -> None:
        if args.logging_strategy != IntervalStrategy.NO:
            control.should_log |= control.should_save or control.should_evaluate

    def _save_if_stopped(self, args: TrainingArguments, control: TrainerControl) -> None:
        stops = self._stops(args)
        self._extra = stops and not control.should_save
        control.should_save |= stops

    def _stops(self, args: TrainingArguments) -> bool:
        """Whether one of the processes is asked to stop; all ask at the same time."""
        return bool(gather(torch.tensor([int(self.stop)], device=args.device)).any())


class CheckedTrainer(Trainer):
    """`Trainer` that stops where a loss is not finite, and whose resumed runs end as uninterrupted ones do."""

    model: PreTrainedModel
    _resumed: TrainerState | None = None  # the checkpoint's state, while `train` runs

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._run = _RunCallback()
        self.add_callback(self._run)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args, **kwargs) -> TrainOutput:
        """As in `Trainer`, but a resumed run does not evaluate on start, and True means the last whole checkpoint.

        So does "auto", which begins a new run where there is none.

        Raises:
            DataError: the checkpoint is another model's, or holds what no run can go on from.
            TrainingStopped: `stop` was called.
        """
        if resume_from_checkpoint in (True, AUTO):
            found = last_whole_checkpoint(self.args.output_dir)
            resume_from_checkpoint = found or resume_from_checkpoint is True
        if resume_from_checkpoint:
            self.args.eval_on_start = False
        try:
            if isinstance(resume_from_checkpoint, (str, os.PathLike)):
                return self._resume(os.fspath(resume_from_checkpoint), *args, **kwargs)
            return super().train(resume_from_checkpoint, *args, **kwargs)
        finally:
            self._run.stop, self._resumed = False, None

    def stop(self) -> None:
        """Let `train` end after the step, evaluation or save that is running, with a checkpoint.

        To be called while `train` runs: by a signal's handler, another thread or a callback. The run that resumes
        with `train(True)` ends as if it had not been stopped.
        """
        self._run.stop = True

    def _resume(self, checkpoint: str, *args, **kwargs) -> TrainOutput:
        own = architecture_fields(self.model.config)
        # Trainer would load weights of the same shapes, whatever they were trained to compute.
        if not is_adapter(checkpoint) and architecture_fields(load_config(checkpoint)) != own:
            raise DataError(f"{checkpoint}: a checkpoint of another model; a run resumes with its own settings")
        self._run.stepped = False
        try:
            self._resumed = state = TrainerState.load_from_json(os.path.join(checkpoint, TRAINER_STATE_NAME))
            # Trainer would begin again, and whoever reads the log fail after the last step.
            if not state.global_step or not all(isinstance(entry, dict) for entry in state.log_history):
                raise DataError(f"{TRAINER_STATE_NAME} has no step, or no log")
            return super().train(checkpoint, *args, **kwargs)
        except (FloatingPointError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            if self._run.stepped:
                raise
            # What the optimizer lacks is missed in its first step.
            what = f"{type(error).__name__}: {error}"
            if isinstance(error, UnpicklingError):  # torch's own message says how to run the code
                what = "a file of torch that holds code"
            raise DataError(f"{checkpoint}: no run can go on from this checkpoint ({what})") from error

    def set_initial_training_values(self, *args, **kwargs) -> tuple[Any, ...]:
        """As in `Trainer`, but a run that resumes after its last step has no epoch left.

        Trainer (transformers 5.24) checks only after a step whether it was the last, so it would take one more.
        """
        epochs, *values, max_steps = super().set_initial_training_values(*args, **kwargs)
        ended = self._resumed is not None and (self._resumed.global_step >= max_steps or self._stopped_early())
        return 0 if ended else epochs, *values, max_steps

    def _stopped_early(self) -> bool:
        """Whether the checkpoint's count has used up the patience, and goes on (Trainer restores it where asked to).

        The callback's own count may be that of another run.
        """
        ours = any(isinstance(callback, EarlyStoppingCallback) for callback in self.callback_handler.callbacks)
        if not ours or not self.args.restore_callback_states_from_checkpoint:
            return False
        resumed: Any = self._resumed
        counts = resumed.stateful_callbacks.get(EarlyStoppingCallback.__name__, [])
        return any(
            count["attributes"]["early_stopping_patience_counter"] >= count["args"]["early_stopping_patience"]
            for count in (counts if isinstance(counts, list) else [counts])
        )

    def training_step(self, *args, **kwargs) -> torch.Tensor:
        """As in `Trainer`, but a loss that is infinite or NaN is a FloatingPointError."""
        loss = super().training_step(*args, **kwargs)
        if not loss.isfinite():
            raise FloatingPointError(f"the loss of step {self.state.global_step + 1} is {loss.item()}")
        return loss

    def save_model(self, *args, **kwargs) -> None:
        """As in `Trainer`, but a weight that is infinite or NaN, as after such a gradient, is a FloatingPointError."""
        if not all(weight.isfinite().all() for weight in self.model.parameters()):
            raise FloatingPointError(f"after step {self.state.global_step} a weight is infinite or NaN")
        super().save_model(*args, **kwargs)

    def create_model_card(self, *args, **kwargs) -> None:
        """As in `Trainer`, but a card that is more than Trainer's draft stays."""
        file = Path(self.args.output_dir, "README.md")
        if not file.is_file() or "generated_from_trainer" in (ModelCard.load(file).data.tags or []):
            super().create_model_card(*args, **kwargs)

    # Trainer (transformers 5.24) reads all rows, one by one, for their lengths, in every evaluation, too.
    # No public way leads to its sampler; test_grouped_batches_are_those_of_trainer_itself.
    def _get_train_sampler(self, train_dataset: Dataset | None = None) -> Sampler | None:
        rows = self.train_dataset if train_dataset is None else train_dataset
        # With another number of processes, a resumed run draws the same rows.
        batch_size = StepSize.now.get("group") or self.args.train_batch_size * self.args.gradient_accumulation_steps
        return self._grouped(rows, batch_size) or super()._get_train_sampler(train_dataset)

    def _get_eval_sampler(self, eval_dataset: Dataset) -> Sampler | None:
        generator = torch.Generator().manual_seed(data_seed(self.args))
        grouped = self._grouped(eval_dataset, self.args.eval_batch_size, generator)
        return grouped or super()._get_eval_sampler(eval_dataset)

    def _grouped(self, rows: Dataset, batch_size: int, generator: torch.Generator | None = None) -> Sampler | None:
        if self.args.train_sampling_strategy != "group_by_length" or not isinstance(rows, Dataset):
            return None
        column = self.args.length_column_name
        lengths = column_array(rows, column) if column in rows.column_names else list_lengths(rows, "input_ids")
        return LengthGroupedSampler(batch_size, lengths=lengths.tolist(), generator=generator)


class CheckedSeq2SeqTrainer(CheckedTrainer, Seq2SeqTrainer):
    """`Seq2SeqTrainer` with the checks of `CheckedTrainer`."""

    def evaluation_loop(self, *args, **kwargs) -> EvalLoopOutput:
        """As in `Trainer`: with several processes, `Seq2SeqTrainer` counts some rows twice."""
        self.gather_function = self.accelerator.gather_for_metrics
        return super().evaluation_loop(*args, **kwargs)


class TokenBudgetTrainer(CheckedSeq2SeqTrainer):
    """`CheckedSeq2SeqTrainer` whose training batches are filled up to a number of tokens (§5.1).

    Args:
        max_tokens: As in `TokenBudgetBatchSampler`, for each process; None for batches of Trainer's own.
        max_rows: As in `TokenBudgetBatchSampler`.
        **kwargs: The arguments of `Seq2SeqTrainer`. The training set needs a column `length`, and no others besides
            the model's.
    """

    def __init__(self, *, max_tokens: int | None, max_rows: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.max_tokens = max_tokens
        self.max_rows = max_rows
        self.rows_per_batch: float | None = None

    def get_total_train_batch_size(self, args: TrainingArguments) -> Any:
        """The mean number of rows in a step, from which Trainer computes rows a second."""
        if self.rows_per_batch is None:
            return super().get_total_train_batch_size(args)
        return self.rows_per_batch * args.world_size * args.gradient_accumulation_steps

    def get_train_dataloader(self) -> DataLoader:
        if self.max_tokens is None:
            return super().get_train_dataloader()
        rows: Any = self.train_dataset
        lengths = column_array(rows, "length")
        batches = TokenBudgetBatchSampler(lengths, self.max_tokens, data_seed(self.args), self.max_rows)
        self.rows_per_batch = len(rows) / max(1, len(batches))
        names: Any = ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor")
        options = {name: getattr(self.args, f"dataloader_{name}") for name in names}
        rows = rows.remove_columns("length")
        return self.accelerator.prepare(
            DataLoader(rows, batch_sampler=batches, collate_fn=self.data_collator, **options)
        )
