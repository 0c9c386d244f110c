# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A run's folder as a Hub repository, a page's as a Space: their files, whether they are whole, the upload."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import yaml
from huggingface_hub import HfApi, RepoCard, constants, get_token
from huggingface_hub.errors import HfHubHTTPError, HTTPError
from huggingface_hub.utils import filter_repo_objects, validate_repo_id
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from transformers import PreTrainedModel, Trainer, TrainingArguments
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from ..loading import TARGET_TOKENIZER, load_config
from .model_card import CARD_FILE, load_model_card, make_model_card, rename_model_card, save_model_card
from .record import CURVES_FILE, METRICS_FILE, RECIPE_FILE, RUN_FILE


# Besides weights, tokenizer and card, which have more than one form.
REQUIRED_FILES = (
    "config.json",
    "configuration_vanilla_transformer.py",
    "modeling_vanilla_transformer.py",
    "generation_config.json",
    METRICS_FILE,
    RECIPE_FILE,
    RUN_FILE,
    CURVES_FILE,
)
# What only a resumed run needs. `training_args.bin` is a pickle that also describes the machine.
TRAINING_STATE = (
    "training_args.bin",
    "trainer_state.json",
    "optimizer*",
    "scheduler.pt",
    "scaler.pt",
    "rng_state*.pth",
)
_NOWHERE = (*TRAINING_STATE, "checkpoint-*", "__pycache__/*", ".*")
NOT_UPLOADED = (*_NOWHERE, *(f"*/{pattern}" for pattern in _NOWHERE))


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
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    missing = [file for file in REQUIRED_FILES if not (folder / file).is_file()]
    config = None if "config.json" in missing else load_config(str(folder))
    tokenizers = [""] if config is None or config.decoder_vocab_size is None else ["", TARGET_TOKENIZER]
    for tokenizer in tokenizers:
        if not (folder / tokenizer / "tokenizer_config.json").is_file():
            missing.append(str(Path(tokenizer, "tokenizer_config.json")))
        # A Unigram model may be left in its own file.
        if not (folder / tokenizer / "tokenizer.json").is_file() and not any((folder / tokenizer).glob("*.model")):
            missing.append(str(Path(tokenizer, "tokenizer.json")))
    weights = _weight_files(folder)
    missing += [file for file in weights if not (folder / file).is_file()]
    if missing:
        raise ValueError(f"{folder}: not complete, it lacks {', '.join(missing)}")
    for file in weights:
        try:
            with safe_open(folder / file, "pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{folder / file}: damaged ({error})") from error
    if not hasattr(config, "auto_map"):
        raise ValueError(f"{folder / 'config.json'}: without auto_map, the folder's code would not be found")
    if has_card(folder):
        load_model_card(folder)
    else:
        make_model_card(folder)
    files = {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()} | {Path(CARD_FILE)}
    files = sorted(filter_repo_objects(files, ignore_patterns=list(NOT_UPLOADED)))  # as `upload_folder` does
    for file in files:
        if file.suffix == ".json":
            try:
                json.loads((folder / file).read_text(encoding="utf-8"))
            except ValueError as error:
                raise ValueError(f"{folder / file}: damaged ({error})") from error
    return files


def has_card(folder: str | Path) -> bool:
    """Whether a run's folder has a card, other than the draft that Trainer writes when it pushes."""
    file = Path(folder, CARD_FILE)
    return file.is_file() and "\n- generated_from_trainer\n" not in file.read_text(encoding="utf-8")


def _weight_files(folder: Path) -> list[str]:
    """The names of the files that hold, or should hold, the weights."""
    index = folder / SAFE_WEIGHTS_INDEX_NAME
    if not index.is_file():
        return [SAFE_WEIGHTS_NAME]
    try:
        return sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{index}: cannot be read ({error})") from error


