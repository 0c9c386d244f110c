# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The scripts' command lines: a YAML recipe, flags that override it, and one line for what is wrong."""

import argparse
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from datasets import DatasetDict
from huggingface_hub.errors import HTTPError, StrictDataclassError
from safetensors import SafetensorError
from transformers import HfArgumentParser, TrainingArguments, get_scheduler

from .data import load_labelled_text


# The value of `--resume_from_checkpoint` without a path.
LAST_CHECKPOINT = "last"
# What the scripts that take --model answer to other fields.
ONLY_DROPOUT = "--config: of --model, only the rates of dropout can be changed; a recipe's `config` is for a new model"


class OneLineParser(HfArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str):
        """Exit with status 2 and one line, instead of a hundred lines of usage."""
        self.exit(2, f"{self.prog}: error: {message} (--help lists all options)\n")


@dataclass
class LabelledTextArguments:
    """Flags of the scripts that cut labelled text into splits."""

    data: str = field(
        default="sample",
        metadata={"help": "`sample`, `nsmc`, a folder with NSMC's two files, a TSV/CSV/JSON file, a Hub data set."},
    )
    text_column: str = field(default="document", metadata={"help": "The column with the texts."})
    label_column: str = field(default="label", metadata={"help": "The column with the labels."})
    validation_fraction: float = field(default=0.05, metadata={"help": "Share of train that is kept for validation."})
    split_seed: int = field(default=42, metadata={"help": "Seed of the cut between train and validation."})

    def load(self) -> DatasetDict:
        """The splits, as `load_labelled_text` has them."""
        return load_labelled_text(
            self.data,
            text_column=self.text_column,
            label_column=self.label_column,
            validation_fraction=self.validation_fraction,
            seed=self.split_seed,
        )


@dataclass
class StartArguments:
    """Flags of the scripts that train a new model and its vocabulary, or go on with what is there.

    Raises:
        ValueError: what a new vocabulary shall be is told, but none is trained.
    """

    model: str | None = field(
        default=None, metadata={"help": "A model folder or Hub name to go on with; by default a new model."}
    )
    tokenizer: str | None = field(
        default=None,
        metadata={"help": "A tokenizer folder or Hub name; by default the model's, or one trained on the texts."},
    )
    vocab_size: int | None = field(
        default=None, metadata={"help": "Size of a vocabulary that is trained here, by default 8007."}
    )
    tokenizer_model: Literal["bpe", "unigram", "word"] | None = field(
        default=None, metadata={"help": "What is trained: `bpe`, by default, `unigram` or `word`."}
    )

    def __post_init__(self):
        fill_in(self, "tokenizer" if self.tokenizer else "model", vocab_size=8007, tokenizer_model="bpe")


@dataclass
class RegularizationArguments:
    """Flags of the scripts that train on labels or pairs; a script's own arguments begin with them.

    Raises:
        ValueError: one is impossible, or is of no use without another.
    """

    rdrop_alpha: float = field(
        default=0.0, metadata={"help": "Weight of R-Drop's divergence between two passes; 0 is a single pass."}
    )
    bpe_dropout: float = field(
        default=0.0, metadata={"help": "Share of the merges left out at random in training texts; 0 is none."}
    )
    segmentations: int | None = field(
        default=None,
        metadata={
            "help": "With --bpe_dropout, in how many ways each training text is cut, by default 10; "
            "an epoch goes through all of them."
        },
    )

    def __post_init__(self):
        if self.rdrop_alpha < 0:
            raise ValueError(f"--rdrop_alpha: at least 0, not {self.rdrop_alpha}")
        if not 0 <= self.bpe_dropout < 1:
            raise ValueError(f"--bpe_dropout: at least 0 and below 1, not {self.bpe_dropout}")
        if self.segmentations is not None and (not self.bpe_dropout or self.segmentations < 1):
            raise ValueError("--segmentations: at least 1, and with --bpe_dropout")


def parse_arguments(dataclass_types: list[type], description: str, args: list[str] | None = None) -> tuple[Any, ...]:
    """Read a script's arguments: flags, or a YAML recipe and flags that override it.

    Args:
        dataclass_types: One dataclass for each group of arguments, as `HfArgumentParser` takes them.
        description: What `--help` says first.
        args: The command line without the program's name, a recipe first; by default `sys.argv`'s.

    Returns:
        One instance of each dataclass.

    Raises:
        SystemExit: with status 2 after one line on standard error, where the arguments make no sense; with status 0
            after `--help`.
    """
    parser, recipe, flags = _read_command_line(dataclass_types, description, args)
    for action in parser._actions:
        if action.dest in recipe:
            action.default = _as_default(parser, action, recipe[action.dest])
        action.required = action.required and action.dest not in recipe
    try:
        parsed = parser.parse_args_into_dataclasses(flags)
        for arguments in parsed:
            if isinstance(arguments, TrainingArguments):
                _check_training(arguments)
    except (ValueError, TypeError, ImportError) as error:
        parser.error(_one_line(error))
    return parsed


