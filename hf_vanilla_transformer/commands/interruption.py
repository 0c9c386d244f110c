# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Runs that end before their last step: by Ctrl-C, or by SIGTERM (Slurm, spot machines)."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from accelerate import PartialState
from tqdm import tqdm

from ..training.trainer import TrainingStopped
from .arguments import print_line


@contextmanager
def one_line_if_interrupted() -> Iterator[None]:
    """Say in one line how an interrupted run goes on, and exit as a shell's command does: 130 or, of SIGTERM, 143."""
    try:
        yield
    except (KeyboardInterrupt, TrainingStopped) as error:
        if PartialState().is_main_process:
            with tqdm.external_write_mode(sys.stderr):  # not at the end of a bar
                print_line("; ".join(["interrupted", *getattr(error, "__notes__", [])]))
        sys.exit(128 + (signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM))
