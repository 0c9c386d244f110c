# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Upload the folder of a run or an export to a Hub repository."""

from glob import escape
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi
from transformers import PreTrainedModel, Trainer

from ..errors import DataError
from ..inference.engine import EXPORT_FILE
from ..inference.folder import load_model, load_tokenizers
from .model_card import has_card, load_model_card, make_model_card, rename_model_card, save_model_card
from .record import CARD_FILE, EXPORT_FILES, REQUIRED_FILES, REQUIRED_IN_EXPORT, RUN_FILES, listed_files, read_file


# What Trainer's own pushes upload and only a resumed run needs; `training_args.bin` also describes the machine.
TRAINING_STATE = ("training_args.bin", "trainer_state.json", "optimizer*", "scheduler.pt", "rng_state*.pth")


def repository_files(folder: str | Path) -> list[Path]:
    """Check that the folder of a run or an export is complete and can be read, and list the files that are uploaded.

    Returns:
        The sorted files, relative to the folder; with `README.md`, also where it has yet to be made.

    Raises:
        ValueError: there is no such folder, or a file is missing or damaged; the message names it.
    """
    folder = Path(folder)
    is_export = (folder / EXPORT_FILE).is_file()
    files = listed_files(folder, EXPORT_FILES if is_export else RUN_FILES)
    required = REQUIRED_IN_EXPORT if is_export else REQUIRED_FILES
    if missing := [name for name in required if Path(name) not in files]:
        raise DataError(f"{folder}: not complete, {', '.join(missing)} missing")
    if not is_export:
        load_tokenizers(str(folder), load_model(str(folder)).config)
        make_model_card(folder)  # which reads the record
    if has_card(folder):
        load_model_card(folder)
    return sorted({*files, Path(CARD_FILE)})


def files_left_out(folder: Path, files: list[Path]) -> list[str]:
    """The files of a folder that are not sent; a folder without a sent file is one entry that ends in `/`."""
    folders = {parent for file in files for parent in file.parents}
    found = {file.relative_to(folder) for place in folders for file in (folder / place).iterdir()}
    return sorted(file.as_posix() + "/" * (folder / file).is_dir() for file in found - {*folders, *files})


def check_repo_id(repo_id: str) -> None:
    """Raise a DataError if the name of a repository is not of the form `USER/NAME`."""
    if repo_id.count("/") != 1:
        raise DataError(f"repo_id: not of the form USER/NAME: {repo_id!r}")


def upload(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
) -> str:
    """Upload the folder of a run or an export to a Hub repository, which is created if it does not exist.

    A run's card is made where it is missing or Trainer's draft, and gets the repository's name. The upload is one
    commit; after an interruption, the next upload does not send files again that have arrived.

    Args:
        folder: A folder that `repository_files` finds complete.
        repo_id: `USER/NAME`.
        private: Make a private repository.
        revision: A branch, created from main if it does not exist; by default main.
        token: The user's token; by default the one of `hf auth login` or `HF_TOKEN`.

    Returns:
        The address of the commit.

    Raises:
        ValueError: the folder is not complete, the name is malformed or taken by another kind of model, or the
            repository is public although a private one is asked for.
        OSError, HTTPError: nobody is logged in, or the server refuses, fails or cannot be reached.
    """
    check_repo_id(repo_id)
    folder = Path(folder)
    files = repository_files(folder)
    if not (folder / EXPORT_FILE).is_file():
        (rename_model_card if has_card(folder) else save_model_card)(folder, repo_id)
    api = HfApi(token=token or True)  # True: an error where nobody is logged in
    # None, not False, leaves the default to the user's or organisation's settings.
    api.create_repo(repo_id, private=private or None, exist_ok=True)
    found = api.model_info(repo_id)
    kind, other = read_file(folder / "config.json").get("model_type"), (found.config or {}).get("model_type")
    if other not in (None, kind):
        raise DataError(f"{repo_id}: the name is taken, by {other}")
    if private and not found.private:
        raise DataError(f"{repo_id}: it exists and is public; this does not make it private")
    if revision is not None:
        api.create_branch(repo_id, branch=revision, exist_ok=True)
    commit = api.upload_folder(
        repo_id=repo_id,
        folder_path=folder,
        allow_patterns=[escape(file.as_posix()) for file in files],
        delete_patterns=list(TRAINING_STATE),
        revision=revision,
        commit_message="Upload the folder",
    )
    return commit.commit_url


def push(model: PreTrainedModel, repo_id: str, **settings: Any) -> str:
    """Upload a model with its tokenizer, record and card, which `model.push_to_hub` does not send.

    Args:
        model: A model that was loaded from a run's folder, `model.name_or_path`, which is sent.
        repo_id: `USER/NAME`.
        **settings: Further arguments of `upload`.

    Returns:
        The address of the commit.

    Raises:
        ValueError: the model is from no folder, or has other weights than the folder; and as `upload`.
    """
    folder = model.name_or_path
    if not folder or not Path(folder).is_dir():
        raise DataError(f"the model was not loaded from a run's folder (name_or_path is {folder!r})")
    own, saved = model.state_dict(), load_model(folder, dtype=model.dtype).state_dict()
    if own.keys() != saved.keys() or not all(torch.equal(own[name].cpu(), saved[name]) for name in saved):
        raise DataError(f"{folder}: the model's weights are not those of the folder; save the model there first")
    return upload(folder, repo_id, **settings)


def upload_run(trainer: Trainer) -> None:
    """Upload the folder of a finished run, if its arguments have `push_to_hub`; the main process does it.

    Unlike `Trainer.push_to_hub`, it checks that the folder is complete, sends no other files, and keeps the card. The
    folder holds a record, or the trainer has a `RecordCallback`.
    """
    if not (trainer.args.push_to_hub and trainer.is_world_process_zero()):
        return
    trainer.callback_handler.on_push_begin(trainer.args, trainer.state, trainer.control)
    upload(
        trainer.args.output_dir,
        trainer.hub_model_id,
        private=bool(trainer.args.hub_private_repo),
        revision=trainer.args.hub_revision,
        token=trainer.args.hub_token,
    )
