# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Read a command's flags; report a user's error in one line."""

import argparse
import functools
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from logging import basicConfig
from pathlib import Path
from typing import Any, TextIO

from huggingface_hub.errors import HFValidationError, HTTPError, StrictDataclassError
from safetensors import SafetensorError
from tqdm import tqdm
from transformers.utils import logging

from ..data.errors import DataError, TrainingStopped
from ..data.imports import missing_extra
from ..settings.groups import JsonMapping
from ..settings.reading import SettingsParser, is_training, read_settings
from ..settings.recipes import recipes_of


USER_ERRORS = (
    OSError,  # files, folders, a full disk
    HTTPError,  # of the Hub
    SafetensorError,
    DataError,
    HFValidationError,  # of a name on the Hub
    StrictDataclassError,  # of a configuration
    FloatingPointError,  # a loss that is not finite
    ImportError,  # an extra that is not installed
)
METAVARS = {int: "N", float: "X", str: "TEXT", JsonMapping: "JSON"}
# What a training command's help shows of transformers' settings.
OF_TRAINER = {
    "output_dir": "The folder for the result; it must be empty. By default runs/RECIPE.",
    "resume_from_checkpoint": "A checkpoint to go on from; `auto`: the folder's last whole one, or a new run if there "
    "is none.",
}


class CommandLine(SettingsParser):
    """The settings as flags; its help begins with the summary of a command's docstring and ends with the rest."""

    def __init__(self, groups: Sequence[type], description: str):
        summary, _, examples = description.strip().partition("\n\n")
        formatter = functools.partial(argparse.RawDescriptionHelpFormatter, max_help_position=36)
        usage = "%(prog)s [--name value ...]"
        super().__init__(groups, usage=usage, description=summary, epilog=examples, formatter_class=formatter)
        of_transformers = {setting.name for group in filter(is_training, groups) for setting in fields(group)}
        for action in self._actions[1:]:  # the first is --help
            default = self.defaults[action.dest]
            if action.dest in of_transformers:
                action.help = OF_TRAINER.get(action.dest, argparse.SUPPRESS)
            elif action.option_strings[0].startswith("--no_"):
                action.help = argparse.SUPPRESS
            elif default not in (None, "", [], {}):
                action.help += f" (default: {default})".replace("%", "%%")
            if action.dest in self.required:
                action.help += " (required)"
            if action.choices is None and action.nargs != 0:
                action.metavar = METAVARS.get(action.type, "true|false")
        for section in self._action_groups:
            section._group_actions.sort(key=lambda action: action.dest not in ("help", *self.required))
        if of_transformers:
            self.usage = "%(prog)s [RECIPE] [--name value ...]"
            too = "Every field of transformers' TrainingArguments is a setting, too, such as --num_train_epochs."
            recipes = [f"  {name:25} {made}" for name, made in recipes_of(self.prog.split()[-1]).items()]
            self.description = "\n".join([summary, too, *(["", "recipes:", *recipes] if recipes else [])])


def read_command_line(
    groups: Sequence[type], description: str, argv: Sequence[str] | None = None
) -> tuple[str | None, dict[str, Any]]:
    """Return the command line's recipe, None if it names none, and the settings of its flags.

    `--name=null` unsets a setting of the recipe.
    """
    words = list(sys.argv[1:] if argv is None else map(str, argv))
    parser = CommandLine(groups, description)
    recipe = words.pop(0) if words and not words[0].startswith("-") else None
    unset = {f"--{name}=null": name for name in parser.optional}
    settings = vars(parser.parse_args([word for word in words if word not in unset]))
    return recipe, settings | {unset[word]: None for word in words if word in unset}


def parse_arguments(
    groups: Sequence[type], description: str, argv: Sequence[str] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Read the command line and its recipe; return what `read_settings` returns."""
    command = Path(sys.argv[0].split()[-1]).stem.replace("_", "-")
    recipe, settings = read_command_line(groups, description, argv)
    return read_settings(groups, recipe, settings, command)


@contextmanager
def exit_with_one_line(log: TextIO | None = None) -> Iterator[None]:
    """Report one of `USER_ERRORS` in one line on standard error, and exit with status 2.

    Other exceptions keep their traceback. Ctrl-C and SIGTERM are one line, with status 130 and 143. A closed pipe ends
    the program silently, with status 1.

    Args:
        log: Gets what is logged; by default standard output.
    """
    logging.disable_progress_bar()  # of weights that are loaded: one bar is enough
    basicConfig(format="%(message)s", stream=log or sys.stdout)
    try:
        yield
        print(end="", flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
        sys.exit(1)
    except (KeyboardInterrupt, TrainingStopped) as error:
        if os.environ.get("RANK", "0") == "0":  # the first of the processes that train together
            with tqdm.external_write_mode(sys.stderr):  # not at the end of a bar
                print_line("; ".join(["interrupted", *getattr(error, "__notes__", [])]))
        sys.exit(128 + (signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM))
    except USER_ERRORS as error:
        message = (isinstance(error, ImportError) and missing_extra(error)) or str(error)
        print_line(f"error: {' '.join(message.split()) or type(error).__name__}")
        sys.exit(2)


def print_line(message: str) -> None:
    """Print the command's name and a message, on standard error."""
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr, flush=True)
