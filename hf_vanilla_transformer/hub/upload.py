# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Upload a run's folder to a Hub repository, and a page's folder to a Space."""

import ast
import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, ModelCard
from huggingface_hub.utils import filter_repo_objects, validate_repo_id
from transformers import GenerationConfig, PreTrainedModel, Trainer, TrainingArguments

from ..errors import DataError, named_errors
from ..inference.engine import EXPORT_FILE
from ..inference.folder import load_model, load_tokenizers
from ..recipes import without_folders
from .model_card import CARD_FILE, has_card, load_model_card, make_model_card, rename_model_card, save_model_card
from .record import (
    EXPORT_FILES,
    PAGE_FILES,
    RECIPE_FILE,
    REQUIRED_FILES,
    REQUIRED_IN_EXPORT,
    RUN_FILE,
    RUN_FILES,
    exports_in,
    included_files,
    leads_inside,
    listed_files,
    read_file,
)


# What Trainer's own pushes upload and only a resumed run needs; `training_args.bin` also describes the machine.
TRAINING_STATE = (
    "training_args.bin",
    "trainer_state.json",
    "optimizer*",
    "scheduler.pt",
    "scaler.pt",
    "rng_state*.pth",
)


def repository_files(folder: str | Path, include: Iterable[str] = ()) -> list[Path]:
    """Check that the folder of a run or an export is complete and can be read, and list the files that are uploaded.

    Args:
        folder: A run's folder, or an export's.
        include: Glob patterns of further files, relative to the folder.

    Returns:
        The sorted files, relative to the folder; with `README.md`, also where it has yet to be made.

    Raises:
        ValueError: there is no such folder, or files are missing or damaged; the message names them.
    """
    folder = Path(folder)
    is_export = (folder / EXPORT_FILE).is_file()
    exports = [export for export in exports_in(folder) if leads_inside(folder, folder / export)]
    exported = [f"{escape(export.as_posix())}/{name}" for export in exports for name in EXPORT_FILES]
    check_card_is_here(folder)
    files = sorted({*listed_files(folder, (*RUN_FILES, *exported)), *included_files(folder, include)})
    whole = {file.as_posix() for file in files if (folder / file).stat().st_size}
    if lacking := [name for name in (REQUIRED_IN_EXPORT if is_export else REQUIRED_FILES) if name not in whole]:
        raise DataError(f"{folder}: not complete, {', '.join(lacking)} missing or empty")
    for pattern, read in (("*.json", json.loads), ("*.py", ast.parse), (CARD_FILE, ModelCard)):
        for file in files:
            if file.match(pattern):
                with named_errors(str(folder / file), "content"):
                    read((folder / file).read_text(encoding="utf-8"))
    check_paths(folder, [file for file in files if file.name in (RECIPE_FILE, RUN_FILE, EXPORT_FILE)])
    if not is_export:
        config = load_model(str(folder)).config
        if not hasattr(config, "auto_map"):
            raise DataError(f"{folder / 'config.json'}: without auto_map, the folder's code would not be found")
        load_tokenizers(str(folder), config)
        with named_errors(str(folder / "generation_config.json"), "content"):
            GenerationConfig.from_pretrained(folder)
        make_model_card(folder)  # which reads the record
        if has_card(folder):
            load_model_card(folder)
    return sorted({*files, Path(CARD_FILE)})


def space_files(folder: str | Path, include: Iterable[str] = ()) -> list[Path]:
    """Check that a folder is a static Space, as `vanilla-transformer page` makes it, and list the files to upload.

    Arguments, result and errors are those of `repository_files`.
    """
    folder = Path(folder)
    check_card_is_here(folder)
    files = sorted({*listed_files(folder, PAGE_FILES), *included_files(folder, include)})
    card = folder / CARD_FILE
    if Path("index.html") not in files or not card.is_file() or "\nsdk: static\n" not in card.read_text("utf-8"):
        raise DataError(f"{folder}: no page (a README.md with `sdk: static`, and index.html); `page` makes one")
    return files


def check_paths(folder: Path, records: Iterable[Path]) -> None:
    """Raise a `DataError` if a record names a folder of a machine: somebody has edited it."""
    for file in records:
        content = read_file(folder / file)
        if without_folders(content) != content:
            raise DataError(f"{folder / file}: names a folder of a machine: write the path's last part instead")


def check_card_is_here(folder: Path) -> None:
    """Raise a `DataError` if a folder's card is a link that leads out of the folder."""
    card = folder / CARD_FILE
    if card.is_symlink() and not leads_inside(folder, card):
        raise DataError(f"{card}: a link that leads out of the folder")


def files_left_out(folder: Path, files: list[Path]) -> list[str]:
    """The files of a folder that are not sent; a folder without a sent file is one entry that ends in `/`."""
    folders = {parent for file in files for parent in file.parents}
    found = {file.relative_to(folder) for place in folders for file in (folder / place).iterdir()}
    return sorted(file.as_posix() + "/" * (folder / file).is_dir() for file in found - {*folders, *files})


