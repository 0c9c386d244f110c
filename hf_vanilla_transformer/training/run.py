# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What all training runs share: the folder, the model, the training, the record."""

import contextlib
import importlib
import json
import math
import random
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object
from datasets import Dataset, DatasetDict
from filelock import FileLock, Timeout
from transformers import (
    EarlyStoppingCallback,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.integrations import get_reporting_integration_callbacks
from transformers.trainer_utils import IntervalStrategy, SaveStrategy, TrainOutput

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..data.report import describe_data
from ..data.rows import column_array, select_rows
from ..errors import DataError, user_errors
from ..hub.callback import PushCallback
from ..hub.model_card import CARD_FILE, save_model_card
from ..hub.record import CURVES_FILE, METRICS_FILE, RECIPE_FILE, RUN_FILE, best_step, epochs, read_file, save_record
from ..hub.upload import keep_token_out_of_files, upload_run
from ..inference.folder import Model, load_config, load_to_train, load_tokenizer, load_tokenizer_to_train, size_needed
from ..inference.precision import explain_precision, training_precision
from ..settings import ModelArguments
from .checkpoints import (
    AUTO,
    LOCK_FILE,
    SHARED_PREFIX,
    StepSize,
    check_unchanged,
    keep_step_size,
    last_whole_checkpoint,
    prepare_output_dir,
    round_weights,
    save_weights_in,
    settings_that_matter,
)
from .trainer import CheckedTrainer, TrainingStopped
from .vocabulary import train_vocabulary


FILES = f"its code, the tokenizer, {METRICS_FILE}, {RECIPE_FILE}, {RUN_FILE}, {CURVES_FILE}, and a card, {CARD_FILE}"


def broadcast_from_main(make: Callable[[], Any]) -> Any:
    """What `make` returns in the main process, such as a vocabulary; not for use inside `main_process_first`."""
    made = [make() if PartialState().is_main_process else None]
    return broadcast_object_list(made)[0]


def sorted_by_length(rows: Dataset) -> Dataset:
    """Rows in the order of their `length`; `Dataset.sort` (5.2) warns of what pyarrow will do one day."""
    return select_rows(rows, np.argsort(column_array(rows, "length"), kind="stable"))


def generation_config(
    config: VanillaTransformerConfig, num_beams: int = 1, length_penalty: float = 1.0
) -> GenerationConfig:
    """How a model of this configuration generates by default: with a cache, up to its last position."""
    generation = GenerationConfig.from_model_config(config)
    generation.use_cache = True  # Trainer switches it off in the configuration of the model that it trains
    generation.max_length = config.max_target_positions
    if num_beams > 1:
        generation.num_beams, generation.length_penalty = num_beams, length_penalty
    return generation


def make_config(
    arguments: ModelArguments,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    preset: str = "transformer-evolution",
    **fields: Any,
) -> VanillaTransformerConfig:
    """The configuration of the model that is trained further, or of a new one, for its source texts' tokenizer.

    In a new one, `fields` override the preset's, and `arguments.config` overrides both. A ValueError if the model has
    no room for the tokenizer's ids, or for texts of `max_length` tokens.
    """
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
        with user_errors():
            config = VanillaTransformerConfig.from_preset(preset, **{**new, **fields, **arguments.config})
    if config.vocab_size < (needed := size_needed(tokenizer)):
        raise DataError(f"vocab_size: {config.vocab_size} is less than the tokenizer's {needed} tokens")
    if config.max_position_embeddings < max_length:
        limit = config.max_position_embeddings
        raise DataError(f"--max_length: {max_length} is more than the model's {limit} positions")
    return config


def print_facts(data: DatasetDict, *options: Any) -> None:
    """Print what `describe_data` says; `options` are its further arguments."""
    if PartialState().is_main_process:
        print(*describe_data(data, *options), sep="\n", flush=True)


def print_model(model: PreTrainedModel) -> None:
    """Print the sizes of a model."""
    config: Any = model.config
    sizes = {
        "layers": (config.encoder_layers, config.decoder_layers),
        "heads": (config.encoder_attention_heads, config.decoder_attention_heads),
        "feed-forward": (config.encoder_ffn_dim, config.decoder_ffn_dim),
        "vocabulary": (config.vocab_size, config.target_vocab_size),
    }
    words = [f"d_model {config.d_model:,}"]
    for name, (encoder, decoder) in sizes.items():
        words.append(f"{name} {encoder:,}" + ("" if encoder == decoder else f" and {decoder:,}"))
    if PartialState().is_main_process:
        print(f"model: {', '.join(words)}; {model.num_parameters():,} parameters", flush=True)


class _Clock(TrainerCallback):
    def __init__(self):
        self.ends: list[float] = []

    def on_step_end(self, *args, **kwargs) -> None:
        self.ends.append(time.perf_counter())


def number_of_updates(trainer: CheckedTrainer) -> int:
    """Of the whole training."""
    training = trainer.args
    if training.max_steps > 0:
        return training.max_steps
    batches = math.ceil(len(trainer.get_train_dataloader()) / training.gradient_accumulation_steps)
    return math.ceil(batches * training.num_train_epochs)


def rehearse(trainer: CheckedTrainer, folder: str) -> None:
    """Train for four updates, time the last three, and print how long a run takes and what it leaves in `folder`."""
    training, clock = trainer.args, _Clock()
    updates = number_of_updates(trainer)
    keeps, limit = training.save_strategy != SaveStrategy.NO, training.save_total_limit
    training.max_steps = 4
    training.eval_strategy = training.logging_strategy = IntervalStrategy.NO
    training.save_strategy = SaveStrategy.NO
    training.load_best_model_at_end = False
    for callback in (PrinterCallback, EarlyStoppingCallback):  # the latter insists on evaluations
        trainer.remove_callback(callback)
    trainer.add_callback(clock)
    trainer.train()
    if not trainer.is_world_process_zero():
        return
    seconds = (clock.ends[-1] - clock.ends[0]) / (len(clock.ends) - 1) if len(clock.ends) > 1 else math.nan
    megabytes = trainer.model.num_parameters() * 4 / 1e6
    print(
        f"training: {updates:,} updates of {seconds:.2g} seconds, {updates * seconds / 60:.1f} minutes in all, "
        "without evaluations\n"
        f"{folder} would get the model ({megabytes:,.1f} MB in float32), {FILES}"
        + (f"; and checkpoints of {3 * megabytes:,.1f} MB{f', {limit} at a time' if limit else ''}" if keeps else "")
        + "\nNothing was written there.",
        flush=True,
    )


@contextlib.contextmanager
def _kept_random_numbers() -> Iterator[None]:
    """Leave Python's, NumPy's and torch's random numbers (those of the processor) as they were found."""
    states = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])


