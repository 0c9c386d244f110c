# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Read a command's settings from a YAML recipe and flags; report a user's error in one line."""

import argparse
import difflib
import errno
import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
import yaml
from huggingface_hub.errors import HTTPError, StrictDataclassError
from safetensors import SafetensorError
from tqdm import tqdm
from transformers import HfArgumentParser, TrainingArguments, get_scheduler

from ..loading import DROPOUT_FIELDS
from ..precision import choose_precision


if TYPE_CHECKING:
    from datasets import DatasetDict

    JsonMapping = Any
else:
    JsonMapping = str  # as HfArgumentParser reads it; `__post_init__` makes a mapping of it

# What needs `datasets` or Trainer is imported where it is used: `predict` needs neither.
RECIPES = Path(__file__).parents[1] / "recipes"


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
    """Settings of the commands that measure a classifier under changes of the texts.

    Raises:
        ValueError: there is no such change.
    """

    robustness: list[str] = field(
        default_factory=list,
        metadata={"help": "Measure with changed texts, too: `all`, or some changes by name."},
    )

    def __post_init__(self):
        from ..data.changes import CHANGES, check_changes

        if self.robustness == ["all"]:
            self.robustness = list(CHANGES)
        try:
            check_changes(self.robustness)
        except ValueError as error:
            raise ValueError(f"--robustness: {error}") from None


