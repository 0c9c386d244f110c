# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A callback for your own `Trainer`: it writes record and card of the run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..inference.precision import training_precision
from ..reading import NOT_IN_RECIPE
from .model_card import save_model_card
from .record import METRICS_FILE, best_step, data_record, epochs, read_file, save_record


class RecordCallback(TrainerCallback):
    """Writes model, tokenizer, record and model card to the folder of your own `Trainer`'s run when training ends.

    The record's metrics are what the Trainer logged, its recipe the Trainer's arguments. `Trainer.push_to_hub`
    replaces the card by a draft of its own; `upload_run` keeps it.

    Args:
        source: The name of the data, for the card.
        data: The splits; their rows and checksums go into the record, and a few short texts of the validation split.
        license: The licence of the weights, by its name on the Hub; by default the card names none.

    Raises:
        ImportError: matplotlib is not installed (extra `train`).
    """

    def __init__(self, source: str, data: Mapping[str, Any] | None = None, license: str | None = None):
        import matplotlib  # noqa: F401  # fail before training

        self.data = data_record(source, data or {})
        self.license = license
        self.resumed_from: str | None = None
        self.base_model: str | None = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        self.resumed_from = f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}" if state.global_step else None
        self.base_model = kwargs["model"].name_or_path or None

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        if not state.is_world_process_zero:
            return
        model, tokenizer = kwargs["model"], kwargs.get("processing_class")
        model.save_pretrained(args.output_dir)
        if tokenizer is not None:
            tokenizer.save_pretrained(args.output_dir)
        save_record(
            args.output_dir,
            model,
            metrics=metrics_of_log(args, state),
            settings=changed_arguments(args),
            seed=args.seed,
            precision=training_precision(args),
            resumed_from=self.resumed_from,
            base_model=self.base_model,
            data=self.data,
            own_trainer=True,
            license=self.license,
        )
        save_model_card(args.output_dir, args.hub_model_id)
        model.name_or_path = args.output_dir  # the folder that `hub.push` uploads

    def on_push_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        if not any("train_runtime" in entry for entry in state.log_history):
            return  # during training
        file = Path(args.output_dir, METRICS_FILE)
        # Update record and card if something was measured since; otherwise a card that somebody edited stays.
        if not file.is_file() or read_file(file) != metrics_of_log(args, state):
            self.on_train_end(args, state, control, **kwargs)


def metrics_of_log(arguments: TrainingArguments, state: TrainerState) -> dict[str, Any]:
    """A record's metrics, from the log of a Trainer that has trained.

    Returns:
        `best_step`, `training_seconds`, `epochs`; `train` with the mean loss, `training_loss`; and `validation` with
        the evaluation of the final model, during training or after it. Evaluations of several data sets are left out.
    """
    step, log = best_step(arguments, state), state.log_history
    end = max(place for place, entry in enumerate(log) if "train_runtime" in entry)
    ended = log[end]
    if any("eval_loss" in entry and entry["step"] == step for entry in log[:end]):
        log = log[:end]  # what is evaluated afterwards may be other data, such as the test split
    metrics: dict[str, Any] = {
        "best_step": step,
        "training_seconds": round(ended["train_runtime"], 1),
        "epochs": epochs(log),
        "train": {"training_loss": ended["train_loss"]},
    }
    left_out = ("eval_runtime", "eval_model_preparation_time")
    for row in metrics["epochs"]:
        if row["step"] == step and "eval_loss" in row:
            names = [name for name in row if name.startswith("eval_") and name not in left_out]
            metrics["validation"] = {name.removeprefix("eval_"): row[name] for name in names}
    return metrics


def changed_arguments(arguments: TrainingArguments) -> dict[str, Any]:
    """The arguments that differ from their defaults, by name, without those that belong to one machine or one call."""
    # Without use_configured_state, new arguments would reset accelerate's state under the Trainer.
    state = {"use_configured_state": True}
    defaults = type(arguments)(arguments.output_dir, use_cpu=arguments.use_cpu, accelerator_config=state).to_dict()
    return {
        name: value
        for name, value in arguments.to_dict().items()
        if value != defaults[name] and name not in NOT_IN_RECIPE
    }
