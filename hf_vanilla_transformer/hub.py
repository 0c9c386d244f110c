# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A run's folder as a repository on the Hugging Face Hub: what belongs to it, whether it is all there, the upload."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from datasets import DatasetDict
from huggingface_hub import HfApi, constants, get_token
from huggingface_hub.errors import HfHubHTTPError, HTTPError
from huggingface_hub.utils import filter_repo_objects, validate_repo_id
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from .arguments import changed_arguments
from .checkpoints import load_config
from .model_card import CARD_FILE, load_model_card, make_model_card, rename_model_card, save_model_card
from .record import (
    CURVES_FILE,
    METRICS_FILE,
    RECIPE_FILE,
    RUN_FILE,
    TARGET_TOKENIZER,
    describe_splits,
    metrics_of_log,
    save_record,
)


# Besides the weights, the tokenizer and the card, which have more than one form.
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
# What goes on with training needs, and nobody else. `training_args.bin` is a pickle, and tells of the machine.
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
    """See that a folder has all parts of a repository, and find the files that are uploaded.

    Args:
        folder: A run's folder.

    Returns:
        The files, relative to the folder, in order; `README.md` among them even if it is still to be made.

    Raises:
        ValueError: there is no such folder, it lacks parts, or a part is damaged; the message names them.
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
    """Tell whether a folder has a card, and not only the draft that Trainer writes when it pushes.

    Args:
        folder: A run's folder.

    Returns:
        False where the card is still to be made.
    """
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
    """See that a repository can have this name.

    Args:
        repo_id: `USER/NAME`.

    Raises:
        ValueError: it cannot.
    """
    if repo_id.count("/") != 1:
        raise ValueError(f"--repo_id: not of the form USER/NAME: {repo_id!r}")
    try:
        validate_repo_id(repo_id)
    except ValueError as error:
        raise ValueError(f"--repo_id: {error}") from error


def upload(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
) -> str:
    """Upload a run's folder to a repository of the Hub, which is made if it is not there.

    The folder's card is made if it is missing or Trainer's draft, and comes to name the repository. An upload that was
    interrupted is completed by the next: files that are there already are not sent again, and there is one commit, at
    the end.

    Args:
        folder: A folder that `repository_files` finds complete.
        repo_id: `USER/NAME`.
        private: Make a private repository.
        revision: A branch, made from the main one if it is not there; by default the main one.
        token: The user's token; by default the one of `hf auth login` or `HF_TOKEN`.

    Returns:
        The address of the commit.

    Raises:
        ValueError: the folder is not complete, the name is malformed or taken by another kind of model, nobody is
            logged in, or the repository is public although a private one is asked for.
        OSError: the server refuses, fails, or is gone; or the card cannot be written.
    """
    check_repo_id(repo_id)
    repository_files(folder)
    token = token or get_token()
    if token is None:
        raise ValueError("not logged in to the Hub: run `hf auth login`, or set HF_TOKEN")
    api = HfApi(token=token)
    with _one_line_errors(repo_id):
        # True and None: a user's or organisation's own default is not overruled.
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
            # Trainer's own pushes bring some.
            delete_patterns=list(TRAINING_STATE),
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
    """Upload the folder of a run that is finished, where its arguments' `push_to_hub` asks for it.

    In place of `Trainer.push_to_hub`, which does not see that all is there, nor end with one line. Of several
    processes the main one uploads.

    Args:
        trainer: The run's. Its folder holds the record by now, or it has a `RecordCallback`.

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


class RecordCallback(TrainerCallback):
    """Leaves the record and the card of a run of your own `Trainer` in its folder, which is what it pushes.

    At the end of training, and before a push that comes later, the folder gets the model, the tokenizer,
    `metrics.json` (what the Trainer logged), `recipe.yaml` (its arguments), `run.json`, `curves.png`,
    `generation_config.json` and the card. `Trainer.push_to_hub` puts a draft of its own in place of the card;
    `CheckedTrainer.push_to_hub` and, of any Trainer's run, `upload_run` do not.

    Args:
        source: What the card calls the data.
        data: The splits, whose rows and checksums go into the record.

    Raises:
        ImportError: matplotlib is not installed, which the extra `train` brings.
    """

    def __init__(self, source: str, data: DatasetDict | None = None):
        import matplotlib  # noqa: F401  # what is missing is told before the training

        self.data = {"source": source, **({} if data is None else describe_splits(data))}
        self.resumed_from = self.began_as = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: PreTrainedModel, **kwargs
    ) -> None:
        self.resumed_from = f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}" if state.global_step else None
        self.began_as = model.name_or_path or None

    def on_train_end(
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
            resumed_from=self.resumed_from,
            began_as=self.began_as,
            data=self.data,
            own_trainer=True,
        )
        save_model_card(args.output_dir)
        model.name_or_path = args.output_dir  # the folder that `push` uploads

    def on_push_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        if not any("train_runtime" in entry for entry in state.log_history):
            return  # in mid-training
        file = Path(args.output_dir, METRICS_FILE)
        # What was measured since; else the card stays as it is, which may have been edited.
        if not file.is_file() or json.loads(file.read_text(encoding="utf-8")) != metrics_of_log(args, state):
            self.on_train_end(args, state, control, **kwargs)


def keep_token_out_of_files(arguments: TrainingArguments) -> None:
    """Move a token to this process's environment from the arguments, which Trainer pickles and uploads.

    Args:
        arguments: Changed in place.
    """
    if arguments.hub_token:
        os.environ["HF_TOKEN"], arguments.hub_token = arguments.hub_token, None


def _check_repository(repo_id: str, is_private: bool | None, model_type: str | None, private: bool) -> None:
    """See that the repository may be written to.

    Raises:
        ValueError: it may not.
    """
    if model_type not in (None, "vanilla_transformer"):
        raise ValueError(f"{repo_id}: the name is taken, by a model of type {model_type!r}")
    if private and not is_private:
        raise ValueError(f"{repo_id}: the repository is there already, and public; --private does not change that")


@contextmanager
def _one_line_errors(repo_id: str) -> Iterator[None]:
    """Say in a line what went wrong between here and the Hub.

    Raises:
        OSError: in place of what `huggingface_hub` raised.
    """
    try:
        yield
    # Failed transfers are RuntimeErrors around the reason; answers that make no sense are KeyErrors and ValueErrors.
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
    return f"the Hub's answer makes no sense ({type(error).__name__}: {error})"
