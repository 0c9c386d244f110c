# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""From a recipe and keywords, or flags, to the checked settings of a function."""

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np
import yaml
from transformers import HfArgumentParser
from transformers.hf_argparser import string_to_bool

from .data.in_memory import is_in_memory, name_of
from .errors import DataError
from .recipes import did_you_mean, find_recipe, read_yaml
from .settings import JsonMapping, check_at_least


# What needs torch or Trainer is imported where it is used: help and mistyped flags need neither.
if TYPE_CHECKING:
    from transformers import TrainingArguments

# Settings that belong to one machine or one call.
NOT_IN_RECIPE = {
    "output_dir",
    "run_name",
    "logging_dir",
    "resume_from_checkpoint",
    "use_cpu",
    "disable_tqdm",
    "push_to_hub",
    "hub_token",
    "hub_model_id",
    "hub_private_repo",
    "hub_revision",
    "hub_strategy",
}
HINT_OF_DATA = ": give a file, a folder, a name of the Hub, a Dataset or DatasetDict of `datasets`, or a DataFrame"
Settings = dict[str, Any]


class SettingsError(DataError):
    """A setting that does not exist, is missing, or has a value that it cannot have."""


class SettingsParser(HfArgumentParser):
    """Types and checks settings; it fills in no defaults.

    Attributes:
        required: The names of the settings that have no default.
        optional: The names of those that may be None.
    """

    def __init__(self, groups: Sequence[type], **options: Any):
        super().__init__(groups, allow_abbrev=False, **options)
        self.groups = groups
        self.required = [action.dest for action in self._actions if action.required]
        hints = {name: hint for group in groups for name, hint in get_type_hints(group).items()}
        self.texts = {name for name, hint in hints.items() if hint in (str, str | None)}
        self.optional = {name for name, hint in hints.items() if type(None) in get_args(hint)} - {*self.required}
        for action in self._actions:
            if action.type is string_to_bool and action.nargs is None:  # of `bool | None`
                action.nargs, action.const = "?", True
            if action.dest != "help":
                action.default, action.required = argparse.SUPPRESS, False
                action.option_strings = action.option_strings[:1]

    def error(self, message: str):
        if unknown := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            message += did_you_mean(unknown[1], [name for one in self._actions for name in one.option_strings[:1]])
        raise SettingsError(message)

    def typed(self, settings: Mapping[str, Any]) -> Settings:
        """The settings with the types that flags have; None stays."""
        # Lists and mappings are written otherwise as flags: they are taken as they are.
        mappings = {one.dest for one in self._actions if one.type is JsonMapping}
        structured = mappings | {one.dest for one in self._actions if one.nargs or one.type in (None, str)}
        known, kept, words = {one.dest for one in self._actions}, {}, []
        for name, value in settings.items():
            if name not in known:
                self.error(f"unrecognized arguments: --{name}")
            value = os.fspath(value) if isinstance(value, os.PathLike) else value
            value = value.item() if isinstance(value, np.generic) else value
            value = value.value if isinstance(value, Enum) else list(value) if isinstance(value, tuple) else value
            kinds = (str, int, float, type(None)) if name in self.texts else (str, int, float, list, dict, type(None))
            if not isinstance(value, kinds):
                hint = HINT_OF_DATA if name == "data" else ""
                self.error(f"argument --{name}: a {type(value).__name__} is no value of this setting{hint}")
            if isinstance(value, list) and name in mappings:
                self.error(f"argument --{name}: a list is no mapping")
            if value is None or (isinstance(value, list | dict) and name in structured):
                kept[name] = value
            else:
                words.append(f"--{name}={value}")
        found = vars(self.parse_args(words))
        return {name: kept[name] if name in kept else found[name] for name in settings}


