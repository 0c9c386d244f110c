# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The recipes of the package, found by name before anything slow is imported."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from ..data.errors import DataError, named_errors


RECIPES = Path(__file__).parents[1] / "recipes"


def recipes_of(command: str) -> dict[str, str]:
    """Return what each recipe of the package for a command makes, from the recipe's first line."""
    beginning = f"# {command}: "
    lines = {file.stem: file.read_text(encoding="utf-8").partition("\n")[0] for file in sorted(RECIPES.glob("*.yaml"))}
    return {name: line.removeprefix(beginning) for name, line in lines.items() if line.startswith(beginning)}


def find_recipe(recipe: str, command: str) -> Path:
    """Find a recipe's file by its path, or a recipe of the package by its name."""
    file = Path(recipe)
    if file.suffix or (file.exists() and not file.is_dir()):  # a folder of data may have the name
        return file
    names = recipes_of(command)
    if recipe not in names:
        others = ", ".join(names) or f"none; a model is named by --model {recipe}"
        raise DataError(f"{recipe}: neither a file nor a recipe of {command}; those are {others}")
    return RECIPES / f"{recipe}.yaml"


class Loader(yaml.SafeLoader):
    """Reads plain words as YAML 1.2 does: 1e-4 is a number, `no` and 2020-01-02 are texts. A key stands once."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [str(key.value) for key, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise yaml.constructor.ConstructorError(None, None, f"{twice[0]} stands here twice", node.start_mark)
        return super().construct_mapping(node, deep)


for tag, pattern, first in (
    ("null", "(~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", "(true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", "[-+]?(0|[1-9][0-9]*)$", list("-+0123456789")),
    ("float", r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)


def read_file(file: Path) -> dict[str, Any]:
    """Read a recipe, or a file of a record: JSON or YAML."""
    with named_errors(str(file), "content"):
        text = file.read_text(encoding="utf-8")
        content = json.loads(text) if file.suffix == ".json" else yaml.load(text, Loader)
    if not isinstance(content, dict):
        raise DataError(f"{file}: holds no mapping of names to values")
    return content


def without_folders(value: Any) -> Any:
    """Replace each path with folders of this machine by its last part, anywhere in a record."""
    if isinstance(value, dict):
        return {without_folders(key): without_folders(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_folders(item) for item in value]
    if not isinstance(value, str) or not re.match(r"((~|\.\.)?[/\\]+|[A-Za-z]:[/\\])[^/\\]", value):
        return value
    return re.split(r"[/\\]", value.rstrip("/\\"))[-1]