class RunFolder:
    """The folder of a run, for the time in which the run writes to it: a context manager that holds its lock.

    The lock of a run that was killed does not count. A KeyboardInterrupt that leaves the context, and a
    `TrainingStopped`, have a note that says where the run goes on. A process has one run at a time, and its random
    numbers back after it. `os.fspath` of a run is its folder.

    Args:
        training: transformers' training arguments.
        dry_run: Whether the run writes nothing but to a temporary folder.

    Attributes:
        folder: The folder.
        checkpoint: The folder of the checkpoint that the run resumes from; None for a new run.
        is_finished: Whether `auto` has found the whole result of this run, to which nothing is to be done.
        settings: What checkpoints keep of how the run was called.
    """

    is_finished = False
    settings: dict[str, Any] = {}
    defaults: Mapping[str, Any] = {}  # of the settings

    # The runs of this process that are open.
    opened: "list[RunFolder]" = []

    def __init__(self, training: TrainingArguments, dry_run: bool = False):
        self.training, self.folder, self.dry_run = training, training.output_dir, dry_run
        self.checkpoint: str | None = None
        self._trainer: CheckedTrainer | None = None
        self._is_stopped = False
        self._at_end = contextlib.ExitStack()

    def __fspath__(self) -> str:
        return self.folder

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.folder}>"

    def __enter__(self) -> Self:
        if self.opened:  # threads would draw each other's random numbers
            raise DataError(f"{self.opened[0].folder}: a run is going on in this process: one at a time")
        with contextlib.ExitStack() as stack:  # which undoes all where something fails
            stack.enter_context(_kept_random_numbers())
            self._open(stack)
            self._at_end = stack.pop_all()
        self.opened.append(self)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self.opened.remove(self)
        if isinstance(error, KeyboardInterrupt | TrainingStopped):
            found = None if self.dry_run else last_whole_checkpoint(self.folder)
            flag = "" if self.training.resume_from_checkpoint == AUTO else " with --resume_from_checkpoint"
            way = f"the same command{flag} goes on from {found}"
            error.add_note(way if found else "no checkpoint was saved")
        self._at_end.close()

    def _open(self, stack: contextlib.ExitStack) -> None:
        training = self.training
        stack.callback(StepSize.made_with.clear)
        training.enable_jit_checkpoint = False  # it saves within a step: no run could go on from there to the same end
        if self.dry_run:
            if Path(self.folder).exists():
                prepare_output_dir(self.folder)
            training.output_dir = stack.enter_context(tempfile.TemporaryDirectory())  # Trainer makes its folder
            training.report_to, training.push_to_hub, training.disable_tqdm = [], False, True
            return
        if training.device.type == "cpu" and training.fsdp:  # Trainer would copy the model to each process
            raise DataError("--fsdp: shards a model over GPUs, and this run is on the CPU")
        if training.ddp_find_unused_parameters is None:
            training.ddp_find_unused_parameters = False  # no loss leaves out a parameter
        found = broadcast_from_main(lambda: self._prepare(stack))
        if isinstance(found, Exception):
            raise found
        self.checkpoint, self.is_finished, name = found
        shared = Path(self.folder, name)
        blind = [str(rank) for rank, sees in enumerate(gather_object([shared.is_file()])) if not sees]
        if PartialState().is_main_process:
            shared.unlink()
        if blind:
            what = f"process {', '.join(blind)} does not see what process 0 writes there"
            raise DataError(f"{self.folder}: {what}: choose an output_dir that all machines share")
        if self.is_finished:
            if PartialState().is_main_process:
                print(
                    f"{self.folder}: this run is finished, and nothing is left to do; its data are not compared",
                    flush=True,
                )
            return
        keep_step_size(training, self.checkpoint)
        stack.callback(StepSize.now.clear)
        if PartialState().is_main_process:
            print(f"The result goes to {self.folder}", flush=True)
            print(explain_precision(training_precision(training), training.use_cpu), flush=True)

    def _prepare(self, stack: contextlib.ExitStack) -> Exception | tuple[str | None, bool, str]:
        """In the main process: lock the folder; checkpoint to resume from, whether all is done, name of a file in it.

        An error is returned, for all processes to raise.
        """
        is_auto = self.training.resume_from_checkpoint == AUTO
        lock = FileLock(Path(self.folder, LOCK_FILE))
        try:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
            stack.callback(lock.release)
            stack.callback(Path(lock.lock_file).unlink, missing_ok=True)
            # The card is written last, but for what is uploaded.
            is_whole = all(Path(self.folder, name).is_file() for name in (RUN_FILE, CARD_FILE))
            is_finished = is_auto and is_whole and not self.training.push_to_hub
            if is_finished:
                checkpoint = last_whole_checkpoint(self.folder)
            else:
                checkpoint = prepare_output_dir(self.folder, self.training.resume_from_checkpoint)
            self._keep("settings", settings_that_matter(self.settings), checkpoint)
            with tempfile.NamedTemporaryFile(prefix=SHARED_PREFIX, dir=self.folder, delete=False) as shared:
                return checkpoint, is_finished, Path(shared.name).name
        except Timeout:
            return DataError(f"{self.folder}: a run is going on there: choose another output_dir")
        except Exception as error:
            return error

    def _keep(self, what: str, given: Mapping[str, Any], checkpoint: str | None) -> None:
        """Have checkpoints keep this; a DataError if `auto` would go on with something else than its checkpoint's."""
        now = json.loads(json.dumps(given, default=str))
        if checkpoint and self.training.resume_from_checkpoint == AUTO:
            check_unchanged(checkpoint, what, now, self.training, self.defaults)
        StepSize.made_with[f"given_{what}"] = now

    def keep_data(self, describe: Callable[[], dict[str, Any]]) -> None:
        """Have checkpoints keep what names the data; a DataError if `auto` would go on with others."""

        def keep() -> Exception | None:
            try:
                self._keep("data", describe(), self.checkpoint)
            except (DataError, OSError) as error:  # for all processes to raise
                return error
            return None

        if not self.dry_run and (error := broadcast_from_main(keep)):
            raise error

    def fit(self, trainer: CheckedTrainer) -> TrainOutput:
        """Train, from the checkpoint if there is one.

        Raises:
            TrainingStopped: `stop` was called.
            OSError: a checkpoint cannot be written, as on a full disk.
        """
        self._trainer = trainer
        trainer.add_callback(StepSize)
        try:
            trained = trainer.train(resume_from_checkpoint=self.checkpoint)
        except RuntimeError as error:
            if self._is_stopped:  # a process that loads data, or trains beside this one, has ended by the same signal
                raise TrainingStopped(str(error)) from error
            if "inline_container" in str(error):  # torch's writer of files, which has no class of errors
                raise OSError(f"{self.folder}: a checkpoint cannot be written, as on a full disk") from error
            raise
        finally:
            self._trainer = None
        if self._is_stopped:
            raise TrainingStopped("training was stopped in its last step")
        return trained

    def stop(self) -> bool:
        """Have `fit` end after its step, with a checkpoint; returns whether it is running."""
        if self._trainer is None:
            return False
        self._is_stopped = True
        self._trainer.stop()
        return True


