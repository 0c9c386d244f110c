# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""transformers' Trainer that stops at a loss that is not finite, and resumes exactly."""

import os
from pathlib import Path
from typing import Any

import torch
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
from transformers.trainer_utils import EvalLoopOutput, IntervalStrategy, TrainOutput, get_last_checkpoint

from ..data.rows import column_array, list_lengths
from ..inference.folder import load_config
from .batches import TokenBudgetBatchSampler
from .checkpoints import architecture_fields, is_adapter


def data_seed(arguments: TrainingArguments) -> int:
    """The seed of random draws that concern the data: `data_seed`, or else `seed`."""
    return arguments.seed if arguments.data_seed is None else arguments.data_seed


class _RunCallback(TrainerCallback):
    """Saves a step's checkpoint after its log and evaluation, and pushes the model's code with the model.

    A resumed run continues after that step: logs and evaluations made after the checkpoint would be lost.
    """

    _postponed = False

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        epoch_ends = control.should_training_stop or state.epoch.is_integer()
        self._postponed = control.should_save and epoch_ends and args.eval_strategy == IntervalStrategy.EPOCH
        control.should_save &= not self._postponed
        self._log(args, control)

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        control.should_save |= self._postponed
        self._log(args, control)

    def on_push_begin(  # type: ignore[override]  # Trainer passes the model by name
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any, **kwargs
    ) -> None:
        # Trainer's pushes in mid-training copy weights and configuration, but not the code that it names.
        if state.is_world_process_zero and isinstance(model, PreTrainedModel) and model._auto_class is not None:
            custom_object_save(model, args.output_dir, config=model.config)

    def _log(self, args: TrainingArguments, control: TrainerControl) -> None:
        if args.logging_strategy != IntervalStrategy.NO:
            control.should_log |= control.should_save or control.should_evaluate


class CheckedTrainer(Trainer):
    """`Trainer` that stops where a loss is not finite, and whose resumed runs end as uninterrupted ones do."""

    model: PreTrainedModel
    _resumed: TrainerState | None = None  # the checkpoint's state, while `train` runs

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.add_callback(_RunCallback)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args, **kwargs) -> TrainOutput:
        """As in `Trainer`, but a resumed run does not evaluate on start, and another model's checkpoint is refused."""
        if resume_from_checkpoint is True:
            resume_from_checkpoint = get_last_checkpoint(self.args.output_dir) or True
        if resume_from_checkpoint:
            self.args.eval_on_start = False
        if isinstance(resume_from_checkpoint, (str, os.PathLike)):
            checkpoint = resume_from_checkpoint = os.fspath(resume_from_checkpoint)
            own = architecture_fields(self.model.config)
            # torch's own message would list every weight whose shape differs.
            if not is_adapter(checkpoint) and architecture_fields(load_config(checkpoint)) != own:
                raise ValueError(f"{checkpoint}: a checkpoint of another model; a run resumes with its own settings")
            self._resumed = TrainerState.load_from_json(os.path.join(checkpoint, TRAINER_STATE_NAME))
        try:
            return super().train(resume_from_checkpoint, *args, **kwargs)
        finally:
            self._resumed = None

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
        batch_size = self.args.train_batch_size * self.args.gradient_accumulation_steps
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
