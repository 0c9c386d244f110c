# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The recipes of the package, found by name before anything slow is imported."""

import difflib
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from .errors import DataError


# What a record has in place of this machine's folders, and the file that says which they are: it is never sent.
LOCAL, LOCAL_FILE = "LOCAL/", "local.json"
RECIPES = Path(__file__).parent / "recipes"
LONGEST_RECORD = 2**20  # bytes


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about a mistyped word; nothing where none is similar."""
    return "".join(f"; did you mean {name}?" for name in difflib.get_close_matches(word, known, n=1))


def escape_controls(text: str) -> str:
    """A text for a terminal: control characters, which could make it do something, as `\\x1b`."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


def commands_of_recipes() -> dict[str, str]:
    """The command of each recipe of the package, which the recipe's first line names."""
    texts = {file.stem: file.read_text(encoding="utf-8") for file in sorted(RECIPES.glob("*.yaml"))}
    return {name: text.removeprefix("# ").partition(":")[0] for name, text in texts.items()}


def find_recipe(recipe: str, command: str) -> Path:
    """The file of a recipe, a path or the name of one of the package, that is given to a command.

    Raises:
        ValueError: there is no such recipe, or it is for another command.
    """
    file = Path(recipe)
    if file.suffix or (file.exists() and not file.is_dir()):  # a folder of data may have the name
        return file
    commands = commands_of_recipes()
    other_program = command not in commands.values()
    names = [name for name, of in commands.items() if other_program or of == command]
    if recipe not in commands:
        similar = did_you_mean(recipe, names)
        raise DataError(f"{recipe}: no such file, and no recipe of the package{similar}; those are {', '.join(names)}")
    if recipe not in names:
        raise DataError(f"{recipe}: that recipe is for {commands[recipe]}")
    return RECIPES / f"{recipe}.yaml"


def read_record(file: Path) -> bytes:
    """A file of a record, which may be a stranger's; a DataError if it is longer than any record."""
    with open(file, "rb") as opened:
        content = opened.read(LONGEST_RECORD + 1)
    if len(content) > LONGEST_RECORD:
        raise DataError(f"{file}: more than {LONGEST_RECORD:,} bytes, which is no record of a run")
    return content


def read_yaml(file: Path, loader: str = "SafeLoader") -> Any:
    """What a recipe holds; a DataError if it has aliases, ten levels of which can take gigabytes."""
    text, kind = read_record(file).decode(), getattr(yaml, f"C{loader}", getattr(yaml, loader))
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, kind)):
        raise DataError(f"{file}: has an alias (*), which no recipe needs")
    return yaml.load(text, kind)


def without_local_paths(value: Any, places: dict[str, str]) -> Any:
    """A part of a record with `LOCAL/` and the last part in place of each absolute path; `places` gets the paths."""
    if isinstance(value, dict):
        return {without_local_paths(key, places): without_local_paths(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [without_local_paths(item, places) for item in value]
    if not isinstance(value, str) or not re.match(r"((~|\.\.)?[/\\]+|[A-Za-z]:[/\\])[^/\\]", value):
        return value
    last, number = re.split(r"[/\\]", value.rstrip("/\\"))[-1], 1
    while places.setdefault(name := LOCAL + (f"{number}/" if number > 1 else "") + last, value) != value:
        number += 1  # another path that ends alike
    return name


def with_local_paths(value: Any, folder: Path) -> Any:
    """A part of a record with this machine's paths, where the record's folder knows them."""
    places = {}
    with suppress(OSError, ValueError, RecursionError):
        places = json.loads(read_record(folder / LOCAL_FILE))

    def replaced(value: Any) -> Any:
        if isinstance(value, dict):
            return {replaced(key): replaced(item) for key, item in value.items()}
        if isinstance(value, list):
            return [replaced(item) for item in value]
        return str(places.get(value, value)) if isinstance(value, str) else value

    return replaced(value) if isinstance(places, dict) and places else value