class Run(RunFolder):
    """A training run, from an empty folder to one that can be shared.

    Args:
        arguments: The model's settings; with `dry_run`, `train` times some updates.
        training: transformers' training arguments.
        settings: What recipe and keywords say, for the record.
        metrics: The metrics that `metric_for_best_model` can name.
        packages: Modules of optional extras that the run needs.

    Attributes:
        folder: The run's folder.
        metrics: What was measured, as in `metrics.json`; empty after a dry run.
        model: The trained model; None where `auto` found a finished run.
        tokenizer: The tokenizer of its texts.
        target_tokenizer: Of a translator, the tokenizer of its translations.
    """

    model: Any = None
    tokenizer: Any = None
    target_tokenizer: Any = None

    def __init__(
        self,
        arguments: ModelArguments,
        training: TrainingArguments,
        settings: dict[str, Any],
        metrics: Sequence[str],
        packages: Sequence[str] = (),
    ):
        super().__init__(training, arguments.dry_run)
        best = training.metric_for_best_model
        if best is not None and best.removeprefix("eval_") not in metrics:
            raise DataError(f"--metric_for_best_model: {', '.join(metrics)}; not {best}")
        # Fail before training if an extra is not installed. scikit-learn also draws a random number when it is
        # imported: a resumed run would draw it twice, if that happened at the first evaluation.
        for package in ("matplotlib", *packages):
            try:
                importlib.import_module(package)
            except ImportError as error:
                raise ImportError(f"{error}: pip install 'hf-vanilla-transformer[train]'") from error
        try:
            for callback in get_reporting_integration_callbacks(training.report_to):
                callback()
        except RuntimeError as error:
            raise ImportError(f"--report_to: {error}") from error
        self.arguments, self.settings = arguments, settings
        given = [*fields(arguments), *fields(training)]
        self.defaults = {one.name: None if one.default is MISSING else one.default for one in given}
        self.metrics: dict[str, Any] = {}

    def _open(self, stack: contextlib.ExitStack) -> None:
        stack.enter_context(keep_token_out_of_files(self.training))
        super()._open(stack)
        if self.is_finished:
            self.metrics = read_file(Path(self.folder, METRICS_FILE))

    def make_tokenizer(self, rows: Dataset | None, max_length: int, *needed: str) -> PreTrainedTokenizerBase:
        """The tokenizer of a run with one vocabulary: its checkpoint's, a named one, or one trained on `rows`.

        One that is named must have the special tokens `needed`.
        """
        arguments: Any = self.arguments
        if self.checkpoint:
            return load_tokenizer(self.checkpoint)
        if arguments.tokenizer or arguments.model:
            return load_tokenizer_to_train(arguments.tokenizer, arguments.model, needed, max_length)
        options = {"vocab_size": arguments.vocab_size, "model": arguments.tokenizer_model, "max_length": max_length}
        return broadcast_from_main(lambda: train_vocabulary(rows, ["text"], arguments.vocab_lines, **options))

    def make_model(self, model_class: type[Model], config: VanillaTransformerConfig, **options: Any) -> Model:
        """Seed all random numbers, then make a new model, or load the one that is trained further; in float32.

        `options` are further arguments of `from_pretrained`.
        """
        set_seed(self.training.seed)
        attention = {"attn_implementation": self.arguments.attn_implementation}
        with user_errors():  # such as an attention implementation that does not exist
            if self.arguments.model:
                model = load_to_train(model_class, self.arguments.model, config, **attention, **options)
            else:
                model = model_class._from_config(config, **attention)
        print_model(model)
        return model

    def train(self, trainer: CheckedTrainer) -> bool:
        """Train, from the checkpoint if there is one, and begin `metrics`; False after a dry run."""
        self.model, self.tokenizer = trainer.model, trainer.processing_class
        if self.dry_run:
            rehearse(trainer, self.folder)
            return False
        trainer.add_callback(PushCallback)
        trained = self.fit(trainer)
        self.metrics = {
            "best_step": best_step(trainer.args, trainer.state),
            "training_seconds": round(trained.metrics["train_runtime"], 1),
            "epochs": epochs(trainer.state.log_history),
        }
        return True

    def save(self, trainer: CheckedTrainer) -> None:
        """Round and save the model; what is measured afterwards is what was saved."""
        dtype = getattr(torch, self.arguments.weights_dtype)
        round_weights(trainer.model, dtype)
        trainer.save_model(self.folder, _internal_call=True)  # uploaded at the end, with the record
        if dtype != torch.float32 and trainer.is_world_process_zero():
            save_weights_in(trainer.model, self.folder, dtype)

    def finish(
        self,
        trainer: CheckedTrainer,
        headline: str,
        use: str,
        data: Callable[[], dict[str, Any]],
        script: str | None = None,
    ) -> None:
        """In the main process, write record and card, print where they are, and upload the folder if asked for.

        Args:
            headline: The figure that is printed.
            use: The command that uses the model, with FOLDER in place of the run's folder.
            data: Returns what the record says about the data.
            script: The script of a checkout that takes the settings, if the package's command does not.
        """
        if not trainer.is_world_process_zero():
            return
        save_record(
            self.folder,
            trainer.model,
            metrics=self.metrics,
            settings=self.settings,
            seed=self.training.seed,
            precision=training_precision(self.training),
            resumed_from=self.checkpoint,
            base_model=self.arguments.model,
            data=data(),
            script=script,
            license=self.arguments.license,
        )
        save_model_card(self.folder)
        folder = shlex.quote(self.folder)
        print(
            f"{headline}\n"
            f"{self.folder}: the model, {FILES}\n"
            f"Use it:   vanilla-transformer {use.replace('FOLDER', folder)}\n"
            f"Share it: vanilla-transformer push-to-hub {folder} --repo_id USER/NAME --dry_run",
            flush=True,
        )
        upload_run(trainer)
