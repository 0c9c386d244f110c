# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A run's checkpoints: where it resumes, the mean of the last ones, weights in half precision."""

import json
import logging
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from safetensors import SafetensorError, safe_open
from torch.optim.swa_utils import AveragedModel
from transformers import PreTrainedConfig, PreTrainedModel, TrainerCallback, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..errors import DataError
from ..hub.record import world_size
from ..inference.folder import DROPOUT_FIELDS, load_config, load_model
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel


logger = logging.getLogger(__name__)

# The value of `resume_from_checkpoint` that stands for the last whole checkpoint of the run's folder.
LAST_CHECKPOINT = "last"
# The value that begins a run in an empty folder, and else is `LAST_CHECKPOINT`: for commands that are started again.
AUTO = "auto"
# Held while a run writes to its folder. Trainer does not push files named `_*`.
LOCK_FILE = "_run.lock"
# How the name of a file begins that the first process makes, for the others to look for.
SHARED_PREFIX = "_run.shared."
# The files that Trainer reads when it resumes, in the order in which it writes them; peft's and FSDP's names follow.
CHECKPOINT_FILES = (
    ("model*.safetensors", "adapter_model*", "pytorch_model_fsdp*"),
    ("optimizer.pt", "optimizer.bin", "optimizer_*"),
    ("scheduler.pt",),
    ("rng_state*.pth",),
    ("trainer_state.json",),
)
CHECKPOINT_PREFIX = f"{PREFIX_CHECKPOINT_DIR}-"
# Of a run that was stopped between its checkpoints, which this one is none of: it counts neither for
# `save_total_limit` nor in a mean of the last ones, and goes when the resumed run saves its next one.
EXTRA_PREFIX = f"stopped-{CHECKPOINT_PREFIX}"
# Settings that a run may go on without: they change neither what is learned, nor what is kept of it. Data are compared
# by their checksums; what an update is made of, by `keep_step_size`.
_NOT_LEARNED = re.compile(
    "data|texts|license|robustness|log_.*|logging_.*|report_to|project|trackio_.*|save_total_limit|ddp_.*|"
    "dataloader_.*|per_device_eval_batch_size|eval_accumulation_steps|torch_compile.*|enable_jit_checkpoint"
)
_OF_AN_UPDATE = {"per_device_train_batch_size", "gradient_accumulation_steps"}
# Fields that may differ between two models of one architecture.
_OTHER_FIELDS = DROPOUT_FIELDS | {"architectures", "auto_map", "dtype", "problem_type", "use_cache"}


def prepare_output_dir(output_dir: str, resume: str | bool | None = None) -> str | None:
    """Check that a run can write to its folder, and find the checkpoint that it resumes from; None for a new run.

    Args:
        output_dir: The run's folder; created if it does not exist.
        resume: None or false for a new run; a checkpoint's folder; or `LAST_CHECKPOINT` or true for the last whole
            checkpoint in `output_dir`. Damaged checkpoints are left alone: Trainer overwrites them later.

    Raises:
        ValueError: the folder of a new run is not empty; or there is no checkpoint to resume from; or the named one
            is damaged, or of another type of model.
        OSError: the folder cannot be written.
    """
    folder, checkpoint = Path(output_dir), None
    # Other switches are `true` or `false`, so people write this one so, too.
    resume = {"true": LAST_CHECKPOINT, "false": None}.get(str(resume).lower(), resume)
    if resume in (LAST_CHECKPOINT, AUTO):
        checkpoint = last_whole_checkpoint(output_dir)
    elif resume is not None:
        checkpoint = str(resume)
    if resume is None or (resume == AUTO and checkpoint is None):
        # Checkpoints that are all damaged are those of a run that was killed while it saved the first one.
        left = list_checkpoints(output_dir, CHECKPOINT_PREFIX, EXTRA_PREFIX) if resume else []
        passed = {LOCK_FILE, ".DS_Store", *(Path(path).name for path in left)}
        names = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
        if any(not name.startswith(SHARED_PREFIX) for name in names - passed):
            raise DataError(
                f"{output_dir} is not empty, and nothing is overwritten: choose another output_dir "
                "(an interrupted run goes on with resume_from_checkpoint)"
            )
    else:
        if checkpoint is None or not Path(checkpoint).is_dir():
            raise DataError(f"{checkpoint or output_dir}: no checkpoint to go on from")
        if not is_adapter(checkpoint):
            load_config(checkpoint)
        if damage := checkpoint_damage(checkpoint):
            raise DataError(f"{checkpoint}: not a whole checkpoint ({damage})")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass  # fails here, not after hours, where the folder cannot be written
    return checkpoint


