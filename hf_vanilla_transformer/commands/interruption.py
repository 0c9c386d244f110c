# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Runs that end before their last step: by Ctrl-C, or by SIGTERM (Slurm, spot machines)."""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accelerate import PartialState
from tqdm import tqdm

from ..training.run import RunFolder
from ..training.trainer import TrainingStopped
from .arguments import print_line


class _Terminated(KeyboardInterrupt):
    """SIGTERM, where it has the effect of Ctrl-C."""


@contextmanager
def one_line_if_interrupted() -> Iterator[None]:
    """Say in one line how an interrupted run goes on.

    Training that gets a SIGTERM ends after its step, with a checkpoint. Everything else ends at once, and so does
    training on Ctrl-C. The exit status is that of a shell for the signal, 143 or 130. Where
    Python ignores errors, in a `__del__`, SIGTERM has its effect soon afterwards.
    """
    handlers: dict[signal.Signals, Any] = {}  # those of before

    def handle(number: signal.Signals, handler: Any) -> None:
        handlers.setdefault(number, signal.signal(number, handler) or signal.SIG_DFL)

    is_first, show_ignored = True, sys.unraisablehook

    def on_sigterm(*args) -> None:
        nonlocal is_first
        if [run for run in RunFolder.opened if run.stop()]:
            # Where all processes get the signal, those that load data end: torch would raise an error in this one.
            if hasattr(signal, "SIGCHLD"):
                handle(signal.SIGCHLD, lambda *args: None)  # Python complains of SIG_DFL if one is on its way
        elif is_first:
            is_first = False
            raise _Terminated
        is_first = False

    def on_ignored_error(ignored: Any) -> None:
        if ignored.exc_type is _Terminated:
            _thread.start_new_thread(raise_again, ())  # takes no lock, which may be held here
        else:
            show_ignored(ignored)

    def raise_again() -> None:
        nonlocal is_first
        time.sleep(0.1)
        if signal.getsignal(signal.SIGTERM) is on_sigterm:
            is_first = True
            signal.raise_signal(signal.SIGTERM)

    if threading.current_thread() is threading.main_thread():
        handle(signal.SIGTERM, on_sigterm)
        sys.unraisablehook = on_ignored_error
    try:
        yield
        if not is_first:  # something has caught what was raised
            raise _Terminated
    except (KeyboardInterrupt, TrainingStopped) as error:
        if PartialState().is_main_process:
            with tqdm.external_write_mode(sys.stderr):  # not at the end of a bar
                print_line("; ".join(["interrupted", *getattr(error, "__notes__", [])]))
        by_sigterm = isinstance(error, TrainingStopped | _Terminated)
        sys.exit(128 + (signal.SIGTERM if by_sigterm else signal.SIGINT))
    finally:
        sys.unraisablehook = show_ignored
        for number, handler in handlers.items():
            signal.signal(number, handler)
