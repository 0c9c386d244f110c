# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Upload the folder of a run or an export to a Hub repository."""

from glob import escape
from pathlib import Path

from huggingface_hub import HfApi

from ..data.errors import DataError
from ..inference.engine import EXPORT_FILE, TARGET_TOKENIZER
from ..inference.folder import load_model, load_tokenizers
from ..settings.tasks import FORMATS
from .model_card import load_model_card, make_model_card, rename_model_card, save_model_card
from .record import CARD_FILE, CURVES_FILE, METRICS_FILE, RECIPE_FILE, RUN_FILE, read_file


TOKENIZER = ("tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja")
TOKENIZER += ("vocab.*", "merges.txt", "*.spm", "*.model")
TOKENIZERS = (*TOKENIZER, *(f"{TARGET_TOKENIZER}/{name}" for name in TOKENIZER))
CODE = ("configuration_vanilla_transformer.py", "modeling_vanilla_transformer.py")
RECORD = (METRICS_FILE, RECIPE_FILE, RUN_FILE, CURVES_FILE)
# Only these are uploaded, by pattern: keys and data may lie beside them.
REQUIRED_IN_RUN = ("config.json", *CODE, "generation_config.json", "tokenizer_config.json", *RECORD)
RUN_FILES = (*REQUIRED_IN_RUN, CARD_FILE, "model*.safetensors", "model.safetensors.index.json", *TOKENIZERS)
REQUIRED_IN_EXPORT = (CARD_FILE, "config.json", EXPORT_FILE, "tokenizer.json")
FORMAT_FILES = tuple(name for form in FORMATS.values() for name in form.files)
EXPORT_FILES = (*REQUIRED_IN_EXPORT, RECIPE_FILE, *FORMAT_FILES, *TOKENIZERS)


def repository_files(folder: str | Path) -> list[Path]:
    """Check that the folder of a run or an export is complete and readable, and list the files to upload.

    Returns:
        The sorted files, relative to the folder. `README.md` is among them even if it is still to be made.

    Raises:
        ValueError: A file is missing or damaged; the message names it.
    """
    folder = Path(folder)
    is_export = (folder / EXPORT_FILE).is_file()
    required, patterns = (REQUIRED_IN_EXPORT, EXPORT_FILES) if is_export else (REQUIRED_IN_RUN, RUN_FILES)
    if missing := [name for name in required if not (folder / name).is_file()]:
        problem = f"not complete, {', '.join(missing)} missing" if folder.is_dir() else "no such folder"
        raise DataError(f"{folder}: {problem}")
    if not is_export:
        load_tokenizers(str(folder), load_model(str(folder)).config)
        make_model_card(folder)  # reads the record
    if (folder / CARD_FILE).is_file():
        load_model_card(folder)
    files = {file.relative_to(folder) for name in patterns for file in folder.glob(name) if file.is_file()}
    return sorted({*files, Path(CARD_FILE)})


def upload(folder: str | Path, repo_id: str, *, private: bool = False, revision: str | None = None) -> str:
    """Upload the folder of a run or an export, in one commit, to a Hub repository; create the repository if needed.

    Make a run's card if it is missing, and put the repository's name into it. After an interruption, call it again:
    large files that have arrived are not sent twice.

    Args:
        repo_id: `USER/NAME`.
        private: Make a private repository.
        revision: A branch, created from main if it does not exist; by default main.

    Returns:
        The address of the commit.

    Raises:
        ValueError: The folder is not complete, another kind of model has the name, or the repository is public
            although `private` is set.
        OSError, HTTPError: Nobody is logged in, or the server refuses or fails.
    """
    folder = Path(folder)
    files = repository_files(folder)
    api = HfApi(token=True)  # an error if nobody is logged in
    # None, not False, leaves the default to the user's or organisation's settings.
    repo_id = api.create_repo(repo_id, private=private or None, exist_ok=True).repo_id
    repository = api.model_info(repo_id)
    kind = read_file(folder / "config.json").get("model_type")
    if (other := (repository.config or {}).get("model_type")) not in (None, kind):
        raise DataError(f"{repo_id}: the name is taken, by {other}")
    if private and not repository.private:
        raise DataError(f"{repo_id}: it exists and is public; this does not make it private")
    if not (folder / EXPORT_FILE).is_file():
        (rename_model_card if (folder / CARD_FILE).is_file() else save_model_card)(folder, repo_id)
    if revision is not None:
        api.create_branch(repo_id, branch=revision, exist_ok=True)
    commit = api.upload_folder(
        repo_id=repo_id,
        folder_path=folder,
        allow_patterns=[escape(file.as_posix()) for file in files],
        revision=revision,
        commit_message="Upload the folder",
    )
    return commit.commit_url
