# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Callbacks of `Trainer` for the Hub: push checkpoints, write record and card of your own run."""

import concurrent.futures
import glob
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, HubStrategy

from ..inference.precision import training_precision
from .model_card import save_model_card
from .record import METRICS_FILE, RUN_FILES, changed_arguments, data_record, listed_files, metrics_of_log, save_record


class PushCallback(TrainerCallback):
    """Has each save pushed (`hub_strategy` "every_save", the default) with the files of `RUN_FILES` alone.

    Trainer would send whatever lies in the output folder.
    """

    pushes = False
    job: concurrent.futures.Future | None = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        if args.push_to_hub and args.hub_strategy == HubStrategy.EVERY_SAVE:
            self.pushes, args.hub_strategy = True, HubStrategy.END

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        waits = self.job is not None and not self.job.done() and not args.hub_always_push
        if waits or not self.pushes or not state.is_world_process_zero:
            return
        folder = Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
        api = HfApi(token=args.hub_token)
        name = args.hub_model_id or Path(args.output_dir).absolute().name
        self.job = api.upload_folder(
            repo_id=api.create_repo(name, exist_ok=True, private=args.hub_private_repo).repo_id,
            folder_path=folder,
            allow_patterns=[glob.escape(file.as_posix()) for file in listed_files(folder, RUN_FILES)],
            commit_message=f"Training in progress, step {state.global_step}",
            revision=args.hub_revision,
            run_as_future=True,
        )

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        if self.job is not None:
            concurrent.futures.wait([self.job])


class RecordCallback(PushCallback):
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
        super().on_train_begin(args, state, control)
        self.resumed_from = f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}" if state.global_step else None
        self.base_model = kwargs["model"].name_or_path or None

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        super().on_train_end(args, state, control)
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
        # Update record and card if something was measured since; a card that somebody edited stays otherwise.
        if not file.is_file() or json.loads(file.read_text(encoding="utf-8")) != metrics_of_log(args, state):
            self.on_train_end(args, state, control, **kwargs)