def is_adapter(checkpoint: str) -> bool:
    """Whether a folder holds weights of peft, such as LoRA's, which have no configuration of a model."""
    return Path(checkpoint, "adapter_config.json").is_file()


def checkpoint_damage(checkpoint: str) -> str | None:
    """What is wrong with a checkpoint's folder: a file that is missing or cut off; None if nothing."""
    for patterns in CHECKPOINT_FILES:
        files = sorted(file for pattern in patterns for file in Path(checkpoint).glob(pattern))
        if not files:
            return f"{patterns[0]} is missing"
        for file in files:
            if not _is_whole(file):
                return f"{file.name} is broken off"
    # Each of several processes writes its own state; a single one's has no number.
    processes = step_size(checkpoint).get("processes") or world_size()
    for rank in range(processes if not Path(checkpoint, "rng_state.pth").is_file() else 0):
        if not Path(checkpoint, f"rng_state_{rank}.pth").is_file():
            return f"rng_state_{rank}.pth is missing"
    return None


class StepSize(TrainerCallback, ExportableState):
    """Keeps in each checkpoint's trainer_state.json what an update of the weights is made of, and the whole run.

    Attributes:
        now: Of this process's run: its `processes`; the rows of an update in each, as `given` by the settings; the
            `rows` in all, of full batches; and those of a `group`, of which rows of similar length are drawn, which
            stay those of the run's start.
        made_with: The run's `settings_that_matter`, and checksums of its data, as `given_settings` and `given_data`.
    """

    now: dict[str, int] = {}  # not the object's own: Trainer may make another one, as the checkpoint has it
    made_with: dict[str, dict[str, Any]] = {}

    def state(self) -> dict[str, Any]:
        return {"args": {}, "attributes": {"kept": self.now, **self.made_with}}


def step_size(checkpoint: str) -> dict[str, int]:
    """What `StepSize` has kept in a checkpoint of an update; empty if it has not."""
    try:
        return {name: int(value) for name, value in (_kept(checkpoint, "kept") or {}).items()}
    except (TypeError, ValueError):
        return {}


