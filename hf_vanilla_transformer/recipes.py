# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The recipes of the package, found by name before anything slow is imported."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from .errors import DataError


RECIPES = Path(__file__).parent / "recipes"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the known word that is most like a mistyped one, if one is."""
    return "".join(f"; did you mean {name}?" for name in difflib.get_close_matches(word, known, n=1))


def commands_of_recipes() -> dict[str, str]:
    """Return the command of each recipe of the package, from the recipe's first line."""
    texts = {file.stem: file.read_text(encoding="utf-8") for file in sorted(RECIPES.glob("*.yaml"))}
    return {name: text.removeprefix("# ").partition(":")[0] for name, text in texts.items()}


def find_recipe(recipe: str, command: str) -> Path:
    """Find the file of a recipe by its path or, for one of the package, its name.

    Raises:
        DataError: there is no such recipe, or it is for another command.
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


class Loader(yaml.SafeLoader):
    """Reads 1e-4 as a number, as YAML 1.2 does."""


NUMBER = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
Loader.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+0123456789"))


def read_yaml(file: Path, loader: Any = Loader) -> Any:
    """Read a YAML file."""
    return yaml.load(file.read_text(encoding="utf-8"), loader)


def without_folders(value: Any) -> Any:
    """Replace each path that names folders of this machine by its last part, anywhere in a record."""
    if isinstance(value, dict):
        return {without_folders(key): without_folders(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_folders(item) for item in value]
    if not isinstance(value, str) or not re.match(r"((~|\.\.)?[/\\]+|[A-Za-z]:[/\\])[^/\\]", value):
        return value
    return re.split(r"[/\\]", value.rstrip("/\\"))[-1]
