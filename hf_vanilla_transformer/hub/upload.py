# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Upload a run's folder to a Hub repository, and a page's folder to a Space."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi
from huggingface_hub.utils import validate_repo_id
from transformers import PreTrainedModel, Trainer, TrainingArguments

from ..inference.folder import TARGET_TOKENIZER, load_model, load_tokenizer
from .model_card import CARD_FILE, has_card, load_model_card, rename_model_card, save_model_card
from .record import REQUIRED_FILES, RUN_FILES


# A page's folder on the Hub: nothing else is sent.
PAGE_FILES = (
    *(CARD_FILE, "index.html", "*.js", "*.css", "words.json"),
    *("model/*.onnx", "model/*.json", f"model/{TARGET_TOKENIZER}/*.json"),
    *("runtime/*.mjs", "runtime/*.wasm", "runtime/LICENSE*", "runtime/*.txt"),
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


def repository_files(folder: str | Path) -> list[Path]:
    """Check that a run's folder is complete, and list the files that are uploaded.

    Args:
        folder: A run's folder.

    Returns:
        The sorted files, relative to the folder; with `README.md`, also where it has yet to be made.

    Raises:
        ValueError: there is no such folder, or files are missing or damaged; the message names them.
    """
    folder = Path(folder)
    files = {*_files(folder, RUN_FILES), Path(CARD_FILE)}
    if missing := [name for name in REQUIRED_FILES if Path(name) not in files]:
        raise ValueError(f"{folder}: not complete, it lacks {', '.join(missing)}")
    config = load_model(str(folder)).config
    if not hasattr(config, "auto_map"):
        raise ValueError(f"{folder / 'config.json'}: without auto_map, the folder's code would not be found")
    for place in [""] if config.decoder_vocab_size is None else ["", TARGET_TOKENIZER]:
        load_tokenizer(str(folder), place)
    if has_card(folder):
        load_model_card(folder)
    return sorted(files)


def space_files(folder: str | Path) -> list[Path]:
    """Check that a folder is a static Space, such as `vanilla-transformer page` makes, and list its files.

    Args:
        folder: A page's folder.

    Returns:
        The sorted files that are uploaded, relative to the folder.

    Raises:
        ValueError: there is no such folder, or it is no static Space.
    """
    folder = Path(folder)
    files = _files(folder, PAGE_FILES)
    card = folder / CARD_FILE
    if Path("index.html") not in files or not card.is_file() or "\nsdk: static\n" not in card.read_text("utf-8"):
        raise ValueError(f"{folder}: no page (a README.md with `sdk: static`, and index.html); `page` makes one")
    return files


def _files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """The sorted files of a folder that match a pattern, relative to the folder."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    found = {file.relative_to(folder) for pattern in patterns for file in folder.glob(pattern) if file.is_file()}
    return sorted(found)


def check_repo_id(repo_id: str) -> None:
    """Check the name of a repository.

    Raises:
        ValueError: it is not of the form `USER/NAME`.
    """
    if repo_id.count("/") != 1:
        raise ValueError(f"repo_id: not of the form USER/NAME: {repo_id!r}")
    validate_repo_id(repo_id)


def upload(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
) -> str:
    """Upload a run's folder to a Hub repository, which is created if it does not exist.

    The card is made where it is missing or Trainer's draft, and gets the repository's name. The upload is one commit;
    after an interruption, the next upload does not send files again that have arrived.

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
        OSError: nobody is logged in, a file did not arrive, or the card cannot be written.
        HTTPError: the server refuses, fails or cannot be reached.
    """
    check_repo_id(repo_id)
    files = repository_files(folder)
    if has_card(folder):
        rename_model_card(folder, repo_id)
    else:
        save_model_card(folder, repo_id)
    options: dict[str, Any] = {"private": private, "revision": revision, "token": token}
    return _send(folder, files, repo_id, "model", delete_patterns=list(TRAINING_STATE), **options)


def upload_space(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
) -> str:
    """Upload a page's folder to a static Space, which is created if it does not exist.

    Files in the Space that the folder does not have are deleted: they are of an older page.

    Args:
        folder: A folder that `space_files` accepts.
        repo_id, private, revision, token: As in `upload`.

    Returns:
        The address of the commit.

    Raises:
        As `upload`; and ValueError where the folder is no page.
    """
    check_repo_id(repo_id)
    options: dict[str, Any] = {"private": private, "revision": revision, "token": token}
    return _send(folder, space_files(folder), repo_id, "space", delete_patterns="*", **options)


def _send(
    folder: str | Path,
    files: list[Path],
    repo_id: str,
    repo_type: str,
    *,
    delete_patterns: str | list[str],
    private: bool,
    revision: str | None,
    token: str | None,
) -> str:
    api = HfApi(token=token or True)  # True: an error where nobody is logged in
    repository: dict[str, Any] = {"repo_id": repo_id, "repo_type": repo_type}
    sdk = "static" if repo_type == "space" else None
    # None, not False, leaves the default to the user's or organisation's settings.
    api.create_repo(**repository, space_sdk=sdk, private=private or None, exist_ok=True)
    there: Any = api.repo_info(**repository)
    kind = there.sdk if sdk else (there.config or {}).get("model_type")
    if kind not in (None, sdk or "vanilla_transformer"):
        raise ValueError(f"{repo_id}: the name is taken, by {kind}")
    if private and not there.private:
        raise ValueError(f"{repo_id}: it exists and is public; this does not make it private")
    if revision is not None and not revision.startswith("refs/"):
        api.create_branch(**repository, branch=revision, exist_ok=True)
    try:
        commit = api.upload_folder(
            **repository,
            folder_path=folder,
            revision=revision,
            commit_message="Upload the page" if sdk else "Upload the run's folder",
            allow_patterns=[glob.escape(file.as_posix()) for file in files],
            delete_patterns=delete_patterns,
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

    Sends the run's folder that the model was loaded from (`model.name_or_path`), so the model must still have the
    weights that are saved there.

    Args:
        model: A model of this package.
        repo_id, private, revision, token: As in `upload`.

    Returns:
        The address of the commit.

    Raises:
        As `upload`; and ValueError where the model has no such folder, or other weights than the folder.
    """
    folder = model.name_or_path
    if not folder or not Path(folder).is_dir():
        raise ValueError(f"the model was not loaded from a run's folder (name_or_path is {folder!r})")
    own, saved = model.state_dict(), load_model(folder, dtype=model.dtype).state_dict()
    if own.keys() != saved.keys() or not all(torch.equal(own[name].cpu(), saved[name]) for name in saved):
        raise ValueError(f"{folder}: the model's weights are not those of the folder; save the model there first")
    return upload(folder, repo_id, private=private, revision=revision, token=token)


def upload_run(trainer: Trainer) -> None:
    """Upload the folder of a finished run, if its arguments have `push_to_hub`; the main process does it.

    Unlike `Trainer.push_to_hub`, it checks that the folder is complete, and keeps the card.

    Args:
        trainer: The run's trainer; its folder holds the record, or it has a `RecordCallback`.
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


def keep_token_out_of_files(arguments: TrainingArguments) -> None:
    """Move the token from the arguments, which Trainer pickles and uploads, to the environment variable HF_TOKEN."""
    if arguments.hub_token:
        os.environ["HF_TOKEN"], arguments.hub_token = arguments.hub_token, None