def check_repo_id(repo_id: str) -> None:
    """Raise a ValueError if the name of a repository is not of the form `USER/NAME`."""
    if repo_id.count("/") != 1:
        raise DataError(f"repo_id: not of the form USER/NAME: {repo_id!r}")
    validate_repo_id(repo_id)


def upload(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
    include: Iterable[str] = (),
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
        include: Glob patterns of further files to send.

    Returns:
        The address of the commit.

    Raises:
        ValueError: the folder is not complete, the name is malformed or taken by another kind of model, or the
            repository is public although a private one is asked for.
        OSError: nobody is logged in, a file did not arrive, or the card cannot be written.
        HTTPError: the server refuses, fails or cannot be reached.
    """
    check_repo_id(repo_id)
    folder = Path(folder)
    files = repository_files(folder, include)
    if not (folder / EXPORT_FILE).is_file():
        (rename_model_card if has_card(folder) else save_model_card)(folder, repo_id)
    additions = [CommitOperationAdd(file.as_posix(), folder / file) for file in files]
    kind = read_file(folder / "config.json").get("model_type")
    return _send("model", repo_id, kind, additions, TRAINING_STATE, private=private, revision=revision, token=token)


def upload_space(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
    include: Iterable[str] = (),
) -> str:
    """Upload a page's folder to a static Space, which is created if it does not exist.

    Files in the Space that the folder does not have are deleted: they are of an older page. Arguments, result and
    errors are those of `upload`, but for a folder that `space_files` accepts.
    """
    check_repo_id(repo_id)
    additions = [CommitOperationAdd(file.as_posix(), Path(folder) / file) for file in space_files(folder, include)]
    return _send("space", repo_id, "static", additions, ["*"], private=private, revision=revision, token=token)


def _send(
    repo_type: str,
    repo_id: str,
    kind: str | None,  # of model, or of Space
    additions: list[CommitOperationAdd],
    delete_patterns: Iterable[str],
    *,
    private: bool,
    revision: str | None,
    token: str | None,
) -> str:
    api = HfApi(token=token or True)  # True: an error where nobody is logged in
    repository: dict[str, Any] = {"repo_id": repo_id, "repo_type": repo_type}
    is_space = repo_type == "space"
    # None, not False, leaves the default to the user's or organisation's settings.
    api.create_repo(**repository, space_sdk=kind if is_space else None, private=private or None, exist_ok=True)
    there: Any = api.repo_info(**repository)
    if (other := there.sdk if is_space else (there.config or {}).get("model_type")) not in (None, kind):
        raise DataError(f"{repo_id}: the name is taken, by {other}")
    if private and not there.private:
        raise DataError(f"{repo_id}: it exists and is public; this does not make it private")
    if revision is not None and not revision.startswith("refs/"):
        api.create_branch(**repository, branch=revision, exist_ok=True)
    old = filter_repo_objects(api.list_repo_files(**repository, revision=revision), allow_patterns=[*delete_patterns])
    kept = {".gitattributes", *(addition.path_in_repo for addition in additions)}
    operations: list[Any] = [*(CommitOperationDelete(name) for name in old if name not in kept), *additions]
    try:
        commit = api.create_commit(
            **repository, operations=operations, revision=revision, commit_message="Upload the folder"
        )
    except RuntimeError as error:  # huggingface_hub's, of a file that did not arrive
        raise OSError(f"{error} ({error.__cause__})") from error
    return commit.commit_url


def push(
    model: PreTrainedModel,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
) -> str:
    """Upload a model with its tokenizer, record and card, which `model.push_to_hub` does not send.

    Sends the run's folder that the model was loaded from (`model.name_or_path`); raises a ValueError where there is
    none, or where the model has other weights. Further arguments, result and errors are those of `upload`.
    """
    folder = model.name_or_path
    if not folder or not Path(folder).is_dir():
        raise DataError(f"the model was not loaded from a run's folder (name_or_path is {folder!r})")
    own, saved = model.state_dict(), load_model(folder, dtype=model.dtype).state_dict()
    if own.keys() != saved.keys() or not all(torch.equal(own[name].cpu(), saved[name]) for name in saved):
        raise DataError(f"{folder}: the model's weights are not those of the folder; save the model there first")
    return upload(folder, repo_id, private=private, revision=revision, token=token)


def upload_run(trainer: Trainer) -> None:
    """Upload the folder of a finished run, if its arguments have `push_to_hub`; the main process does it.

    Unlike `Trainer.push_to_hub`, it checks that the folder is complete, and keeps the card. The folder holds a record,
    or the trainer has a `RecordCallback`.
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


@contextlib.contextmanager
def keep_token_out_of_files(arguments: TrainingArguments) -> Iterator[None]:
    """Keep the token in HF_TOKEN for the time of a run: Trainer pickles and uploads its arguments."""
    before = os.environ.get("HF_TOKEN")
    if arguments.hub_token:
        os.environ["HF_TOKEN"], arguments.hub_token = arguments.hub_token, None
    try:
        yield
    finally:
        os.environ.pop("HF_TOKEN", None)
        if before is not None:
            os.environ["HF_TOKEN"] = before