def _check_training(arguments: TrainingArguments) -> None:
    """Refuse what transformers would take, and fail of late or measure in part.

    Raises:
        ValueError: there is such an argument.
    """
    if arguments.max_steps <= 0 and arguments.num_train_epochs <= 0:
        raise ValueError(f"--num_train_epochs: more than 0, not {arguments.num_train_epochs:g}")
    for name in ("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"):
        if getattr(arguments, name) < 1:
            raise ValueError(f"--{name}: at least 1, not {getattr(arguments, name)}")
    if not 0 <= arguments.label_smoothing_factor < 1:
        raise ValueError(f"--label_smoothing_factor: at least 0 and below 1, not {arguments.label_smoothing_factor:g}")
    try:
        get_scheduler(
            arguments.lr_scheduler_type,
            torch.optim.SGD([torch.zeros(1)], lr=arguments.learning_rate),
            num_warmup_steps=0,
            num_training_steps=1,
            scheduler_specific_kwargs=arguments.lr_scheduler_kwargs,
        )
    except TypeError as error:
        raise ValueError(f"--lr_scheduler_kwargs: {error}") from error
    # What is measured is measured of all predictions together.
    for name, needed in (
        ("prediction_loss_only", False),
        ("eval_do_concat_batches", True),
        ("batch_eval_metrics", False),
        ("dataloader_drop_last", False),  # of the texts that are measured, too
        ("remove_unused_columns", True),
        ("label_names", None),
    ):
        if getattr(arguments, name) != needed:
            raise ValueError(f"--{name}: cannot be changed here, a record needs all predictions as they are")
    if arguments.dataloader_persistent_workers:
        # torch draws a seed for each start of the workers.
        raise ValueError("--dataloader_persistent_workers: a resumed run would draw other random numbers")


def check_best_metric(arguments: TrainingArguments, names: Sequence[str]) -> None:
    """See that what the best checkpoint is chosen by will be measured: Trainer looks after the first evaluation.

    Args:
        arguments: What `parse_arguments` returned.
        names: What evaluations measure.

    Raises:
        ValueError: `metric_for_best_model` is none of the names.
    """
    metric = arguments.metric_for_best_model
    if metric is not None and metric.removeprefix("eval_") not in names:
        raise ValueError(f"--metric_for_best_model: {', '.join(names)}; not {metric}")


def given_settings(dataclass_types: list[type], args: list[str] | None = None) -> dict[str, Any]:
    """What recipe and flags say, without the defaults, for the run's record.

    Args:
        dataclass_types: As in `parse_arguments`.
        args: As in `parse_arguments`.

    Returns:
        The settings by name, but for those that belong to one machine or one call.
    """
    parser, recipe, flags = _read_command_line(dataclass_types, "", args)
    for action in parser._actions:
        action.default, action.required = argparse.SUPPRESS, False
    given = {**recipe, **vars(parser.parse_args(flags))}
    return {name: value for name, value in given.items() if name not in _NOT_IN_RECIPE}


def changed_arguments(arguments: TrainingArguments) -> dict[str, Any]:
    """What a program's own training arguments say that differs from the defaults, for the run's record.

    Args:
        arguments: Any kind of `TrainingArguments`.

    Returns:
        As `given_settings`.
    """
    # As usual, new arguments would take accelerate's state away from the Trainer that is at work.
    state = {"use_configured_state": True}
    defaults = type(arguments)(arguments.output_dir, use_cpu=arguments.use_cpu, accelerator_config=state).to_dict()
    return {
        name: value
        for name, value in arguments.to_dict().items()
        if value != defaults[name] and name not in _NOT_IN_RECIPE
    }


_NOT_IN_RECIPE = {
    *("output_dir", "run_name", "logging_dir", "resume_from_checkpoint", "use_cpu", "disable_tqdm"),
    *("push_to_hub", "hub_token", "hub_model_id", "hub_private_repo", "hub_revision", "hub_strategy"),
}


