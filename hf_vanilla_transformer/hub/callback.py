# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The record and card of a run of your own `Trainer`."""

import json
from pathlib import Path

from datasets import DatasetDict
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..data.checksums import describe_splits
from ..precision import training_precision
from .embedding import save_embedding_modules
from .model_card import save_model_card
from .record import METRICS_FILE, changed_arguments, metrics_of_log, save_record


class RecordCallback(TrainerCallback):
    """Writes model, tokenizer, record and model card to the folder of your own `Trainer`'s run when training ends.

    The record's metrics are what the Trainer logged, its recipe the Trainer's arguments. `Trainer.push_to_hub` would
    replace the card by a draft of its own; `CheckedTrainer.push_to_hub` and `upload_run` keep it.

    Args:
        source: The name of the data, for the card.
        data: The splits; their rows and checksums go into the record.

    Raises:
        ImportError: matplotlib is not installed (extra `train`).
    """

    def __init__(self, source: str, data: DatasetDict | None = None):
        import matplotlib  # noqa: F401  # fail before training

        self.data = {"source": source, **({} if data is None else describe_splits(data))}
        self.resumed_from: str | None = None
        self.began_as: str | None = None

    def on_train_begin(  # type: ignore[override]  # Trainer passes the model by name
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: PreTrainedModel, **kwargs
    ) -> None:
        self.resumed_from = f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}" if state.global_step else None
        self.began_as = model.name_or_path or None

    def on_train_end(  # type: ignore[override]
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: PreTrainedModel,
        processing_class: PreTrainedTokenizerBase | None = None,
        **kwargs,
    ) -> None:
        if not state.is_world_process_zero:
            return
        model.save_pretrained(args.output_dir)
        if processing_class is not None:
            processing_class.save_pretrained(args.output_dir)
        save_record(
            args.output_dir,
            model,
            metrics=metrics_of_log(args, state),
            settings=changed_arguments(args),
            seed=args.seed,
            precision=training_precision(args),
            resumed_from=self.resumed_from,
            began_as=self.began_as,
            data=self.data,
            own_trainer=True,
        )
        save_embedding_modules(args.output_dir, model.config.d_model)
        save_model_card(args.output_dir, args.hub_model_id)
        model.name_or_path = args.output_dir  # the folder that `hub.push` uploads

    def on_push_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        if not any("train_runtime" in entry for entry in state.log_history):
            return  # during training
        file = Path(args.output_dir, METRICS_FILE)
        # Update record and card if something was measured since; a card that somebody edited stays otherwise.
        if not file.is_file() or json.loads(file.read_text(encoding="utf-8")) != metrics_of_log(args, state):
            self.on_train_end(args, state, control, **kwargs)
