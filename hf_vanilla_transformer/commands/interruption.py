# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Runs that end before their last step: by Ctrl-C, by SIGTERM (Slurm, spot machines), on a full disk."""

import signal
import sys
import threading
from typing import Any

from accelerate import PartialState
from tqdm import tqdm
from transformers.trainer_utils import TrainOutput

from ..training.checkpoints import last_whole_checkpoint
from ..training.trainer import CheckedTrainer, TrainingStopped
from .arguments import print_line


class _Terminated(KeyboardInterrupt):
    """SIGTERM, where it has the effect of Ctrl-C."""


class OpenFolder:
    """A run's folder, while the run writes to it: a context that says in one line how an interrupted run goes on.

    Training that gets a SIGTERM ends after its step, with a checkpoint. Everything else ends at once, and so does
    training on Ctrl-C. The exit status is that of a shell for the signal, 143 or 130.

    Attributes:
        path: The folder.
        checkpoint: The folder of the checkpoint that the run resumes from; None for a new run.
    """

    def __init__(self, path: str, checkpoint: str | None):
        self.path, self.checkpoint = path, checkpoint
        self._trainer: CheckedTrainer | None = None
        self._terminated = False
        self._handlers: dict[signal.Signals, Any] = {}  # those of before

    def train(self, trainer: CheckedTrainer) -> TrainOutput:
        """Train, from the checkpoint if there is one.

        Raises:
            OSError: a checkpoint cannot be written, as on a full disk.
        """
        self._trainer = trainer
        try:
            trained = trainer.train(resume_from_checkpoint=self.checkpoint)
        except TrainingStopped as stop:  # here, or in a process that trains beside this one
            self._terminated = True
            raise _Terminated from stop
        except RuntimeError as error:
            if self._terminated:  # a process that loads data, or trains beside this one, has ended by the signal
                raise _Terminated from error
            if "inline_container" in str(error):  # torch's writer of files, which has no class of errors
                raise OSError(f"{self.path}: a checkpoint cannot be written, as on a full disk") from error
            raise
        finally:
            self._trainer = None
        if self._terminated:
            raise _Terminated
        return trained

    def __enter__(self) -> "OpenFolder":
        if threading.current_thread() is threading.main_thread():
            self._handle(signal.SIGTERM, self._on_sigterm)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        try:
            if isinstance(error, KeyboardInterrupt):
                if PartialState().is_main_process:
                    self._say_how_to_go_on()
                sys.exit(128 + (signal.SIGTERM if isinstance(error, _Terminated) else signal.SIGINT))
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)

    def _handle(self, number: signal.Signals, handler: Any) -> None:
        self._handlers.setdefault(number, signal.signal(number, handler) or signal.SIG_DFL)

    def _on_sigterm(self, *args) -> None:
        first, self._terminated = not self._terminated, True
        if self._trainer is not None:
            # Where all processes get the signal, those that load data end: torch would raise an error in this one.
            if hasattr(signal, "SIGCHLD"):
                self._handle(signal.SIGCHLD, lambda *args: None)  # Python complains of SIG_DFL if one is on its way
            self._trainer.stop()
        elif first:
            raise _Terminated

    def _say_how_to_go_on(self) -> None:
        checkpoint = last_whole_checkpoint(self.path)
        way = f"the same command with --resume_from_checkpoint goes on from {checkpoint}"
        with tqdm.external_write_mode(sys.stderr):  # not at the end of a bar
            print_line(f"interrupted; {way if checkpoint else 'no checkpoint was saved'}")
