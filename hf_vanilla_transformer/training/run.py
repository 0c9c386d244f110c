# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What all training runs share: the folder, the model, the training, the record."""

import contextlib
import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import matplotlib  # noqa: F401  # the record needs it: fail before training
import numpy as np
import torch
from accelerate import PartialState
from datasets import Dataset
from filelock import FileLock, Timeout
from transformers import (
    GenerationConfig,
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainingArguments,
    set_seed,
)
from transformers.trainer import DEFAULT_PROGRESS_CALLBACK

from ..data.errors import DataError, TrainingStopped, user_errors
from ..data.rows import TextsOfColumns, column_array
from ..data.tokenizer import train_tokenizer
from ..hub.model_card import record_answers, save_model_card
from ..hub.record import CARD_FILE, epochs, save_record
from ..hub.upload import upload
from ..inference.folder import Model, load_config, load_to_train, load_tokenizer_to_train, size_needed
from ..inference.registration import VanillaTransformerConfig
from ..settings.groups import ModelArguments
from .checkpoints import LOCK_FILE, last_whole_checkpoint, prepare_output_dir
from .report import TableCallback
from .trainer import ResumableTrainer


def print_once(*lines: str) -> None:
    """Print lines in the main process."""
    if PartialState().is_main_process:
        print(*lines, sep="\n", flush=True)


def broadcast_from_main(make: Callable[[], Any]) -> Any:
    """Call `make` in the main process alone, and return its result, or raise its error, in all processes.

    Inside `main_process_first`, the other processes would wait forever.
    """
    if not torch.distributed.is_initialized():
        return make()
    # With the processes' own group, the others would give up after `ddp_timeout`, half an hour.
    group = torch.distributed.new_group(backend="gloo", timeout=timedelta(days=7))
    result: list[Any] = [None, None]  # and the error
    if PartialState().is_main_process:
        try:
            result[0] = make()
        except Exception as raised:
            result[1] = raised
    torch.distributed.broadcast_object_list(result, group=group)
    torch.distributed.destroy_process_group(group)  # its threads could abort the process at its end
    if result[1] is not None:
        raise result[1]
    return result[0]


def sorted_by_length(rows: Dataset) -> Dataset:
    """Sort rows by their `length`. `Dataset.sort` (5.2) raises a FutureWarning of pyarrow."""
    return rows.select(np.argsort(column_array(rows, "length"), kind="stable"))


def training_precision(training: TrainingArguments) -> str:
    """Return the precision of a training run's matrix products."""
    return "bfloat16" if training.bf16 else "float16" if training.fp16 else "float32"


def metrics_of_training(trainer: ResumableTrainer) -> dict[str, Any]:
    """Return what a trainer that has trained says about it.

    Returns:
        `best_step`, the step of its weights: the best if it loaded that, else the last; `training_seconds`; `epochs`.
    """
    state = trainer.state
    step = state.global_step
    if trainer.args.load_best_model_at_end and state.best_model_checkpoint:
        step = int(Path(state.best_model_checkpoint).name.rsplit("-", 1)[1])
    seconds = round(state.log_history[-1]["train_runtime"], 1)
    return {"best_step": step, "training_seconds": seconds, "epochs": epochs(state.log_history)}


def make_config(
    arguments: ModelArguments, tokenizer: PreTrainedTokenizerBase, preset: str | None = None, **fields: Any
) -> VanillaTransformerConfig:
    """Make the configuration of a new model, or load that of the model to train further.

    In a new one, `fields` override the preset's, and `arguments.config` overrides both. Without a preset, it is a
    classifier's, whose decoder reads one token.
    """
    max_length = tokenizer.model_max_length
    if arguments.model:
        config = load_config(arguments.model)
        with user_errors():
            config.update(arguments.config)
            config.validate()
    else:
        new = {
            "vocab_size": len(tokenizer),
            "max_position_embeddings": max_length,
            "decoder_max_position_embeddings": None,
            "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "decoder_start_token_id": tokenizer.bos_token_id,  # the classifier's decoder reads it, too
        }
        fields = {**new, **fields, **arguments.config}
        with user_errors():
            config = VanillaTransformerConfig.from_preset(preset or "transformer-evolution", **fields)
    if config.vocab_size < (needed := size_needed(tokenizer)):
        raise DataError(f"vocab_size: {config.vocab_size} is less than the tokenizer's {needed} tokens")
    positions = config.max_position_embeddings
    if preset is not None:
        positions = min(positions, config.max_target_positions)
    if positions < max_length:
        raise DataError(f"--max_length: {max_length}, but the model has {positions} positions")
    return config