def check_repo_id(repo_id: str) -> None:
    """Check the name of a repository, `USER/NAME`.

    Raises:
        ValueError: it is malformed.
    """
    if repo_id.count("/") != 1:
        raise ValueError(f"repo_id: not of the form USER/NAME: {repo_id!r}")
    try:
        validate_repo_id(repo_id)
    except ValueError as error:
        raise ValueError(f"repo_id: {error}") from error


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
        ValueError: the folder is not complete, the name is malformed or taken by another kind of model, nobody is
            logged in, or the repository is public although a private one is asked for.
        OSError: the server refuses, fails or cannot be reached; or the card cannot be written.
    """
    check_repo_id(repo_id)
    repository_files(folder)
    api = _logged_in(token)
    with _one_line_errors(repo_id):
        # None, not False, leaves the default to the user's or organisation's settings.
        api.create_repo(repo_id, private=private or None, exist_ok=True)
        there = api.model_info(repo_id)
        _check_repository(repo_id, there.private, (there.config or {}).get("model_type"), private)
        if revision is not None and not revision.startswith("refs/"):
            api.create_branch(repo_id, branch=revision, exist_ok=True)
    if not has_card(folder):
        save_model_card(folder, repo_id)
    rename_model_card(folder, repo_id)
    with _one_line_errors(repo_id):
        commit = api.upload_folder(
            repo_id=repo_id,
            folder_path=folder,
            revision=revision,
            commit_message="Upload the run's folder",
            ignore_patterns=list(NOT_UPLOADED),
            # Trainer's own pushes upload some.
            delete_patterns=list(TRAINING_STATE),
        )
    return commit.commit_url


def _logged_in(token: str | None) -> HfApi:
    token = token or get_token()
    if token is None:
        raise ValueError("not logged in to the Hub: run `hf auth login`, or set HF_TOKEN")
    return HfApi(token=token)


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
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    try:
        sdk = RepoCard.load(folder / CARD_FILE).data.get("sdk") if (folder / CARD_FILE).is_file() else None
    except (ValueError, TypeError, yaml.YAMLError) as error:
        raise ValueError(f"{folder / CARD_FILE}: its metadata cannot be read ({error})") from error
    if sdk != "static" or not (folder / "index.html").is_file():
        raise ValueError(f"{folder}: no page (a README.md with `sdk: static`, and index.html); `page` makes one")
    files = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    return sorted(filter_repo_objects(files, ignore_patterns=list(NOT_UPLOADED)))


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
        ValueError: the folder is no page, the name is malformed or taken by a Space with a server, nobody is logged
            in, or the Space is public although a private one is asked for.
        OSError: as in `upload`.
    """
    check_repo_id(repo_id)
    files = space_files(folder)
    api = _logged_in(token)
    space: dict[str, Any] = {"repo_id": repo_id, "repo_type": "space"}
    with _one_line_errors(repo_id):
        api.create_repo(**space, space_sdk="static", private=private or None, exist_ok=True)
        there = api.space_info(repo_id)
        if there.sdk not in (None, "static"):
            raise ValueError(f"{repo_id}: the name is taken, by a Space with {there.sdk}")
        if private and not there.private:
            raise ValueError(f"{repo_id}: the Space exists and is public; this does not make it private")
        if revision is not None and not revision.startswith("refs/"):
            api.create_branch(**space, branch=revision, exist_ok=True)
        commit = api.upload_folder(
            **space,
            folder_path=folder,
            revision=revision,
            commit_message="Upload the page",
            allow_patterns=[file.as_posix() for file in files],
            delete_patterns="*",
        )
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
        ValueError: the model has no such folder, or other weights than the folder; or as in `upload`.
        OSError: as in `upload`.
    """
    folder = Path(model.name_or_path)
    if not model.name_or_path or not folder.is_dir():
        raise ValueError(f"the model was not loaded from a run's folder (name_or_path is {model.name_or_path!r})")
    repository_files(folder)
    if not _has_weights_of(model, folder):
        raise ValueError(f"{folder}: the model's weights are not those of the folder; save the model there first")
    return upload(folder, repo_id, private=private, revision=revision, token=token)


def _has_weights_of(model: PreTrainedModel, folder: Path) -> bool:
    """Whether a folder holds exactly the model's weights, in the model's precision or a lower one."""
    saved = {name: weight for file in _weight_files(folder) for name, weight in load_file(folder / file).items()}
    own, tied = model.state_dict(), model.all_tied_weights_keys.keys()
    # Compared in float32, which holds every half-precision number exactly.
    return own.keys() - tied == saved.keys() - tied and all(
        torch.equal(own[name].cpu().float(), weight.float()) for name, weight in saved.items()
    )


def upload_run(trainer: Trainer) -> None:
    """Upload the folder of a finished run, if its arguments have `push_to_hub`; the main process does it.

    Unlike `Trainer.push_to_hub`, it checks that the folder is complete, and keeps the card.

    Args:
        trainer: The run's trainer; its folder holds the record, or it has a `RecordCallback`.

    Raises:
        ValueError: as in `upload`.
        OSError: as in `upload`.
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


def _check_repository(repo_id: str, is_private: bool | None, model_type: str | None, private: bool) -> None:
    """Check that a run can be uploaded to an existing repository.

    Raises:
        ValueError: it holds another type of model, or is public where a private one is asked for.
    """
    if model_type not in (None, "vanilla_transformer"):
        raise ValueError(f"{repo_id}: the name is taken, by a model of type {model_type!r}")
    if private and not is_private:
        raise ValueError(f"{repo_id}: the repository exists and is public; this does not make it private")


@contextmanager
def _one_line_errors(repo_id: str) -> Iterator[None]:
    """Turn errors of `huggingface_hub` into one line.

    Raises:
        OSError: in place of what was raised.
    """
    try:
        yield
    # Failed transfers are RuntimeErrors with a cause; malformed answers are KeyErrors and ValueErrors.
    except (HTTPError, RuntimeError, KeyError, json.JSONDecodeError) as error:
        cause = error
        while cause.__cause__ is not None and not isinstance(cause, HTTPError):
            cause = cause.__cause__
        raise OSError(f"{repo_id}: {_reason(cause)}") from error


_REASONS = {
    401: "the Hub does not accept the token: run `hf auth login`, or set HF_TOKEN",
    403: "the token gives no right to write there",
    404: "no such repository or branch, or the token gives no right to see it",
    409: "the Hub reports a conflict: the name is taken, or somebody else is writing there",
}


def _reason(error: BaseException) -> str:
    again = "the same command completes the upload"
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        said = error.server_message or error.response.reason_phrase
        reason = _REASONS.get(status, f"the Hub failed; {again}" if status >= 500 else "the Hub refused")
        return f"{reason} ({status}: {said})"
    if isinstance(error, HTTPError):
        return f"no connection to {constants.ENDPOINT}, or it broke off; {again} ({type(error).__name__}: {error})"
    if isinstance(error, RuntimeError):
        return f"the upload broke off; {again} ({error})"
    return f"the Hub's answer is malformed ({type(error).__name__}: {error})"
