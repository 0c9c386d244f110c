# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The command `vanilla-transformer`, also `python -m hf_vanilla_transformer`."""

import importlib
import os
import sys
from importlib import metadata

from .settings.tasks import FORMATS, TASKS


COMMANDS = {
    **{task.command: f"Train a {task.noun}." for task in TASKS.values()},
    "predict": "Classify texts.",
    "evaluate": "Measure a classifier or a translator.",
    "translate": "Translate texts.",
    "pretrain": "Pretrain an encoder-decoder on plain text.",
    "export": f"Export a model to {' or '.join(form.title for form in FORMATS.values())}.",
    "page": "Make a web page that shows each step of a model.",
    "push-to-hub": "Upload a run's folder to the Hugging Face Hub.",
}


def main(argv: list[str] | None = None) -> None:
    """Run a command.

    Args:
        argv: The command's name and its arguments; by default `sys.argv[1:]`.
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
        print(f"vanilla-transformer {metadata.version('hf-vanilla-transformer')}")
        return
    if name not in COMMANDS:
        print(f"vanilla-transformer: error: no command {name!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        sys.exit(2)
    if not sys.stderr.isatty():  # no progress bars; tqdm reads this when it is imported
        os.environ |= {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")  # a run has one bar, of its steps
    sys.argv = [f"vanilla-transformer {name}", *arguments]  # error messages begin with the program's name
    from .commands.arguments import exit_with_one_line

    module = f".commands.{name.replace('-', '_')}"
    # The standard output of two commands has nothing but answers.
    with exit_with_one_line(sys.stderr if name in ("predict", "translate") else sys.stdout):
        importlib.import_module(module, __package__).main(arguments)


if __name__ == "__main__":
    main()