def read_settings(
    groups: Sequence[type],
    recipe: str | Path | None,
    given: Mapping[str, Any],
    command: str = "",
    adapt: Callable[[Settings, Settings], Settings] | None = None,
) -> tuple[tuple[Any, ...], Settings]:
    """Read the settings of a function: those that are given, else those of a recipe, else the defaults.

    Args:
        groups: The dataclasses whose fields are the settings.
        recipe: The file of a recipe, or the name of one of the package; None for none.
        given: The keywords. Data can be a data set or DataFrame, which the record names by fingerprint.
        command: The command that a recipe must be for.
        adapt: Takes the recipe's settings and those that are given, and returns what counts as the recipe's.

    Returns:
        One instance of each dataclass; and the settings that recipe and keywords give, for the run's record.

    Raises:
        SettingsError: see there.
    """
    parser = SettingsParser(groups)
    if is_in_memory(recipe):
        parser.error(f"the recipe is a {type(recipe).__name__}: give data as data=")
    file = None if recipe is None else find_recipe(str(recipe), command)
    of_recipe = {} if file is None else read_recipe(parser, file)
    if empty := [name for name, value in of_recipe.items() if value is None and name not in parser.optional]:
        parser.error(f"argument --{empty[0]}: the recipe gives no value")
    if of_recipe.get("push_to_hub") and "push_to_hub" not in given:
        parser.error("the recipe says push_to_hub: to send the result to the Hub, give push_to_hub yourself")
    given = {name: value for name, value in given.items() if name != "output_dir" or value is not None}
    objects = {name: value for name, value in given.items() if is_in_memory(value)}
    given = parser.typed(given | {name: name_of(value) for name, value in objects.items()})
    if empty := [name for name, value in given.items() if value is None and name not in parser.optional]:
        parser.error(f"argument --{empty[0]}: None is no value of this setting")
    if adapt is not None:
        of_recipe = adapt(of_recipe, given)
    for name, value in given.items():
        if isinstance(value, dict) and isinstance(of_recipe.get(name), dict):
            given[name] = {**of_recipe[name], **value}  # its fields override the recipe's
    settings = {**of_recipe, **given}
    values = {**parser.typed(of_recipe), **given}
    if missing := [f"--{name}" for name in parser.required if name not in values]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    if any(map(is_training, groups)):
        import torch

        # bf16 on a machine without an accelerator has to be asked for in this way.
        values.setdefault("use_cpu", not torch.accelerator.is_available())
        _set_bf16(parser, values)
        values.setdefault("output_dir", f"runs/{command if file is None else file.stem}")
    try:
        parsed = parser.parse_dict({name: _expand_home(value) for name, value in values.items()})
        for arguments in parsed:
            vars(arguments).update({name: value for name, value in objects.items() if hasattr(arguments, name)})
        for arguments in filter(lambda arguments: is_training(type(arguments)), parsed):
            _check_training(arguments)
    except SettingsError:
        raise
    except (ValueError, TypeError, ImportError) as error:
        raise SettingsError(" ".join(str(error).split()) or type(error).__name__) from error
    return parsed, {name: value for name, value in settings.items() if name not in NOT_IN_RECIPE}


def is_training(group: type) -> bool:
    """Whether a dataclass derives from transformers' TrainingArguments, without an import of Trainer."""
    return any(base.__name__ == "TrainingArguments" for base in group.__mro__)


def read_recipe(parser: SettingsParser, file: Path) -> Settings:
    """The settings in a recipe's file, as they stand there."""
    try:
        settings, texts = read_yaml(file), read_yaml(file, "BaseLoader")
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{file}: {' '.join(str(error).split())}") from error
    if not isinstance(settings, dict):
        raise SettingsError(f"{file}: not a YAML mapping of settings")
    # Where a text is wanted, `no`, `on` and 2020-01-01 are texts, not what YAML takes them for.
    known = {action.dest for action in parser._actions}
    typed = {action.dest for action in parser._actions if action.type in (int, float, string_to_bool, JsonMapping)}
    for name, value in settings.items():
        if name in known - typed and value is not None and not isinstance(value, dict):
            settings[name] = texts[name]
    return settings


def _expand_home(value: Any) -> Any:
    """Expand `~/x`, which a shell leaves alone where it is quoted or in a recipe."""
    if isinstance(value, list):
        return [_expand_home(one) for one in value]
    return os.path.expanduser(value) if isinstance(value, str) and value.startswith("~/") else value


def _set_bf16(parser: SettingsParser, values: Settings) -> None:
    """Set transformers' `bf16` by `precision`, unless it is given."""
    if (precision := values.get("precision")) is None:
        return
    from .inference.precision import choose_precision

    if "bf16" not in values:
        values["bf16"] = choose_precision(precision, values["use_cpu"]) == "bfloat16"
    elif precision not in ("auto", "bfloat16" if values["bf16"] else "float32"):
        parser.error(f"--precision {precision}: contradicts --bf16 {str(values['bf16']).lower()}")


def _check_training(arguments: "TrainingArguments") -> None:
    """Reject settings with which transformers fails late, or measures a part of the data only."""
    check_at_least(
        1, arguments, "per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"
    )
    check_at_least(0, arguments, "learning_rate")
    if not 0 <= arguments.label_smoothing_factor < 1:
        raise DataError(f"--label_smoothing_factor: at least 0 and below 1, not {arguments.label_smoothing_factor:g}")
    if arguments.push_to_hub and arguments.hub_strategy not in ("every_save", "end"):
        raise DataError("--hub_strategy: every_save or end; others send whatever lies in the folder")
    # Metrics are computed over all predictions at once.
    for name, needed in (
        ("prediction_loss_only", False),
        ("eval_do_concat_batches", True),
        ("batch_eval_metrics", False),
        ("dataloader_drop_last", False),  # also drops rows that are to be measured
        ("remove_unused_columns", True),
        ("label_names", None),
    ):
        if getattr(arguments, name) != needed:
            raise DataError(f"--{name}: cannot be changed here, a record needs all predictions as they are")
    if arguments.dataloader_persistent_workers:
        # torch draws a seed for each start of the workers.
        raise DataError("--dataloader_persistent_workers: a resumed run would draw other random numbers")