@dataclass
class ModelArguments:
    """Settings of a model that is trained: a new one, or one that is trained further.

    Raises:
        ValueError: a field of `config` is unknown, or cannot be changed in a trained model.
    """

    model: str | None = field(
        default=None, metadata={"help": "A model folder or Hub name to train further; by default a new model."}
    )
    config: JsonMapping = field(
        default="{}",
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
        self.config = read_mapping("--config", self.config)
        if self.model and set(self.config) - DROPOUT_FIELDS:
            raise ValueError(
                "--config: of --model, only the dropout rates can be changed; a recipe's `config` is for a new model"
            )


@dataclass
class VocabularyArguments:
    """Settings of a vocabulary that is trained here, unless --tokenizer or --model brings one.

    Raises:
        ValueError: a setting of a new vocabulary is given, but none is trained.
    """

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
        """Exit with status 2 and one line, instead of a hundred lines of usage."""
        if unknown := re.match(r"unrecognized arguments: ([^\s=]+)", message):
            if unknown[1].startswith("-"):
                message += did_you_mean(unknown[1], self._option_string_actions)
            else:
                message += "; a recipe, at most one, comes first"
        self.exit(2, f"{self.prog}: error: {message} (--help lists the settings)\n")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion to end an error message with; empty where nothing is similar."""
    similar = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {similar[0]}?" if similar else ""


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
    flags = vars(parser.parse_args(words))
    given = {**_parse_recipe(parser, recipe, optional), **flags}
    if file is not None and file.parent == RECIPES:
        _find_model(parser, recipe, given)
    if missing := [f"--{name}" for name in required if name not in given]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    if any(issubclass(dataclass_type, TrainingArguments) for dataclass_type in dataclass_types):
        # bf16 on a machine without an accelerator has to be asked for in this way.
        given.setdefault("use_cpu", not torch.accelerator.is_available())
        _set_bf16(parser, given)
        name = Path(parser.prog).name.split()[-1] if file is None else file.name
        given.setdefault("output_dir", f"runs/{Path(name).stem}")
    try:
        parsed = parser.parse_dict(given)
        for arguments in parsed:
            if isinstance(arguments, TrainingArguments):
                _check_training(arguments)
    except (ValueError, TypeError, ImportError) as error:
        parser.error(_one_line(error))
    settings = {**recipe, **flags}
    if "output_dir" in given:  # where the record is written
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
    """A parser without defaults; the names of the required settings, and of those whose default is None."""
    parser = OneLineParser(
        dataclass_types,
        usage="%(prog)s [RECIPE] [--name value ...]",
        description=description,
    )
    required = [action.dest for action in parser._actions if action.required]
    optional = {action.dest for action in parser._actions if action.default is None and not action.required}
    of_transformers = {
        setting.name
        for dataclass_type in dataclass_types
        if issubclass(dataclass_type, TrainingArguments)
        for setting in fields(dataclass_type)
    }
    action: Any
    for action in parser._actions:
        if action.dest in of_transformers - {"output_dir", "resume_from_checkpoint"} and not show_all:
            action.help = argparse.SUPPRESS
        elif action.default not in (None, argparse.SUPPRESS, "{}", []):
            action.help += f" (default: {action.default})".replace("%", "%%")
        if action.required:
            action.help += " (required)"
        if action.dest == "resume_from_checkpoint":
            from ..training.checkpoints import LAST_CHECKPOINT

            action.nargs, action.const = "?", LAST_CHECKPOINT
            action.help = "Resume from this checkpoint, by default from the last whole one."
        if action.dest == "output_dir" and of_transformers:
            action.help = "The folder for the result; it must be empty. By default runs/RECIPE."
        if f"--no_{action.dest}" in action.option_strings:
            action.help = argparse.SUPPRESS  # --no_truncation would read as if texts were not to be cut
        if action.choices is None and action.nargs != 0:
            action.metavar = {int: "N", float: "X", str: "TEXT"}.get(action.type, "VALUE")
        if action.dest != "help":
            action.default, action.required = argparse.SUPPRESS, False
        action.option_strings = action.option_strings[:1] if action.dest != "help" else action.option_strings
    if of_transformers:
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
    """The settings in a recipe's file."""
    recipe = file.stem if file.parent == RECIPES else file
    try:
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        parser.error(f"{recipe}: {_one_line(error)}")
    if not isinstance(settings, dict):
        parser.error(f"{recipe}: not a YAML mapping of settings")
    known = {action.dest for action in parser._actions} - {"help", "help_all"}
    if unknown := sorted(str(name) for name in settings.keys() - known):
        parser.error(f"{recipe}: no such setting: {', '.join(unknown)}{did_you_mean(unknown[0], known)}")
    return settings


def _find_model(parser: OneLineParser, recipe: dict[str, Any], given: dict[str, Any]) -> None:
    """Have the model that a recipe of the package names found from every folder: it may lie in the clone."""
    model = recipe.get("model")
    if model is None or given["model"] != model or Path(model).is_dir():
        return
    given["model"] = str(RECIPES.parents[1] / model)
    if not Path(given["model"]).is_dir():
        parser.error(f"the recipe's model, {model}, is neither here nor in a clone of the repository: give --model")


def _parse_recipe(parser: OneLineParser, recipe: dict[str, Any], optional: set[str]) -> dict[str, Any]:
    """Parse and check a recipe's values as argparse does with flags."""
    parsed: dict[str, Any] = {}
    words = []
    action: Any
    for action in parser._actions:
        name, value = action.dest, recipe.get(action.dest)
        if name not in recipe or f"--{name}" not in action.option_strings:
            continue
        if value is None and name not in optional:
            parser.error(f"argument --{name}: the recipe gives no value")
        is_text = action.type in (None, str) and action.choices is None
        if isinstance(value, list) and action.nargs in ("+", "*"):
            parsed[name] = [action.type(str(item)) for item in value]
        elif isinstance(value, (list, dict, bool)) and is_text:
            parsed[name] = value  # a setting of transformers that takes more than text, or our `config`
        elif value is not None:
            words.append(f"--{name}={value}")
    return {**parsed, **vars(parser.parse_args(words))}


def read_mapping(flag: str, value: str | dict[str, Any]) -> dict[str, Any]:
    """Read a setting that holds settings.

    Args:
        flag: Its name, for the messages.
        value: JSON, as a flag has it, or a mapping, as a recipe has it.

    Returns:
        The mapping.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"{flag}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise ValueError(f"{flag}: not a mapping of a configuration's fields")
    return value


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
    """Check that numbers, where they are given, are not too small.

    Raises:
        ValueError: one is less than `minimum`.
    """
    for name in names:
        value = getattr(arguments, name)
        if value is not None and value < minimum:
            raise ValueError(f"--{name}: at least {minimum}, not {value}")


def _check_training(arguments: TrainingArguments) -> None:
    """Reject settings with which transformers fails late or measures only part of the data.

    Raises:
        ValueError: there is such a setting.
    """
    if arguments.max_steps <= 0 and arguments.num_train_epochs <= 0:
        raise ValueError(f"--num_train_epochs: more than 0, not {arguments.num_train_epochs:g}")
    check_at_least(
        1, arguments, "per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"
    )
    if not 0 <= arguments.label_smoothing_factor < 1:
        raise ValueError(f"--label_smoothing_factor: at least 0 and below 1, not {arguments.label_smoothing_factor:g}")
    try:
        get_scheduler(
            arguments.lr_scheduler_type,
            torch.optim.SGD([torch.zeros(1)], lr=arguments.learning_rate),
            num_warmup_steps=0,
            num_training_steps=1,
            scheduler_specific_kwargs=arguments.lr_scheduler_kwargs,  # type: ignore[arg-type]  # parsed by now
        )
    except TypeError as error:
        raise ValueError(f"--lr_scheduler_kwargs: {error}") from error
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

    Such errors are: files and folders (OSError, SafetensorError), a full disk, the network (HTTPError), values
    (ValueError, a configuration's StrictDataclassError), a loss that is not finite (FloatingPointError), and missing
    optional packages (ImportError, and a RuntimeError of transformers'). A closed pipe ends the command silently, with
    status 1. Any other exception keeps its traceback. Progress bars are shown of what takes longer than a second.

    Args:
        main: The command's function.

    Returns:
        The function to call instead.
    """

    @functools.wraps(main)
    def wrapped(argv: Sequence[str] | None = None) -> None:
        # The environment variable TQDM_DELAY does the same, but is read before a command has begun.
        tqdm.__init__ = functools.partialmethod(_BEGIN_BAR, delay=1)  # type: ignore[method-assign, assignment]
        try:
            main(argv)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as `head`, has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
            sys.exit(1)
        except Exception as error:
            if _is_full_disk(error):
                message = f"a file could not be written, is the disk full? ({_one_line(error)})"
            elif isinstance(error, _USER_ERRORS) or _is_missing_package(error):
                message = _one_line(error)
            else:
                raise
            print(f"{Path(sys.argv[0]).name}: error: {message}", file=sys.stderr)
            sys.exit(2)

    return wrapped


_BEGIN_BAR = tqdm.__init__
_USER_ERRORS = (
    OSError,
    HTTPError,
    SafetensorError,
    ValueError,
    FloatingPointError,
    ImportError,
    StrictDataclassError,
)
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _is_full_disk(error: Exception) -> bool:
    """Whether a file could not be written for lack of space.

    Libraries in Rust give the system's reason in words: safetensors in an error of its own, tokenizers in a bare
    Exception. torch raises a RuntimeError that says that writing failed, not why.
    """
    if isinstance(error, OSError):
        return error.errno in _FULL_DISK
    if isinstance(error, RuntimeError):
        return re.search(r"iostream error|PytorchStreamWriter failed|unexpected pos \d+ vs", str(error)) is not None
    return any(f"(os error {number})" in str(error) for number in _FULL_DISK)


def _is_missing_package(error: Exception) -> bool:
    """Whether transformers reports a missing package that `--report_to` needs."""
    return isinstance(error, RuntimeError) and re.search(r"requires \S+ to be installed", str(error)) is not None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
