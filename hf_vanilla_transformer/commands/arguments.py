# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Read a command's settings from a YAML recipe and flags; report a user's error in one line."""

import argparse
import contextlib
import functools
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, get_args, get_type_hints

import yaml
from huggingface_hub.errors import HFValidationError, HTTPError, StrictDataclassError
from safetensors import SafetensorError
from transformers import HfArgumentParser
from transformers.hf_argparser import string_to_bool

from ..errors import DataError
from .recipes import RECIPES, did_you_mean, escape_controls, find_recipe
from .settings import JsonMapping, check_at_least


# What needs torch or Trainer is imported where it is used: help and mistyped flags need neither.
if TYPE_CHECKING:
    from transformers import TrainingArguments

# What a command holds until it ends, such as its output folder.
AT_END = contextlib.ExitStack()
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


class OneLineParser(HfArgumentParser):
    """A parser that reports an error in one line and ends its help with the examples of a command's docstring."""

    def __init__(self, *args, description: str, **kwargs):
        paragraphs = description.strip("\n").split("\n\n")
        examples = [paragraph for paragraph in paragraphs if paragraph.startswith("    ")]
        super().__init__(
            *args,
            description="\n\n".join(paragraph for paragraph in paragraphs if paragraph not in examples),
            epilog="examples:\n" + "\n\n".join(examples) if examples else None,
            formatter_class=functools.partial(argparse.RawDescriptionHelpFormatter, max_help_position=36),
            allow_abbrev=False,
            **kwargs,
        )
        self.color = False  # Python 3.14 colours help with the control characters that `Escaped` shows

    def error(self, message: str):
        """Exit with status 2 and one line, instead of usage and message."""
        if unknown := re.match(r"unrecognized arguments: (--\w+)", message):
            message += did_you_mean(unknown[1], self._option_string_actions)
        self.exit(2, f"{self.prog}: error: {escape_controls(message)} (--help lists the settings)\n")


