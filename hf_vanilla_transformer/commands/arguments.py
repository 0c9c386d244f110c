# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Read a command's settings from a YAML recipe and flags; report a user's error in one line."""

import argparse
import difflib
import functools
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
import yaml
from huggingface_hub.errors import HTTPError, StrictDataclassError
from safetensors import SafetensorError
from transformers import HfArgumentParser, TrainingArguments

from ..inference.folder import DROPOUT_FIELDS
from ..precision import choose_precision


if TYPE_CHECKING:
    from datasets import DatasetDict

# What needs `datasets` or Trainer is imported where it is used: `predict` needs neither.
RECIPES = Path(__file__).parents[1] / "recipes"
USER_ERRORS = (
    OSError,  # files, folders, a full disk
    HTTPError,  # of the Hub
    SafetensorError,
    ValueError,  # also DataError
    StrictDataclassError,  # of a configuration
    FloatingPointError,  # a loss that is not finite
    ImportError,  # an extra that is not installed
)


class JsonMapping(dict[str, Any]):
    """The type of a setting that holds settings: JSON as a flag, a mapping in a recipe."""

    def __new__(cls, text: str = "{}"):  # argparse calls a type with a flag's text
        if not isinstance(mapping := json.loads(text), dict):
            raise ValueError(f"not a JSON mapping: {text}")
        return mapping


@dataclass
class LabelledTextArguments:
    """Settings of the commands that read labelled text."""

    data: str = field(
        default="sample",
        metadata={"help": "`sample`, `nsmc` or its folder, a TSV/CSV/JSON file, a Hub data set."},
    )
    text_column: str = field(default="document", metadata={"help": "The column with the texts."})
    label_column: str = field(default="label", metadata={"help": "The column with the labels."})
    validation_fraction: float = field(default=0.05, metadata={"help": "Share of train that becomes validation."})
    split_seed: int = field(default=42, metadata={"help": "Seed of the split into train and validation."})

    def load(self, problem_type: str | None = "single_label_classification") -> "DatasetDict":
        """The splits, as `load_labelled_text` returns them."""
        from ..data.labelled_text import load_labelled_text

        return load_labelled_text(
            self.data,
            text_column=self.text_column,
            label_column=self.label_column,
            problem_type=problem_type,
            validation_fraction=self.validation_fraction,
            seed=self.split_seed,
        )


@dataclass
class RobustnessArguments:
    """Settings of the commands that measure a classifier under changes of the texts."""

    robustness: list[str] = field(
        default_factory=list,
        metadata={"help": "Measure with changed texts, too: `all`, or some changes by name."},
    )

    def __post_init__(self):
        from ..data.changes import CHANGES, check_changes

        if self.robustness == ["all"]:
            self.robustness = list(CHANGES)
        check_changes(self.robustness)


@dataclass
class ModelArguments:
    """Settings of a model that is trained: a new one, or one that is trained further."""

    model: str | None = field(
        default=None, metadata={"help": "A model folder or Hub name to train further; by default a new model."}
    )
    config: JsonMapping = field(
        default_factory=JsonMapping,
        metadata={"help": "VanillaTransformerConfig fields of a new model, or dropout rates of --model: JSON."},
    )
    attn_implementation: str = field(
        default="sdpa", metadata={"help": "`sdpa`, or `eager`: faster on CPUs with short texts."}
    )
    precision: Literal["auto", "float32", "bfloat16"] = field(
        default="float32",
        metadata={"help": "Of training; `auto`: what this machine is faster in."},
    )
    weights_dtype: Literal["float32", "float16", "bfloat16"] = field(
        default="float32",
        metadata={"help": "Precision the trained weights are rounded to and saved in."},
    )

    def __post_init__(self):
        if self.model and set(self.config) - DROPOUT_FIELDS:
            raise ValueError(
                "--config: of --model, only the dropout rates can be changed; a recipe's `config` is for a new model"
            )


@dataclass
class VocabularyArguments:
    """Settings of a vocabulary that is trained here, unless --tokenizer or --model brings one."""

    tokenizer: str | None = field(
        default=None,
        metadata={"help": "A tokenizer folder or Hub name; by default --model's, or one trained on the texts."},
    )
    vocab_size: int | None = field(default=None, metadata={"help": "Size of a new vocabulary, by default 8007."})
    tokenizer_model: Literal["bpe", "unigram", "word"] | None = field(
        default=None, metadata={"help": "Kind of a new vocabulary, by default `bpe`."}
    )
    vocab_lines: int | None = field(
        default=None,
        metadata={"help": "Train a new vocabulary on this many texts, evenly spaced; by default on all."},
    )

    def __post_init__(self):
        check_at_least(1, self, "vocab_lines")
        new = {"vocab_size": 8007, "tokenizer_model": "bpe", "vocab_lines": None}
        apply_defaults(self, "tokenizer" if self.tokenizer else "model", **new)