def _read_command_line(
    dataclass_types: list[type], description: str, args: list[str] | None
) -> tuple[OneLineParser, dict[str, Any], list[str]]:
    """The parser, the recipe's settings, and the flags."""
    usage = "%(prog)s [RECIPE.yaml] [--name value ...]"
    parser = OneLineParser(dataclass_types, description=description, usage=usage, allow_abbrev=False)
    names = {action.dest for action in parser._actions} - {"help"}
    if "use_cpu" in names:
        # bf16 on a machine without an accelerator has to be asked for in this way.
        parser.set_defaults(use_cpu=not torch.accelerator.is_available())
    for action in parser._actions:
        if action.dest == "resume_from_checkpoint":
            action.nargs, action.const = "?", LAST_CHECKPOINT

    flags = list(sys.argv[1:] if args is None else args)
    if not flags or flags[0].startswith("-"):
        return parser, {}, flags
    file = flags.pop(0)
    try:
        recipe = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        parser.error(f"{file}: {_one_line(error)}")
    if not isinstance(recipe, dict):
        parser.error(f"{file}: not a YAML mapping of settings")
    if unknown := sorted(str(name) for name in set(recipe) - names):
        parser.error(f"{file}: no such setting: {', '.join(unknown)}")
    return parser, recipe, flags


def _as_default(parser: OneLineParser, action: argparse.Action, value: Any) -> Any:
    """What a recipe says, in the form of which argparse makes what it makes of the flag's words."""
    if value is None and (action.default is not None or action.required):
        parser.error(f"argument --{action.dest}: the recipe gives no value")
    if value is not None and action.choices is not None and value not in action.choices:
        # argparse looks at flags alone.
        parser.error(f"argument --{action.dest}: of {', '.join(map(str, action.choices))}; not {value!r}")
    if action.nargs in ("+", "*"):
        return value if value is None or isinstance(value, list) else [value]
    if action.type in (int, float) and isinstance(value, (list, dict)):
        parser.error(f"argument --{action.dest}: invalid {action.type.__name__} value: {value!r}")
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


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


def fill_in(arguments: Any, flag: str, **defaults: Any) -> None:
    """Give settings of something new their defaults, or refuse them where something that is there has its own.

    Args:
        arguments: A script's dataclass of arguments.
        flag: The name of the setting that names what is there.
        **defaults: The settings, None in `arguments` where they were not given, and what they are then.

    Raises:
        ValueError: one was given, and so was `flag`.
    """
    for name, default in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, default)
        elif getattr(arguments, flag):
            raise ValueError(f"--{name}: of no effect with --{flag}, which has its own")


def become_torchrun() -> None:
    """Go on as `torchrun` where `accelerate launch --cpu --num_processes N` started this program.

    On CPUs, accelerate leaves it to MPI to start them; without, it starts one, and tells it nothing of the others.

    Raises:
        ValueError: processes of several machines were asked for.
    """
    if os.environ.get("ACCELERATE_USE_CPU") != "True" or "RANK" in os.environ:
        return
    import psutil  # accelerate needs it, too
    from accelerate.commands.launch import launch_command_parser

    words = psutil.Process().parent().cmdline()
    place = next((place for place, word in enumerate(words[:3], 1) if word.endswith("launch")), None)
    if place is None:
        return
    launch = launch_command_parser().parse_args(words[place:])
    if (launch.num_machines or 1) > 1:
        raise ValueError("accelerate launch --cpu: starts nothing on several machines, use torchrun")
    if (launch.num_processes or 1) > 1:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        torchrun += ["--nproc_per_node", str(launch.num_processes)]
        os.execv(sys.executable, [*torchrun, *sys.argv])


def exit_with_one_line(main: Callable[[], None]) -> Callable[[], None]:
    """Make a script's `main` answer what its user got wrong with one line on standard error and exit status 2.

    That is: files and folders (OSError, SafetensorError), a full disk in all its forms, the network (HTTPError),
    values (ValueError, a configuration's StrictDataclassError), a loss that is no number (FloatingPointError), and
    missing optional packages (ImportError, and a RuntimeError of transformers'). Where nobody reads its answers any
    more, it ends without a word, with status 1. Anything else keeps its traceback.

    Args:
        main: The script's function without arguments.

    Returns:
        The function to call instead.
    """

    def wrapped() -> None:
        try:
            main()
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read the answers has gone, like `head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor is there more to say at the end
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
    """Whether a file could not be written for want of room.

    Libraries in Rust give the system's reason in words: safetensors in an error of its own, tokenizers in a bare
    Exception. torch says in a RuntimeError that writing failed, and not why.
    """
    if isinstance(error, OSError):
        return error.errno in _FULL_DISK
    if isinstance(error, RuntimeError):
        return re.search(r"iostream error|PytorchStreamWriter failed|unexpected pos \d+ vs", str(error)) is not None
    return any(f"(os error {number})" in str(error) for number in _FULL_DISK)


def _is_missing_package(error: Exception) -> bool:
    """Whether it is what transformers says of a package that `--report_to` needs."""
    return isinstance(error, RuntimeError) and re.search(r"requires \S+ to be installed", str(error)) is not None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
