"""Helpers: the files of a run's folder that belong to its repository, and those that do not."""

from pathlib import Path

from accelerate.utils import merge_dicts

from hf_vanilla_transformer.hub.record import read_file, recipe_text, save_json
from hf_vanilla_transformer.hub.upload import repository_files


REPO = "kim/sample"
# Files in a run's folder that must not be uploaded.
UNLISTED = ["trainer_state.json", ".secret", "id_rsa", "my.csv"]
UNLISTED += ["checkpoint-2/config.json", "checkpoint-2/optimizer.pt"]


def contents(folder: Path) -> dict[str, bytes]:
    """What belongs to the folder's repository."""
    return {file.as_posix(): (folder / file).read_bytes() for file in repository_files(folder)}


def edit(file: Path, **changes) -> dict:
    """Change a record's file, keys of keys too where a change is a mapping; returns what the file has now."""
    content = merge_dicts(changes, read_file(file))
    if file.suffix == ".yaml":
        file.write_text(recipe_text(content), encoding="utf-8")
    else:
        save_json(file, content)
    return content
