# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A callback for your own `Trainer`: it writes record and card of the run."""

import copy
from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..inference.folder import MODEL_INPUTS
from ..settings.precision import training_precision
from ..settings.reading import belongs_to_recipe
from .model_card import save_model_card
from .record import data_record, metrics_of_training, save_record


class RecordCallback(TrainerCallback):
    """Write model, tokenizer, record and card to the folder of your own `Trainer` when training ends.

    The record's metrics are what the Trainer logged, its recipe is the Trainer's arguments. Send the folder with
    `upload`: `Trainer.push_to_hub` would replace the card by a draft.

    Args:
        source: The name of the data, for the card.
        data: The splits. Their rows and checksums go into the record, and a few short texts of the validation split.
        license: The licence of the weights, by its name on the Hub; by default the card names none.

    Raises:
        ImportError: matplotlib is not installed (extra `train`).
    """

    def __init__(self, source: str, data: Mapping[str, Any] | None = None, license: str | None = None):
        import matplotlib  # noqa: F401  # fail before training

        self.run: dict[str, Any] = {"own_trainer": True, "data": data_record(source, data or {}), "license": license}
        self.base_model: str | None = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        checkpoint = f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}" if state.global_step else None
        self.run |= {"seed": args.seed, "precision": training_precision(args), "resumed_from": checkpoint}
        self.base_model = kwargs["model"].name_or_path

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        if not state.is_world_process_zero:
            return
        kwargs["model"].save_pretrained(args.output_dir)
        if (tokenizer := copy.copy(kwargs.get("processing_class"))) is not None:
            tokenizer.model_input_names = [*MODEL_INPUTS]
            tokenizer.init_kwargs = {**tokenizer.init_kwargs, "model_input_names": MODEL_INPUTS}  # which is saved
            tokenizer.save_pretrained(args.output_dir)
        save_record(
            args.output_dir,
            kwargs["model"],
            metrics=metrics_of_log(args, state),
            settings=changed_arguments(args),
            run=self.run,
            base_model=self.base_model,
        )
        save_model_card(args.output_dir)


def metrics_of_log(arguments: TrainingArguments, state: TrainerState) -> dict[str, Any]:
    """Return a record's metrics: those of the training; the mean loss; the evaluation of the final model, if any."""
    metrics = metrics_of_training(arguments, state)
    metrics["train"] = {"training_loss": state.log_history[-1]["train_loss"]}
    for row in metrics["epochs"]:
        if row["step"] == metrics["best_step"] and "eval_loss" in row:
            metrics["validation"] = {name.removeprefix("eval_"): row[name] for name in row if name.startswith("eval_")}
    return metrics


def changed_arguments(arguments: TrainingArguments) -> dict[str, Any]:
    """Return the arguments that differ from their defaults, without those of one machine or one call."""
    # Without use_configured_state, new arguments would reset accelerate's state under the Trainer.
    state = {"use_configured_state": True}
    defaults = type(arguments)(arguments.output_dir, use_cpu=arguments.use_cpu, accelerator_config=state).to_dict()
    changed = {name: value for name, value in arguments.to_dict().items() if value != defaults[name]}
    return {name: value for name, value in changed.items() if belongs_to_recipe(name)}
