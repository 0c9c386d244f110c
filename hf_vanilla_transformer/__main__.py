# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The command `vanilla-transformer`, also `python -m hf_vanilla_transformer`."""

import importlib
import sys

from . import __version__
from .errors import DataError, missing_extra
from .recipes import commands_of_recipes, did_you_mean, find_recipe
from .tasks import TASKS


COMMANDS = {
    **{task.command: f"Train a {task.noun}." for task in TASKS.values()},
    "predict": "Classify texts.",
    "evaluate": "Measure a classifier or a translator.",
    "translate": "Translate texts.",
    "pretrain": "Pretrain an encoder-decoder on plain text.",
    "train-tokenizer": "Train a SentencePiece-style tokenizer.",
    "convert-checkpoint": "Convert a tutorial's checkpoint, or back.",
    "export": "Export a model to CTranslate2 or ONNX.",
    "page": "Make a web page that runs a model in the browser.",
    "push-to-hub": "Upload a run's folder to the Hugging Face Hub.",
}


def main(argv: list[str] | None = None) -> None:
    """Run a command.

    Args:
        argv: The command's name and its arguments; by default `sys.argv[1:]`.

    Raises:
        SystemExit: with status 2 where there is no such command, or as the command does.
    """
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: vanilla-transformer COMMAND [RECIPE] [--name value ...]\n")
        for name, purpose in COMMANDS.items():
            print(f"  {name:22}{purpose}")
        print("\nvanilla-transformer COMMAND --help lists a command's settings.")
        return
    name, *arguments = argv
    if name == "--version":
        print(f"vanilla-transformer {__version__}")
        return
    program = f"vanilla-transformer {name}"
    try:
        if name not in COMMANDS:
            program = "vanilla-transformer"
            raise DataError(f"no command {name!r}{did_you_mean(name, COMMANDS)}; there are {', '.join(COMMANDS)}")
        if name in commands_of_recipes().values() and arguments and not arguments[0].startswith("-"):
            find_recipe(arguments[0], name)
    except ValueError as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        sys.exit(2)
    sys.argv = [program, *arguments]  # error messages begin with the program's name
    try:
        importlib.import_module(f".commands.{name.replace('-', '_')}", __package__).main(arguments)
    except ImportError as error:  # also during the imports
        if not (message := missing_extra(error)):
            raise
        print(f"{program}: error: {message}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # during the imports
        print(f"{program}: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
