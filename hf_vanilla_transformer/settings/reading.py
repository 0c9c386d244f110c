# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Read the settings of a function: from a recipe, keywords or flags to dataclasses, each value typed once."""

import argparse
import logging
import os
import reprlib
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import HfArgumentParser

from ..data.errors import DataError, check_at_least, user_errors
from ..data.sources import is_in_memory, name_of
from .groups import DROPOUT_FIELDS, JsonMapping
from .recipes import find_recipe, read_file


# What needs torch or Trainer is imported where it is used: help and mistyped flags need neither.
if TYPE_CHECKING:
    from transformers import TrainingArguments

# Settings of a recipe for a new vocabulary or a new model, by the setting that brings an existing one.
OF_NEW_VOCABULARY = {"vocab_size", "target_vocab_size", "tokenizer_model"}
OF_NEW = {
    "model": {"config", "preset", "vocabularies", "tokenizer", *OF_NEW_VOCABULARY},
    "tokenizer": OF_NEW_VOCABULARY,
}
Settings = dict[str, Any]
logger = logging.getLogger(__name__)


class SettingsParser(HfArgumentParser):
    """Gives flags, keywords and a recipe's settings the types of their fields; it fills in no defaults.

    `required` are the settings without a default, `optional` those that are None by default.
    """

    def __init__(self, groups: Sequence[type], **options: Any):
        # Two kinds of data have settings of the same name: the last one's help counts.
        super().__init__(groups, allow_abbrev=False, conflict_handler="resolve", **options)
        self.flags = {action.dest: action for action in reversed(self._actions)}  # --no_x comes after --x
        self.defaults = {name: flag.default for name, flag in self.flags.items()}
        self.required = [action.dest for action in self._actions if action.required]
        self.optional = {name for name, default in self.defaults.items() if default is None} - {*self.required}
        for action in self._actions:
            if action.dest != "help":
                action.default, action.required = argparse.SUPPRESS, False
                action.option_strings = action.option_strings[:1]

    def error(self, message: str):
        raise DataError(message)

    def typed(self, name: str, value: Any) -> Any:
        """Give a value of a recipe or a keyword the type that it has as a flag."""
        if name not in self.flags:
            self.error(f"unrecognized arguments: --{name}")
        flag = self.flags[name]
        if (value is None and name in self.optional) or (name == "data" and is_in_memory(value)):
            return value
        if isinstance(value, list | tuple) and flag.nargs == "+":
            return [one for item in value for one in self.typed(name, item)]
        if isinstance(value, list | dict) and flag.type in (str, JsonMapping):
            return value  # transformers has settings that are a text, a list or a mapping
        if not isinstance(value, str | Real | os.PathLike):
            self.error(f"argument --{name}: {reprlib.repr(value)} is no value of this setting")
        text = os.fspath(value) if isinstance(value, os.PathLike) else value
        return getattr(self.parse_args([f"--{name}={text}"]), name)


def read_settings(
    groups: Sequence[type],
    recipe: str | Path | Settings | None,
    given: Mapping[str, Any],
    command: str = "",
) -> tuple[tuple[Any, ...], Settings]:
    """Read the settings of a function: keywords, else a recipe's settings, else the defaults.

    Args:
        groups: The dataclasses whose fields are the settings.
        recipe: The file of a recipe, or the name of one of the package, or its settings; None for none.
        given: The keywords; `data` can be a data set or DataFrame, which the record names by rows and columns.
        command: The command that a recipe must be for.

    Returns:
        An instance of each dataclass; the settings of recipe and keywords, for the run's record.
    """
    parser = SettingsParser(groups)
    file = None if recipe is None or isinstance(recipe, dict) else find_recipe(str(recipe), command)
    of_recipe = recipe if isinstance(recipe, dict) else read_file(file) if file else {}
    if of_recipe.get("push_to_hub") and "push_to_hub" not in given:
        parser.error("the recipe says push_to_hub: to send the result to the Hub, give push_to_hub yourself")
    given = {name: parser.typed(name, value) for name, value in given.items()}
    # Dropout rates are for --model, too.
    kept = {"config"} if set(of_recipe.get("config") or ()) <= DROPOUT_FIELDS else set()
    for source, names in OF_NEW.items():
        if given.get(source) and (left_out := [name for name in of_recipe if name in names - kept]):
            logger.warning(f"--{source}: brings its own, so the recipe's {', '.join(left_out)} are left out")
            of_recipe = {name: value for name, value in of_recipe.items() if name not in left_out}
        values = of_recipe | given
        for name in values.keys() & (names - {"config", "tokenizer"}):
            if values.get(source) and values[name] is not None:
                parser.error(f"--{name}: has no effect with --{source}, which has its own")
    for name, value in given.items():
        if isinstance(value, dict) and isinstance(of_recipe.get(name), dict):
            values[name] = {**of_recipe[name], **value}  # its fields override the recipe's
    recorded = {
        name: name_of(value) if is_in_memory(value) else value
        for name, value in values.items()
        if belongs_to_recipe(name)
    }
    values = {name: parser.typed(name, value) for name, value in values.items()}
    if missing := [f"--{name}" for name in parser.required if name not in values]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    if any(map(is_training, groups)):
        set_machine(values)
        values.setdefault("hub_strategy", "end")  # Trainer's pushes in mid-training send whatever lies in the folder
        values["output_dir"] = values.get("output_dir") or f"runs/{command if file is None else file.stem}"
    with user_errors():
        parsed = parser.parse_dict(values)
    for arguments in filter(lambda one: is_training(type(one)), parsed):
        check_training(arguments)
    return parsed, recorded


def belongs_to_recipe(name: str) -> bool:
    """Whether a setting is of the run, not of one machine or one call."""
    of_call = ("output_dir", "run_name", "resume_from_checkpoint", "use_cpu", "disable_tqdm", "push_to_hub")
    return name not in of_call and not name.startswith("hub_")


def is_training(group: type) -> bool:
    """Whether a dataclass derives from transformers' TrainingArguments, without an import of Trainer."""
    return any(base.__name__ == "TrainingArguments" for base in group.__mro__)


def set_machine(values: Settings) -> None:
    """Set `use_cpu` by this machine, and `bf16` by `precision`, unless the user set them."""
    import torch

    from .precision import choose_precision

    # bf16 on a machine without an accelerator has to be asked for in this way.
    values.setdefault("use_cpu", not torch.accelerator.is_available())
    if "precision" in values and "bf16" not in values:
        values["bf16"] = choose_precision(values["precision"], values["use_cpu"]) == "bfloat16"


def check_training(arguments: "TrainingArguments") -> None:
    """Refuse settings with which transformers would silently measure or train something else."""
    check_at_least(1, gradient_accumulation_steps=arguments.gradient_accumulation_steps)
    if not 0 <= arguments.label_smoothing_factor < 1:
        raise DataError(f"--label_smoothing_factor: at least 0 and below 1, not {arguments.label_smoothing_factor:g}")
    if arguments.hub_token:
        raise DataError("--hub_token: Trainer would write it into the run's files; set HF_TOKEN instead")
    if arguments.dataloader_drop_last:
        raise DataError("--dataloader_drop_last: also drops rows that are to be measured")
    if arguments.dataloader_persistent_workers:
        raise DataError("--dataloader_persistent_workers: a resumed run would draw other random numbers")
