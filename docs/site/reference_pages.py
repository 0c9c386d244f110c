"""The reference pages, from the code: public names, configuration fields, presets, recipes, settings of commands."""

import dataclasses
import importlib
import inspect
import re
from typing import Any

import yaml
from transformers import TrainingArguments

from hf_vanilla_transformer import VanillaTransformerConfig
from hf_vanilla_transformer.__main__ import COMMANDS
from hf_vanilla_transformer.commands import arguments
from hf_vanilla_transformer.configuration_vanilla_transformer import PRESETS
from hf_vanilla_transformer.settings.recipes import RECIPES, recipes_of


# Each has `__all__`: what is public is on these lists, and nothing else is.
PUBLIC_MODULES = {
    "hf_vanilla_transformer": "Models, training, answers",
    "hf_vanilla_transformer.data": "Data",
    "hf_vanilla_transformer.data.tokenizer": "Tokenizers",
    "hf_vanilla_transformer.training": "Parts of training",
    "hf_vanilla_transformer.inference": "Inference",
    "hf_vanilla_transformer.exports": "Exports",
    "hf_vanilla_transformer.hub": "The Hub",
    "hf_vanilla_transformer.evaluation.metrics": "Metrics",
}


def public_names() -> dict[str, list[str]]:
    """The public names of each public module; a name of several stands under the first."""
    seen: set[int] = set()
    found: dict[str, list[str]] = {}
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        found[module_name] = []
        for name in module.__all__:
            value = getattr(module, name)
            if id(value) not in seen:
                seen.add(id(value))
                found[module_name].append(name)
    return found


def reference_pages() -> dict[str, str]:
    """The text of each page, by its file's name."""
    names_of = public_names()
    pages = {
        f"reference/{module.rpartition('.')[2]}.rst": api_page(module, names) for module, names in names_of.items()
    }
    pages["reference/configuration.md"] = configuration_page()
    pages["reference/recipes.md"] = recipes_page()
    pages["reference/commands.md"] = commands_page()
    return pages


def api_page(module_name: str, names: list[str]) -> str:
    title = PUBLIC_MODULES[module_name]
    module = importlib.import_module(module_name)
    summary = inspect.getdoc(module).partition("\n\n")[0]
    lines = [title, "=" * len(title), "", f"``{module_name}``", "", summary, ""]
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value):
            lines += [f".. autoclass:: {module_name}.{name}", "   :members:", ""]
        elif callable(value):
            lines += [f".. autofunction:: {module_name}.{name}", ""]
        else:
            lines += [f".. py:data:: {module_name}.{name}", f"   :value: {value!r}", ""]
    return "\n".join(lines)


def cell(value: Any) -> str:
    return re.sub(r"\s+", " ", str(value)).replace("|", "\\|").replace("<", "&lt;")


def table(columns: list[str], rows: list[list[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines) + "\n"


def code(value: Any) -> str:
    return f"`{value!r}`" if value is not dataclasses.MISSING else ""


def field_texts() -> dict[str, str]:
    """What the configuration's docstring says of each field."""
    args = inspect.getdoc(VanillaTransformerConfig).partition("Args:\n")[2]
    found = {}
    for names, text in re.findall(r"^    ([a-z_0-9, ]+): (.*(?:\n {8}.*)*)", args, re.MULTILINE):
        for name in names.split(", "):
            found[name] = text
    return found


def configuration_page() -> str:
    texts = field_texts()
    fields = [one for one in dataclasses.fields(VanillaTransformerConfig) if one.name in texts]
    rows = [[f"`{one.name}`", code(one.default), texts[one.name]] for one in fields]
    names = sorted({name for preset in PRESETS.values() for name in preset})
    presets = [
        [f"`{name}`", *(code(preset[name]) if name in preset else "" for preset in PRESETS.values())] for name in names
    ]
    return (
        "# Configuration fields\n\nOf `VanillaTransformerConfig`; transformers' own fields, such as `num_labels`, are "
        "in its documentation.\n\n" + table(["field", "default", "meaning"], rows) + "\n## Presets\n\n"
        "`VanillaTransformerConfig.from_preset(NAME)` sets these fields; the others keep their defaults.\n\n"
        + table(["", *(f"`{name}`" for name in PRESETS)], presets)
    )


def recipes_page() -> str:
    parts = ["# Recipes\n\n`vanilla-transformer COMMAND RECIPE` takes one by name; flags override its settings.\n"]
    commands = {name: command for command in COMMANDS for name in recipes_of(command)}
    for name, command in commands.items():
        text = (RECIPES / f"{name}.yaml").read_text(encoding="utf-8")
        assert yaml.safe_load(text)
        parts.append(f"## {name}\n\nFor `{command}`.\n\n```yaml\n{text}```\n")
    return "\n".join(parts)


def settings_of(command: str) -> tuple[str, list[type]]:
    """A command's docstring, and the classes of its settings."""
    module = importlib.import_module(f"hf_vanilla_transformer.commands.{command.replace('-', '_')}")
    taken: list[tuple] = []

    def take(groups, *_, **__):
        taken.append(tuple(groups))
        raise StopIteration

    before = {
        name: getattr(module, name) for name in ("parse_arguments", "read_command_line") if hasattr(module, name)
    }
    try:
        for name in before:
            setattr(module, name, take)
        inspect.unwrap(module.main)([])
    except StopIteration:
        pass
    finally:
        for name, value in before.items():
            setattr(module, name, value)
    return module.__doc__, list(taken[0])


def commands_page() -> str:
    parts = [
        "# Commands and their settings\n\nA keyword of the function is the flag of the command, without the dashes.\n"
    ]
    for command, purpose in COMMANDS.items():
        description, groups = settings_of(command)
        parser = arguments.CommandLine(groups, description)
        of_transformers = {one.name for one in dataclasses.fields(TrainingArguments)}
        trains = any(issubclass(group, TrainingArguments) for group in groups)
        rows = []
        for action in parser._actions:
            if action.dest == "help" or (trains and action.dest in of_transformers):
                continue
            if action.option_strings[0].startswith("--no_"):
                continue
            help_text, _, default = (action.help or "").replace("%%", "%").partition(" (default: ")
            rows.append([f"`{action.option_strings[0]}`", f"`{default[:-1]}`" if default else "", help_text])
        parts.append(f"## {command}\n\n{purpose}\n\n" + table(["setting", "default", "meaning"], rows))
        if trains:
            parts.append("And every field of transformers' `TrainingArguments`.\n")
    return "\n".join(parts)