@contextlib.contextmanager
def stop_at_sigterm(trainer: ResumableTrainer) -> Iterator[None]:
    """Let SIGTERM stop the trainer, with a checkpoint; in another thread than the main one, change nothing."""

    def stop(*args: Any) -> None:
        trainer.stop()
        # The signal also ends the processes that load data. Torch's handler would take that for an error.
        if hasattr(signal, "SIGCHLD"):
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


class Run:
    """A training run, from an empty folder to one that can be shared.

    As a context manager it locks the folder, and adds to an interruption's error a note on how the run goes on.

    Args:
        arguments: The model's settings.
        training: transformers' training arguments.
        settings: The settings of recipe and keywords, for the record.

    Attributes:
        folder: The run's folder.
        checkpoint: The checkpoint that the run resumes from; None for a new run.
        metrics: The content of `metrics.json`.
        model: The trained model.
        tokenizer: The tokenizer of its texts.
        target_tokenizer: Of a translator, the tokenizer of its translations.
        data: What the run was given as `data`.
    """

    data: Any = None
    model: Any = None
    tokenizer: Any = None
    target_tokenizer: Any = None

    def __init__(self, arguments: ModelArguments, training: TrainingArguments, settings: dict[str, Any]):
        self.arguments, self.training, self.settings = arguments, training, settings
        self.folder = training.output_dir
        self.checkpoint: str | None = None
        self.metrics: dict[str, Any] = {}
        self._at_end = contextlib.ExitStack()

    def __fspath__(self) -> str:
        return self.folder

    __str__ = __fspath__  # what takes a folder takes a run

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.checkpoint = broadcast_from_main(lambda: self._open_folder(stack))
            self._at_end = stack.pop_all()
        if self.checkpoint:
            print_once(f"Going on from {self.checkpoint}")
        if self.training.ddp_find_unused_parameters is None:
            self.training.ddp_find_unused_parameters = False  # no loss leaves out a parameter
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, KeyboardInterrupt | TrainingStopped):
            checkpoint = last_whole_checkpoint(self.folder)
            way = f"the same command with --resume_from_checkpoint auto goes on from {checkpoint}"
            error.add_note(way if checkpoint else "no checkpoint was saved")
        self._at_end.__exit__(kind, error, traceback)

    def _open_folder(self, stack: contextlib.ExitStack) -> str | None:
        """Lock the folder until the stack is closed, and return the checkpoint to resume from."""
        folder = Path(self.folder)
        if not folder.exists():
            # A run that is refused leaves no empty folder.
            stack.callback(lambda: any(folder.iterdir()) or folder.rmdir())  # type: ignore[func-returns-value]
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder / LOCK_FILE
        try:
            stack.enter_context(FileLock(lock, timeout=0))
        except Timeout:
            raise DataError(f"{self.folder}: a run is going on there: choose another output_dir") from None
        stack.callback(lock.unlink, missing_ok=True)
        return prepare_output_dir(self.folder, self.training.resume_from_checkpoint)

    def make_tokenizer(self, rows: Dataset, max_length: int, *needed: str) -> PreTrainedTokenizerBase:
        """Load the tokenizer of a checkpoint, `tokenizer` or `model`, or train one on the rows' `text`.

        One that is loaded must have the special tokens with the `needed` names.
        """
        arguments: Any = self.arguments
        folder = self.checkpoint or arguments.tokenizer
        if folder or arguments.model:
            return load_tokenizer_to_train(folder, arguments.model, needed, max_length)
        options = {"vocab_size": arguments.vocab_size, "model": arguments.tokenizer_model, "max_length": max_length}
        return broadcast_from_main(lambda: train_tokenizer(TextsOfColumns(rows, ["text"]), **options))

    def make_model(self, model_class: type[Model], config: VanillaTransformerConfig, **options: Any) -> Model:
        """Seed all random numbers, then make a new model, or load the one to train further; in float32.

        It generates with a cache, up to its last position. `options` are further arguments of `from_pretrained`.
        """
        set_seed(self.training.seed)
        attention = {"attn_implementation": self.arguments.attn_implementation}
        with user_errors():  # such as an attention implementation that does not exist
            if self.arguments.model:
                model = load_to_train(model_class, self.arguments.model, config, **attention, **options)
            else:
                model = model_class._from_config(config, **attention)
        # Trainer expects in a checkpoint what `save_pretrained` does not leave out, and warns of the rest.
        model._keys_to_ignore_on_save = {*model.all_tied_weights_keys}
        if model.can_generate():
            model.generation_config = GenerationConfig.from_model_config(config)
            # Trainer switches the cache off in the configuration of the model that it trains.
            model.generation_config.update(use_cache=True, max_length=config.max_target_positions)
        print_once(f"model: {model.num_parameters():,} parameters")
        return model

    def train(self, trainer: ResumableTrainer, *names: str) -> None:
        """Train, from the checkpoint if there is one, and begin `metrics`; an evaluation has its loss and `names`."""
        best, names = trainer.args.metric_for_best_model, ("loss", *names)
        if best is not None and best.removeprefix("eval_") not in names:  # Trainer looks after the first evaluation
            raise DataError(f"--metric_for_best_model: {', '.join(names)}; not {best}")
        self.model, self.tokenizer = trainer.model, trainer.processing_class
        trainer.args.eval_on_start &= not self.checkpoint  # whose log has that evaluation
        for callback in (PrinterCallback, DEFAULT_PROGRESS_CALLBACK):
            trainer.remove_callback(callback)
        trainer.add_callback(TableCallback())
        print_once(f"The result goes to {self.folder}", f"Computing in {training_precision(self.training)}")
        with stop_at_sigterm(trainer):
            trainer.train(resume_from_checkpoint=self.checkpoint)
        self.metrics = broadcast_from_main(lambda: metrics_of_training(trainer))

    def save(self, trainer: ResumableTrainer) -> None:
        """Save the model, with weights rounded to `weights_dtype`; the model stays in float32."""
        model, dtype = trainer.model, getattr(torch, self.arguments.weights_dtype)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.to(dtype))
        trainer.save_model(self.folder, _internal_call=True)  # `finish` uploads it, with the record
        if dtype != torch.float32 and trainer.is_world_process_zero():
            # For a smaller file. config.json names float32, to compute in.
            state = {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}
            model.save_pretrained(self.folder, state_dict=state)

    def finish(
        self,
        trainer: ResumableTrainer,
        headline: str,
        use: str,
        data: Callable[[], dict[str, Any]],
        script: str | None = None,
    ) -> None:
        """Write record and card in the main process, print where they are, and upload the folder with `push_to_hub`.

        Args:
            headline: The figure that is printed.
            use: The command that uses the model, with FOLDER in place of the run's folder.
            data: Returns the record's `data`.
            script: A script of the repository that takes the settings, if the package's command does not.
        """
        if not trainer.is_world_process_zero():
            return
        run = {
            "seed": self.training.seed,
            "precision": training_precision(self.training),
            "resumed_from": self.checkpoint and Path(self.checkpoint).name,
            "data": data(),
            "script": script,
            "license": self.arguments.license,
        }
        written = {"metrics": self.metrics, "settings": self.settings, "run": run}
        save_record(self.folder, trainer.model, **written, base_model=self.arguments.model)
        record_answers(self.folder)
        save_model_card(self.folder)
        folder = shlex.quote(self.folder)
        print_once(
            headline,
            f"{self.folder}: the model, its record, and a card, {CARD_FILE}",
            f"Use it:   {use.replace('FOLDER', folder)}",
            f"Share it: vanilla-transformer push-to-hub {folder} --repo_id USER/NAME --dry_run",
        )
        if self.training.push_to_hub:
            private, revision = bool(self.training.hub_private_repo), self.training.hub_revision
            upload(self.folder, trainer.hub_model_id, private=private, revision=revision)