@dataclass
class ModelAndVocabularyArguments(ModelArguments, VocabularyArguments):
    """Settings of a model with one vocabulary."""

    def __post_init__(self):
        ModelArguments.__post_init__(self)
        VocabularyArguments.__post_init__(self)


class OneLineParser(HfArgumentParser):
    """A parser that reports an error in one line, and whose help ends with the examples of a command's docstring."""

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

    def error(self, message: str):
        """Exit with status 2 and one line, instead of usage and message."""
        if unknown := re.match(r"unrecognized arguments: (--\w+)", message):
            similar = difflib.get_close_matches(unknown[1], self._option_string_actions, n=1)
            message += "".join(f"; did you mean {flag}?" for flag in similar)
        self.exit(2, f"{self.prog}: error: {message} (--help lists the settings)\n")


def parse_arguments(
    dataclass_types: list[type], description: str, argv: Sequence[str] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Read a command's settings: flags, or a recipe and flags that override it.

    Args:
        dataclass_types: One dataclass for each group of settings, as `HfArgumentParser` takes them.
        description: The command's docstring: `--help` shows it.
        argv: The command line without the program's name, a recipe first; by default `sys.argv[1:]`.

    Returns:
        One instance of each dataclass; and what recipe and flags say, without the defaults, for the run's record.

    Raises:
        SystemExit: with status 2 after one line on standard error, or with status 0 after `--help`.
    """
    words = list(sys.argv[1:] if argv is None else map(str, argv))
    parser, required, optional = _make_parser(dataclass_types, description, show_all="--help-all" in words)
    file = _find_recipe(parser, words.pop(0)) if words and not words[0].startswith("-") else None
    recipe = {} if file is None else _read_recipe(parser, file)
    if empty := [name for name, value in recipe.items() if value is None and name not in optional]:
        parser.error(f"argument --{empty[0]}: the recipe gives no value")
    # argparse checks a recipe's values as it checks flags, but for lists and mappings, which a flag writes otherwise.
    structured = {action.dest for action in parser._actions if action.nargs or action.type in (None, str, JsonMapping)}
    plain = {
        name: value
        for name, value in recipe.items()
        if value is not None and not (isinstance(value, (list, dict)) and name in structured)
    }
    flags = vars(parser.parse_args(words))
    checked = vars(parser.parse_args([f"--{name}={value}" for name, value in plain.items()]))
    given = {**recipe, **checked, **flags}
    if file is not None and file.parent == RECIPES and "model" not in flags:
        _find_model(parser, given)
    if missing := [f"--{name}" for name in required if name not in given]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    if any(issubclass(dataclass_type, TrainingArguments) for dataclass_type in dataclass_types):
        # bf16 on a machine without an accelerator has to be asked for in this way.
        given.setdefault("use_cpu", not torch.accelerator.is_available())
        _set_bf16(parser, given)
        given.setdefault("output_dir", f"runs/{Path(parser.prog).name.split()[-1] if file is None else file.stem}")
    try:
        parsed = parser.parse_dict(given)
        for arguments in parsed:
            if isinstance(arguments, TrainingArguments):
                _check_training(arguments)
    except (ValueError, TypeError, ImportError) as error:
        parser.error(_one_line(error))
    settings = {**recipe, **flags}
    if any(hasattr(arguments, "output_dir") for arguments in parsed):
        from ..hub.record import NOT_IN_RECIPE

        settings = {name: value for name, value in settings.items() if name not in NOT_IN_RECIPE}
    return parsed, settings


def _set_bf16(parser: OneLineParser, given: dict[str, Any]) -> None:
    """Have `precision` say what transformers' `bf16` is, unless that is given."""
    if (precision := given.get("precision")) is None:
        return
    if "bf16" not in given:
        given["bf16"] = choose_precision(precision, given["use_cpu"]) == "bfloat16"
    elif precision not in ("auto", "bfloat16" if given["bf16"] else "float32"):
        parser.error(f"--precision {precision}: contradicts --bf16 {str(given['bf16']).lower()}")


def _make_parser(
    dataclass_types: list[type], description: str, show_all: bool
) -> tuple[OneLineParser, list[str], set[str]]:
    """A parser that returns what is given and no defaults; the settings that are required, and that may be null."""
    parser = OneLineParser(dataclass_types, usage="%(prog)s [RECIPE] [--name value ...]", description=description)
    required = [action.dest for action in parser._actions if action.required]
    optional = {action.dest for action in parser._actions if action.default is None}
    training = [group for group in dataclass_types if issubclass(group, TrainingArguments)]
    of_transformers = {setting.name for group in training for setting in fields(group)}
    action: Any
    for action in parser._actions[1:]:  # the first is --help
        if action.dest in of_transformers and not show_all or action.option_strings[0].startswith("--no_"):
            action.help = argparse.SUPPRESS
        elif action.default not in (None, {}, []):
            action.help += f" (default: {action.default})".replace("%", "%%")
        if action.required:
            action.help += " (required)"
        if action.choices is None and action.nargs != 0:
            action.metavar = {int: "N", float: "X", str: "TEXT", JsonMapping: "JSON"}.get(action.type, "VALUE")
        action.option_strings = action.option_strings[:1]
        action.default, action.required = argparse.SUPPRESS, False
    if training:
        from ..training.checkpoints import LAST_CHECKPOINT

        actions: dict[str, Any] = parser._option_string_actions
        actions["--output_dir"].help = "The folder for the result; it must be empty. By default runs/RECIPE."
        resume = actions["--resume_from_checkpoint"]
        resume.nargs, resume.const = "?", LAST_CHECKPOINT
        resume.help = "Resume from this checkpoint, by default from the last whole one."
        parser.add_argument("--help-all", action="help", help="Show transformers' TrainingArguments, too.")
        every = "Every field of transformers' TrainingArguments is a setting, too: --help-all lists them."
        parser.epilog = "\n\n".join(filter(None, [every, parser.epilog]))
    return parser, required, optional


def _find_recipe(parser: OneLineParser, recipe: str) -> Path:
    """The file of a recipe: a path, or the name of one in the package."""
    file = Path(recipe)
    if file.suffix or (file.exists() and not file.is_dir()):  # a folder of data may have the name
        return file
    file = RECIPES / f"{recipe}.yaml"
    if not file.is_file():
        names = sorted(entry.stem for entry in RECIPES.glob("*.yaml"))
        parser.error(f"{recipe}: no such file, and no recipe of the package; those are {', '.join(names)}")
    return file


def _read_recipe(parser: OneLineParser, file: Path) -> dict[str, Any]:
    try:
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        parser.error(f"{file}: {_one_line(error)}")
    if not isinstance(settings, dict):
        parser.error(f"{file}: not a YAML mapping of settings")
    return settings


def _find_model(parser: OneLineParser, given: dict[str, Any]) -> None:
    """Have the model that a recipe of the package names found from every folder: it may lie in the clone."""
    model = given.get("model")
    if model is None or Path(model).is_dir():
        return
    given["model"] = str(RECIPES.parents[1] / model)
    if not Path(given["model"]).is_dir():
        parser.error(f"the recipe's model, {model}, is neither here nor in a clone of the repository: give --model")


def apply_defaults(arguments: Any, flag: str, **defaults: Any) -> None:
    """Give settings of a new model or vocabulary their defaults; reject them if an existing one is named.

    Args:
        arguments: A command's dataclass of settings.
        flag: The setting that names what exists, such as `model`.
        **defaults: The settings, None in `arguments` where they were not given, and their defaults.

    Raises:
        ValueError: one was given, and so was `flag`.
    """
    for name, default in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, default)
        elif getattr(arguments, flag):
            raise ValueError(f"--{name}: has no effect with --{flag}, which has its own")


