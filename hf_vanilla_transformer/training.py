# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What transformers' Trainer needs from us: rates, losses, batches, runs that resume as if not interrupted."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from accelerate.data_loader import SeedableRandomSampler
from accelerate.utils import broadcast_object_list
from torch import nn
from torch.utils.data import BatchSampler, DataLoader
from transformers import (
    EarlyStoppingCallback,
    Seq2SeqTrainer,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.trainer_utils import EvalLoopOutput, IntervalStrategy, TrainOutput

from .checkpoints import lasting_fields, load_config
from .model_card import rename_model_card
from .record import RUN_FILE


def made_once(make: Callable[[], Any]) -> Any:
    """Have the main process alone make something, such as a vocabulary, and all others receive it.

    Args:
        make: Returns what can be pickled. Every process must come here, in no `main_process_first` of Trainer's.

    Returns:
        What `make` returned in the main process.
    """
    made = [make() if PartialState().is_main_process else None]
    return broadcast_object_list(made)[0]


def data_seed(arguments: TrainingArguments) -> int:
    """The seed of what is drawn of the data: `data_seed`, or where there is none, `seed`."""
    return arguments.seed if arguments.data_seed is None else arguments.data_seed


def noam_peak(d_model: int, warmup_steps: int, factor: float = 1.0) -> float:
    """§5.3, Eq. 3: the greatest rate of the schedule that the Annotated Transformer calls Noam.

    The schedule, factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), is transformers' `inverse_sqrt`
    with this value as its learning rate.

    Args:
        d_model: Width of the model.
        warmup_steps: Number of updates during which the rate rises.
        factor: 1 in the paper, 2 in the Annotated Transformer's table of models.

    Returns:
        The learning rate of update `warmup_steps`.

    Raises:
        ValueError: an argument is not above 0.
    """
    if not min(d_model, warmup_steps, factor) > 0:
        raise ValueError(f"d_model {d_model}, warmup_steps {warmup_steps} and factor {factor} must be above 0")
    return factor * d_model**-0.5 * warmup_steps**-0.5


def smoothed_targets(targets: torch.Tensor, vocab_size: int, smoothing: float, pad_token_id: int) -> torch.Tensor:
    """§5.4, as the Annotated Transformer's `LabelSmoothing` has it: what the model shall predict in place of 1 and 0.

    Args:
        targets: (N,), int64: token ids.
        vocab_size: V.
        smoothing: The probability that goes to the other tokens; the pad gets none, so they are V - 2.
        pad_token_id: Id of the pad.

    Returns:
        (N, V), float32; rows whose target is the pad are all zero.

    Raises:
        ValueError: `smoothing` is not between 0 and 1, `vocab_size` is less than 3, or the pad is not in it.
    """
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing must be between 0 and 1, not {smoothing}")
    if not 0 <= pad_token_id < vocab_size or vocab_size < 3:
        raise ValueError(f"pad_token_id {pad_token_id} in a vocabulary of {vocab_size}, which must be at least 3")
    distribution = torch.full((len(targets), vocab_size), smoothing / (vocab_size - 2), device=targets.device)
    distribution.scatter_(1, targets.unsqueeze(1), 1 - smoothing)
    distribution[:, pad_token_id] = 0
    return distribution.masked_fill((targets == pad_token_id).unsqueeze(1), 0)


class LabelSmoothingLoss:
    """The Annotated Transformer's loss, as a `compute_loss_func` for Trainer: KL divergence from smoothed targets.

    transformers' own `label_smoothing_factor` spreads the probability over all V tokens, and takes cross-entropy.

    Args:
        smoothing: As in `smoothed_targets`.
        pad_token_id: As in `smoothed_targets`.
    """

    def __init__(self, smoothing: float, pad_token_id: int):
        self.smoothing = smoothing
        self.pad_token_id = pad_token_id

    def __call__(
        self,
        outputs: Seq2SeqLMOutput,
        labels: torch.Tensor,
        num_items_in_batch: int | torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The sum over the batch's tokens, divided by their number.

        Args:
            outputs: With `logits` (B, T, V). Trainer does not pass the labels to the model, so the collator must make
                `decoder_input_ids`, as `DataCollatorForSeq2Seq(tokenizer, model=model)` does.
            labels: (B, T), int64, -100 where nothing is predicted.
            num_items_in_batch: The number to divide by where a batch is spread over several calls: Trainer counts the
                labels that are not -100.

        Returns:
            The loss, a scalar.

        Raises:
            ValueError: logits and labels differ in their shape, or a label is the pad.
        """
        if outputs.logits.shape[:2] != labels.shape:
            raise ValueError(
                f"logits of shape {tuple(outputs.logits.shape)} for labels of shape {tuple(labels.shape)}: "
                "the collator must make `decoder_input_ids`"
            )
        if (labels == self.pad_token_id).any():
            raise ValueError(f"a label is the pad, {self.pad_token_id}: where nothing is predicted it must be -100")
        targets = labels.flatten()
        targets = targets.masked_fill(targets == -100, self.pad_token_id)
        log_probabilities = outputs.logits.flatten(0, 1).float().log_softmax(dim=-1)
        expected = smoothed_targets(targets, log_probabilities.shape[-1], self.smoothing, self.pad_token_id)
        loss = nn.functional.kl_div(log_probabilities, expected, reduction="sum")
        if num_items_in_batch is None:
            num_items_in_batch = (labels != -100).sum().clamp(min=1)
        return loss / num_items_in_batch


class TokenBudgetBatchSampler(BatchSampler):
    """Batches of as many sequences as fit in a number of tokens, pads counted (the Annotated Transformer's batches).

    Sequences of one length are drawn in random order, and so are the batches; the same for the same seed and epoch.
    Every epoch has as many batches as the next. Shared out by accelerate, each process takes every n-th batch.

    Args:
        lengths: Tokens of each sequence; of a pair, those of the longer side.
        max_tokens: Greatest number of sequences times the length of the longest.
        seed: Seed of both orders.
        max_rows: Greatest number of sequences, if there is one.

    Raises:
        ValueError: a sequence is longer than `max_tokens`, or `max_rows` is less than 1.
    """

    def __init__(self, lengths: list[int], max_tokens: int, seed: int, max_rows: int | None = None):
        if max_rows is not None and max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, not {max_rows}")
        self.lengths = np.asarray(lengths)
        self.max_tokens = max_tokens
        self.max_rows = len(lengths) if max_rows is None else max_rows
        self.seed = seed
        # accelerate tells an attribute of this name which epoch it is.
        self.sampler = SeedableRandomSampler(range(len(lengths)), data_seed=seed)
        self.batch_size = None  # for accelerate: it varies
        self.drop_last = False
        if len(lengths) and self.lengths.max() > max_tokens:
            raise ValueError(f"a sequence of {self.lengths.max()} tokens does not fit in a batch of {max_tokens}")
        self._ends = self._cut(np.sort(self.lengths))

    def _cut(self, sorted_lengths: np.ndarray) -> list[int]:
        """Where each batch ends among the sequences in order of length."""
        ends, start = [], 0
        for place, length in enumerate(sorted_lengths):
            rows = place + 1 - start
            if rows > self.max_rows or rows * length > self.max_tokens:
                ends.append(place)
                start = place
        return [*ends, len(sorted_lengths)] if len(sorted_lengths) else []

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[list[int]]:
        epoch = self.sampler.epoch
        order = np.fromiter(self.sampler, dtype=int)
        order = order[np.argsort(self.lengths[order], kind="stable")]
        batches = np.split(order, self._ends[:-1])
        for number in np.random.default_rng([self.seed, epoch]).permutation(len(batches)):
            yield batches[number].tolist()


class _CheckpointLast(TrainerCallback):
    """Has a checkpoint come after all else that its step brings.

    A resumed run goes on after the step: what had not been logged by then, and the epoch's evaluation, would be lost.
    """

    _put_off = False

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        epoch_ends = control.should_training_stop or state.epoch.is_integer()
        self._put_off = control.should_save and epoch_ends and args.eval_strategy == IntervalStrategy.EPOCH
        control.should_save &= not self._put_off
        self._log(args, control)

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        control.should_save |= self._put_off
        self._log(args, control)

    def _log(self, args: TrainingArguments, control: TrainerControl) -> None:
        """Log what would be saved or compared: Trainer does so before either."""
        if args.logging_strategy != IntervalStrategy.NO:
            control.should_log |= control.should_save or control.should_evaluate


class _CheckedTraining:
    """What our runs need of their trainer, whether interrupted or not; to be named before a class of trainers."""

    def __init__(self, *args, rdrop_alpha: float = 0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.rdrop_alpha = rdrop_alpha
        self.add_callback(_CheckpointLast)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args, **kwargs) -> TrainOutput:
        """As in `Trainer`, but that a resumed run does not evaluate on start, where it has been evaluated."""
        if resume_from_checkpoint:
            self.args.eval_on_start = False
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """As in `Trainer`; in training with R-Drop (Liang et al. 2021, Eq. 4), where `rdrop_alpha` is not 0.

        Each row goes through the model twice, each time with another dropout. To the mean of the two losses comes
        alpha / 2 times the mean of the Kullback-Leibler divergences of either prediction from the other. Labels and
        `num_items_in_batch` are needed then; Trainer gives both to models that, as ours, take the latter.

        Raises:
            ValueError: with R-Drop, the labels are no classes or tokens but numbers.
        """
        if not (model.training and self.rdrop_alpha):
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if inputs["labels"].is_floating_point():
            raise ValueError("R-Drop needs one label for each row or token, an integer")
        is_predicted = inputs["labels"] != -100
        twice = {name: torch.cat([tensor, tensor]) for name, tensor in inputs.items()}
        loss, outputs = super().compute_loss(model, twice, True, 2 * num_items_in_batch)
        one, other = outputs["logits"].float().log_softmax(dim=-1).chunk(2)
        divergence = ((one.exp() - other.exp()) * (one - other)).sum(dim=-1)  # of both directions together
        divergence = divergence[is_predicted].sum() / num_items_in_batch
        # Trainer divides by the items of all processes, and averages over these.
        processes = self.accelerator.num_processes if self.args.average_tokens_across_devices else 1
        loss = loss + processes * self.rdrop_alpha / 4 * divergence
        return (loss, outputs) if return_outputs else loss

    def training_step(self, *args, **kwargs) -> torch.Tensor:
        """As in `Trainer`.

        Raises:
            FloatingPointError: the loss is infinite or NaN.
        """
        loss = super().training_step(*args, **kwargs)
        if not loss.isfinite():
            raise FloatingPointError(f"the loss of step {self.state.global_step + 1} is {loss.item()}")
        return loss

    def save_model(self, *args, **kwargs) -> None:
        """As in `Trainer`.

        Raises:
            FloatingPointError: a weight is infinite or NaN: a finite loss may have such a gradient.
        """
        if not all(weight.isfinite().all() for weight in self.model.parameters()):
            raise FloatingPointError(f"after step {self.state.global_step} a weight is infinite or NaN")
        super().save_model(*args, **kwargs)

    def create_model_card(self, *args, **kwargs) -> None:
        """As in `Trainer`, but that a run that has left its record keeps the card that was made of it."""
        if not Path(self.args.output_dir, RUN_FILE).is_file():
            super().create_model_card(*args, **kwargs)
        elif self.is_world_process_zero() and self.hub_model_id is not None:
            rename_model_card(self.args.output_dir, self.hub_model_id)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, *args, **kwargs) -> None:
        # torch would name every weight whose shape differs, or an optimizer's group.
        if lasting_fields(load_config(resume_from_checkpoint)) != lasting_fields(self.model.config):
            raise ValueError(
                f"{resume_from_checkpoint}: a checkpoint of another model; a run goes on with the settings that it "
                "began with"
            )
        super()._load_from_checkpoint(resume_from_checkpoint, *args, **kwargs)

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        # Trainer copies the weights from there, and the configuration, but not the code that it names.
        if self.is_world_process_zero():
            for file in Path(checkpoint_folder).glob("*.py"):
                shutil.copy(file, self.args.output_dir)
        super()._push_from_checkpoint(checkpoint_folder)

    def _run_epoch(self, *args, **kwargs) -> None:
        # Trainer asks only after a step whether it is the last: resumed after the last step, it would take one more.
        if self.state.global_step >= self.state.max_steps or any(
            isinstance(callback, EarlyStoppingCallback)
            and callback.early_stopping_patience_counter >= callback.early_stopping_patience
            for callback in self.callback_handler.callbacks
        ):
            self.control.should_training_stop = True
        else:
            super()._run_epoch(*args, **kwargs)


class CheckedTrainer(_CheckedTraining, Trainer):
    """`Trainer` that stops where a loss is no number, and whose runs end as if not interrupted.

    Args:
        rdrop_alpha: The weight of R-Drop's divergence; 0 is without R-Drop.
        *args, **kwargs: What `Trainer` takes.
    """


class CheckedSeq2SeqTrainer(_CheckedTraining, Seq2SeqTrainer):
    """The same of `Seq2SeqTrainer`."""

    def evaluation_loop(self, *args, **kwargs) -> EvalLoopOutput:
        """As in `Trainer`: where there are several processes, `Seq2SeqTrainer` measures some of the rows twice."""
        self.gather_function = self.accelerator.gather_for_metrics
        return super().evaluation_loop(*args, **kwargs)


class TokenBudgetTrainer(CheckedSeq2SeqTrainer):
    """`CheckedSeq2SeqTrainer` whose training batches are filled up to a number of tokens.

    Args:
        max_tokens: As in `TokenBudgetBatchSampler`, for each process.
        max_rows: As in `TokenBudgetBatchSampler`.
        **kwargs: What `CheckedSeq2SeqTrainer` takes. The training set needs a column `length`, and no other than that
            and the model's.
    """

    def __init__(self, *, max_tokens: int, max_rows: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.max_tokens = max_tokens
        self.max_rows = max_rows

    def get_train_dataloader(self) -> DataLoader:
        """The training batches, shared out among the processes."""
        batches = TokenBudgetBatchSampler(
            self.train_dataset["length"][:],
            self.max_tokens,
            data_seed(self.args),
            self.max_rows,
        )
        loader = DataLoader(
            self.train_dataset.remove_columns("length"),
            batch_sampler=batches,
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory,
            persistent_workers=self.args.dataloader_persistent_workers,
            prefetch_factor=self.args.dataloader_prefetch_factor,
        )
        return self.accelerator.prepare(loader)