def parse_arguments(
    dataclass_types: list[type], description: str, argv: Sequence[str] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Read a command's settings: flags, or a recipe and flags that override it.

    Returns:
        One instance of each dataclass; and the settings that recipe and flags give, for the run's record.
    """
    words = list(sys.argv[1:] if argv is None else map(str, argv))
    parser, required, optional = _make_parser(dataclass_types, description, show_all="--help-all" in words)
    if odd := [word for word in words if re.search(r"[\ud800-\udfff]", word)]:  # bytes that Python cannot decode
        parser.error(f"{ascii(odd[0])}: not UTF-8; rename the file or folder")
    try:
        program = Path(parser.prog.split()[-1]).stem.replace("_", "-")
        file = find_recipe(words.pop(0), program) if words and not words[0].startswith("-") else None
    except ValueError as error:
        parser.error(str(error))
    recipe = {} if file is None else _read_recipe(parser, file)
    if empty := [name for name, value in recipe.items() if value is None and name not in optional]:
        parser.error(f"argument --{empty[0]}: the recipe gives no value")
    unset = _take_nulls(words, optional)
    if recipe.get("push_to_hub") and not any(word.partition("=")[0] == "--push_to_hub" for word in words):
        parser.error("the recipe says push_to_hub: to send the result to the Hub, give --push_to_hub as a flag")
    flags = {**vars(parser.parse_args(words)), **unset}
    if "metric_for_best_model" not in flags and flags.get("problem_type") not in (None, recipe.get("problem_type")):
        recipe |= {"metric_for_best_model": None} if "metric_for_best_model" in recipe else {}  # of other labels
    # argparse checks a recipe's values as it checks flags, but for lists and mappings, which a flag writes otherwise.
    structured = {action.dest for action in parser._actions if action.nargs or action.type in (None, str, JsonMapping)}
    plain = [
        f"--{name}={value}"
        for name, value in recipe.items()
        if value is not None and not (isinstance(value, (list, dict)) and name in structured)
    ]
    for name, value in flags.items():
        if isinstance(value, dict) and isinstance(recipe.get(name), dict):
            flags[name] = {**recipe[name], **value}  # a flag's fields override the recipe's
    given = {**recipe, **vars(parser.parse_args(plain)), **flags}
    if file is not None and file.parent == RECIPES and "model" not in flags:
        _find_model(parser, given)
    if missing := [f"--{name}" for name in required if name not in given]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    if any(map(_is_training, dataclass_types)):
        import torch

        # bf16 on a machine without an accelerator has to be asked for in this way.
        given.setdefault("use_cpu", not torch.accelerator.is_available())
        _set_bf16(parser, given)
        given.setdefault("output_dir", f"runs/{Path(parser.prog).name.split()[-1] if file is None else file.stem}")
    try:
        parsed = parser.parse_dict({name: _expand_home(value) for name, value in given.items()})
        for arguments in filter(lambda arguments: _is_training(type(arguments)), parsed):
            _check_training(arguments)
    except (ValueError, TypeError, ImportError) as error:
        parser.error(_one_line(error))
    settings = {**recipe, **flags}
    if any(hasattr(arguments, "output_dir") for arguments in parsed):
        from ..hub.record import NOT_IN_RECIPE

        settings = {name: value for name, value in settings.items() if name not in NOT_IN_RECIPE}
    return parsed, settings


def _is_training(group: type) -> bool:
    """Whether a dataclass derives from transformers' TrainingArguments, without an import of Trainer."""
    return any(base.__name__ == "TrainingArguments" for base in group.__mro__)


def _take_nulls(words: list[str], optional: set[str]) -> dict[str, None]:
    """Remove each `--name null` from the words: it unsets a recipe's setting, of those that may be None."""
    taken = {}
    for place in reversed(range(len(words))):
        name, equals, value = words[place].removeprefix("--").partition("=")
        if name in optional and (value == "null" if equals else words[place + 1 : place + 2] == ["null"]):
            del words[place : place + 2 - len(equals)]
            taken[name] = None
    return taken


def _expand_home(value: Any) -> Any:
    """Expand `~/x`, which a shell leaves alone where it is quoted or in a recipe."""
    if isinstance(value, list):
        return [_expand_home(one) for one in value]
    return os.path.expanduser(value) if isinstance(value, str) and value.startswith("~/") else value


def _set_bf16(parser: OneLineParser, given: dict[str, Any]) -> None:
    """Set transformers' `bf16` by `precision`, unless it is given."""
    if (precision := given.get("precision")) is None:
        return
    from ..inference.precision import choose_precision

    if "bf16" not in given:
        given["bf16"] = choose_precision(precision, given["use_cpu"]) == "bfloat16"
    elif precision not in ("auto", "bfloat16" if given["bf16"] else "float32"):
        parser.error(f"--precision {precision}: contradicts --bf16 {str(given['bf16']).lower()}")


def _make_parser(
    dataclass_types: list[type], description: str, show_all: bool
) -> tuple[OneLineParser, list[str], set[str]]:
    """A parser that fills in no defaults; the names of the required settings; and of those that may be null."""
    parser = OneLineParser(dataclass_types, usage="%(prog)s [RECIPE] [--name value ...]", description=description)
    required = [action.dest for action in parser._actions if action.required]
    hints = {name: hint for group in dataclass_types for name, hint in get_type_hints(group).items()}
    optional = {name for name, hint in hints.items() if type(None) in get_args(hint)} - set(required)
    training = list(filter(_is_training, dataclass_types))
    of_transformers = {setting.name for group in training for setting in fields(group)}
    for action in parser._actions[1:]:  # the first is --help
        if action.dest in of_transformers and not show_all or action.option_strings[0].startswith("--no_"):
            action.help = argparse.SUPPRESS
        elif action.default not in (None, {}, []):
            action.help += f" (default: {action.default})".replace("%", "%%")
        if action.required:
            action.help += " (required)"
        if action.type is string_to_bool and action.nargs is None:  # of `bool | None`
            action.nargs, action.const = "?", True
        if action.choices is None and action.nargs != 0:
            action.metavar = {int: "N", float: "X", str: "TEXT", JsonMapping: "JSON"}.get(action.type, "VALUE")
        action.option_strings = action.option_strings[:1]
        action.default, action.required = argparse.SUPPRESS, False
    if training:
        actions = parser._option_string_actions
        actions["--output_dir"].help = "The folder for the result; it must be empty. By default runs/RECIPE."
        resume = actions["--resume_from_checkpoint"]
        resume.nargs, resume.const = "?", "true"
        resume.help = "Resume from this checkpoint, by default from the last whole one."
        parser.add_argument("--help-all", action="help", help="Show transformers' TrainingArguments, too.")
        every = "Every field of transformers' TrainingArguments is a setting, too: --help-all lists them."
        parser.epilog = "\n\n".join(filter(None, [every, parser.epilog]))
    return parser, required, optional


def _read_recipe(parser: OneLineParser, file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        settings, texts = yaml.safe_load(text), yaml.load(text, yaml.BaseLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        parser.error(_one_line(error) if isinstance(error, OSError) else f"{file}: {_one_line(error)}")
    if not isinstance(settings, dict):
        parser.error(f"{file}: not a YAML mapping of settings")
    # Where a text is wanted, `no`, `on` and 2020-01-01 are texts, not what YAML takes them for.
    known = {action.dest for action in parser._actions}
    typed = {action.dest for action in parser._actions if action.type in (int, float, string_to_bool, JsonMapping)}
    for name, value in settings.items():
        if name in known - typed and value is not None and not isinstance(value, dict):
            settings[name] = texts[name]
    return settings


def _find_model(parser: OneLineParser, given: dict[str, Any]) -> None:
    """Find the model that a recipe of the package names: in the current folder, or in the clone."""
    model = given.get("model")
    if model is None or Path(model).is_dir():
        return
    given["model"] = str(RECIPES.parents[1] / model)
    if not Path(given["model"]).is_dir():
        parser.error(f"the recipe's model, {model}, is neither here nor in a clone of the repository: give --model")


def _check_training(arguments: "TrainingArguments") -> None:
    """Reject settings with which transformers fails late, or measures a part of the data only."""
    check_at_least(
        1, arguments, "per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"
    )
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


class Escaped:
    """A stream that shows control characters, such as those in a file's name, instead of obeying them."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        return self.stream.write(escape_controls(text))


class EscapedFormatter(logging.Formatter):
    """Shows control characters in a warning, which may name a file."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record))


def exit_with_one_line(main: Callable[..., None]) -> Callable[..., None]:
    """Make a command report one of `USER_ERRORS` in one line on standard error, with exit status 2.

    Other exceptions keep their traceback; with `VANILLA_TRACEBACK=1` in the environment, these do, too. Ctrl-C is one
    line, with status 130. A closed pipe ends the command silently, with status 1. What the command prints is
    `Escaped`, and so are warnings.
    """

    @functools.wraps(main)
    def wrapped(argv: Sequence[str] | None = None) -> None:
        logging.lastResort.setFormatter(EscapedFormatter())
        try:
            with AT_END, contextlib.redirect_stdout(sys.stdout and Escaped(sys.stdout)):
                main(argv)
            print(end="", flush=True)
        except BrokenPipeError:  # the reader, such as `head`, has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
            sys.exit(1)
        except KeyboardInterrupt:
            print_line("interrupted")
            sys.exit(130)
        except USER_ERRORS as error:
            if os.environ.get("VANILLA_TRACEBACK") == "1":
                raise
            print_line(f"error: {_one_line(error)}")
            sys.exit(2)

    return wrapped


def print_line(message: str) -> None:
    """Print the command's name and a message, on standard error."""
    print(f"{Path(sys.argv[0]).name}: {escape_controls(message)}", file=sys.stderr, flush=True)


def _one_line(error: Exception) -> str:
    message = str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    # What a configuration's check says, without the name of the check.
    message = re.sub(r"Class validation error for validator '\w+': ValueError: ", "", " ".join(message.split()))
    return escape_controls(message) or type(error).__name__