def check_at_least(minimum: int, arguments: Any, *names: str) -> None:
    """Raise a ValueError if one of these settings is given and is less than `minimum`."""
    for name in names:
        value = getattr(arguments, name)
        if value is not None and value < minimum:
            raise ValueError(f"--{name}: at least {minimum}, not {value}")


def _check_training(arguments: TrainingArguments) -> None:
    """Reject settings with which transformers fails late or measures only part of the data."""
    check_at_least(
        1, arguments, "per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"
    )
    if not 0 <= arguments.label_smoothing_factor < 1:
        raise ValueError(f"--label_smoothing_factor: at least 0 and below 1, not {arguments.label_smoothing_factor:g}")
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
            raise ValueError(f"--{name}: cannot be changed here, a record needs all predictions as they are")
    if arguments.dataloader_persistent_workers:
        # torch draws a seed for each start of the workers.
        raise ValueError("--dataloader_persistent_workers: a resumed run would draw other random numbers")


def exit_with_one_line(main: Callable[..., None]) -> Callable[..., None]:
    """Make a command answer a user's error with one line on standard error and exit status 2.

    A closed pipe ends the command silently, with status 1. An exception that is none of `USER_ERRORS` keeps its
    traceback.
    """

    @functools.wraps(main)
    def wrapped(argv: Sequence[str] | None = None) -> None:
        try:
            main(argv)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as `head`, has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
            sys.exit(1)
        except USER_ERRORS as error:
            print(f"{Path(sys.argv[0]).name}: error: {_one_line(error)}", file=sys.stderr)
            sys.exit(2)

    return wrapped


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
