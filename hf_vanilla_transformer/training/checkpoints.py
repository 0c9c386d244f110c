# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A run's checkpoints: the one to go on from, the mean of the last ones."""

import json
import zipfile
from pathlib import Path

from torch.optim.swa_utils import AveragedModel
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..data.errors import DataError
from ..hub.model_card import CARD_FILE
from ..hub.record import world_size
from ..inference.folder import load_model
from ..inference.registration import VanillaTransformerPreTrainedModel


# The value of `resume_from_checkpoint` for the last whole checkpoint, or a new run if there is none.
AUTO = "auto"
# Held while a run writes to its folder. Trainer pushes no file named `_*`.
LOCK_FILE = "_run.lock"
CHECKPOINT_PREFIX = f"{PREFIX_CHECKPOINT_DIR}-"
# A checkpoint made only because the run was stopped. It counts neither towards save_total_limit nor in the mean of the
# last checkpoints; the resumed run deletes it when it saves its next one.
STOPPED_PREFIX = f"_stopped-{CHECKPOINT_PREFIX}"


def prepare_output_dir(output_dir: str, resume: str | None = None) -> str | None:
    """Create a run's folder, and return the checkpoint to go on from; None for a new run.

    Args:
        output_dir: The run's folder. A new run's must be empty, but for checkpoints that were not saved to their end.
        resume: A checkpoint's folder; or `AUTO`.
    """
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    if resume not in (None, AUTO):
        return resume
    names = {file.name for file in folder.iterdir()} - {LOCK_FILE, ".DS_Store"}
    if resume == AUTO:
        if CARD_FILE in names:  # written last
            raise DataError(f"{output_dir}: this run is finished: choose another output_dir")
        if checkpoint := last_whole_checkpoint(output_dir):
            return checkpoint
        names -= {Path(broken).name for broken in list_checkpoints(output_dir, CHECKPOINT_PREFIX, STOPPED_PREFIX)}
    if names:
        raise DataError(
            f"{output_dir} is not empty, and nothing is overwritten: choose another output_dir "
            "(an interrupted run goes on with --resume_from_checkpoint auto)"
        )
    return None


def last_whole_checkpoint(output_dir: str) -> str | None:
    """Return a run's last checkpoint that was saved to its end."""
    checkpoints = list_checkpoints(output_dir, CHECKPOINT_PREFIX, STOPPED_PREFIX)
    return next((checkpoint for checkpoint in reversed(checkpoints) if is_whole(Path(checkpoint))), None)


def is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint was saved to its end.

    Trainer writes the states of random numbers, one for each process, and last trainer_state.json.
    """
    alone = checkpoint / "rng_state.pth"
    states = [alone] if alone.exists() else [checkpoint / f"rng_state_{rank}.pth" for rank in range(world_size())]
    try:
        json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return all(zipfile.is_zipfile(state) for state in states)


def list_checkpoints(folder: str, *prefixes: str) -> list[str]:
    """List the subfolders named by one of the prefixes and a step, in the order of their steps."""
    paths = [(path, path.name.removeprefix(prefix)) for prefix in prefixes for path in Path(folder).glob(f"{prefix}*")]
    steps = {str(path): int(step) for path, step in paths if step.isdecimal() and path.is_dir()}
    return sorted(steps, key=lambda path: steps[path])


def average_checkpoints(folders: list[str]) -> VanillaTransformerPreTrainedModel:
    """Return the mean of several checkpoints' weights (§6.1; the Annotated Transformer's "Model Averaging").

    Returns:
        The model, of the class that its configuration names, in its own precision.
    """
    model = load_model(folders[0])
    dtype = model.dtype
    model.float()  # a running mean in half precision would be rounded at every step
    average = AveragedModel(model)
    average.update_parameters(model)
    for folder in folders[1:]:
        average.update_parameters(load_model(folder).float())
    model.load_state_dict(average.module.state_dict())
    return model.to(dtype)  # type: ignore[arg-type]  # transformers wraps `to`