def _kept(checkpoint: str, name: str) -> dict[str, Any] | None:
    try:
        state = json.loads(Path(checkpoint, TRAINER_STATE_NAME).read_text(encoding="utf-8"))
        return dict(state["stateful_callbacks"]["StepSize"]["attributes"][name])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def settings_that_matter(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that change nothing that is learned: checkpoints of two runs that learn the same are the same."""
    return {name: value for name, value in settings.items() if not _NOT_LEARNED.fullmatch(name)}


def check_unchanged(
    checkpoint: str, what: str, now: Mapping[str, Any], training: TrainingArguments, defaults: Mapping[str, Any]
) -> None:
    """Raise a DataError if a checkpoint was made with other "settings", or other "data", than it would be now."""
    before, kept = _kept(checkpoint, f"given_{what}"), step_size(checkpoint)
    if before is None:  # not one of `StepSize`
        return
    rows = training.train_batch_size * training.gradient_accumulation_steps
    is_adjusted = bool(kept) and (kept["processes"] != training.world_size or kept["given"] == rows)
    changed = []
    for name in {**before, **now}:
        old, new = (one.get(name, defaults.get(name)) for one in (before, now))
        if old != new and not (is_adjusted and name in _OF_AN_UPDATE):
            changed.append(f"{name} {old} -> {new}")
    if changed:
        way = f"to go on from it with these on purpose, name it: --resume_from_checkpoint {checkpoint}"
        raise DataError(f"{checkpoint}: trained with other {what}: {', '.join(changed)}; {way}")


def keep_step_size(training: TrainingArguments, checkpoint: str | None) -> None:
    """Set `gradient_accumulation_steps` so that a resumed run's updates have the rows of its checkpoint's.

    That is where the number of processes is another than the checkpoint's, or was so in an earlier resumption.

    Raises:
        DataError: with this number of processes, no accumulation makes as many rows.
    """
    processes, batch = training.world_size, training.train_batch_size
    given = batch * training.gradient_accumulation_steps
    kept = step_size(checkpoint) if checkpoint else {}
    if kept and (kept["processes"] != processes or kept["given"] == given):
        if kept["rows"] % (batch * processes):
            raise DataError(
                f"{checkpoint}: an update has {kept['rows']:,} rows, in {kept['processes']} processes; {processes} "
                f"processes with batches of {batch:,} cannot make as many: choose another number of processes, or "
                "another per_device_train_batch_size"
            )
        training.gradient_accumulation_steps = kept["rows"] // (batch * processes)
        if kept["processes"] != processes and PartialState().is_main_process:
            logger.warning(
                f"{checkpoint}: made in {kept['processes']} processes, and goes on in {processes}: "
                f"gradient_accumulation_steps is {training.gradient_accumulation_steps}, so that an update keeps its "
                f"{kept['rows']:,} rows; dropout draws other numbers, and sums are rounded in another order, so the "
                "weights do not end the same bit for bit"
            )
    rows = processes * batch * training.gradient_accumulation_steps
    StepSize.now = {"processes": processes, "given": given, "rows": rows, "group": kept.get("group", given)}


def _is_whole(file: Path) -> bool:
    """Whether a file ends where it should; its content is left to Trainer, which says what it cannot read."""
    try:
        if file.suffix == ".safetensors":
            with safe_open(file, "pt"):
                return True  # the header says how long the file is
        if file.suffix == ".json":
            json.loads(file.read_text(encoding="utf-8"))
            return True
    except (OSError, ValueError, SafetensorError):
        return False
    # A folder of shards has a list of them, which is written last; so is the index of torch's files.
    return (file / ".metadata").is_file() if file.is_dir() else zipfile.is_zipfile(file)


def last_whole_checkpoint(output_dir: str) -> str | None:
    """The folder of a run's last checkpoint that is whole, with a warning for each later one that is not."""
    for checkpoint in reversed(list_checkpoints(output_dir, CHECKPOINT_PREFIX, EXTRA_PREFIX)):
        damage = checkpoint_damage(checkpoint)
        if damage is None:
            return checkpoint
        logger.warning(f"{checkpoint}: not a whole checkpoint ({damage}), skipped")
    return None


def last_checkpoints(folder: str, number: int) -> list[str]:
    """The folders of a run's last checkpoints, in the order of their steps; a ValueError if there are fewer."""
    if number < 1:
        raise DataError(f"the number of checkpoints must be at least 1, not {number}")
    checkpoints = list_checkpoints(folder, CHECKPOINT_PREFIX)
    if len(checkpoints) < number:
        raise DataError(f"{folder}: {len(checkpoints)} checkpoints, fewer than {number}")
    return checkpoints[-number:]


def list_checkpoints(folder: str, *prefixes: str) -> list[str]:
    """The subfolders that are named by one of the prefixes and a step, in the order of the steps."""
    found = [(path, path.name.removeprefix(prefix)) for prefix in prefixes for path in Path(folder).glob(f"{prefix}*")]
    steps = {str(path): int(step) for path, step in found if step.isdecimal() and path.is_dir()}
    return sorted(steps, key=lambda path: steps[path])


def architecture_fields(config: PreTrainedConfig) -> dict[str, Any]:
    """The fields, other than the defaults, that the meaning of the weights depends on; dropout rates are none."""
    return {name: value for name, value in config.to_diff_dict().items() if name not in _OTHER_FIELDS}


def average_checkpoints(folders: list[str]) -> VanillaTransformerPreTrainedModel:
    """The mean of several checkpoints' weights (§6.1; the Annotated Transformer's "Model Averaging").

    Returns:
        The model, of the class that its configuration names, in its own precision.

    Raises:
        ValueError: a folder holds no such model, or the models differ in their architecture.
    """
    model = load_model(folders[0])
    dtype = model.dtype
    model.float()  # a running mean in half precision would be rounded at every step
    average = AveragedModel(model)
    average.update_parameters(model)
    for folder in folders[1:]:
        other = load_model(folder)
        if type(other) is not type(model) or architecture_fields(other.config) != architecture_fields(model.config):
            raise DataError(f"{folder}: another model than {folders[0]}")
        average.update_parameters(other.float())
    model.load_state_dict(average.module.state_dict())
    return model.to(dtype)  # type: ignore[arg-type]  # transformers wraps `to`


def round_weights(model: PreTrainedModel, dtype: torch.dtype) -> None:
    """Round a model's weights, in place, to values that a lower precision can hold; its own precision stays."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(dtype))


def save_weights_in(model: PreTrainedModel, folder: str, dtype: torch.dtype) -> None:
    """Save a model with its weights in a lower precision, for a smaller file.

    `config.json` keeps the model's own precision, so `from_pretrained` computes in that. `round_weights` comes before.
    """
    # Tied weights stay one tensor.
    lowered: dict[int, torch.Tensor] = {}
    state = {name: lowered.setdefault(t.data_ptr(), t.to(dtype)) for name, t in model.state_dict().items()}
    model.save_pretrained(folder, state_dict=state)
