# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What a training shows: a table with a row for each evaluation, and on a terminal a progress bar."""

import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import IntervalStrategy

from ..hub.record import epochs


TITLES = {"train_loss": "training loss", "eval_loss": "validation loss"}


class TableCallback(TrainerCallback):
    """Prints a row for each evaluation of a training; without evaluations, for each logged loss."""

    _bar: tqdm.tqdm | None = None
    _columns: tuple[str, ...] = ()

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        # disable=None: no bar unless standard error is a terminal.
        disable = args.disable_tqdm or not state.is_world_process_zero or None
        self._bar = tqdm.tqdm(total=state.max_steps, initial=state.global_step, disable=disable, leave=False)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        self._bar.update(state.global_step - self._bar.n)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        self._bar.close()
        self._bar = None

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs) -> None:
        wanted = "loss" if args.eval_strategy == IntervalStrategy.NO else "eval_loss"
        if self._bar is None or wanted not in kwargs["logs"] or not state.is_world_process_zero:
            return
        row = epochs(state.log_history)[-1]
        titles = {name: f"{TITLES.get(name, name.removeprefix('eval_').replace('_', ' ')):>8}" for name in row}
        cells = {name: "" if value is None else f"{value:.4f}" for name, value in row.items()}
        cells |= {"epoch": f"{row['epoch']:g}", "step": f"{row['step']:,}"}
        lines = ["  ".join(f"{cells[name]:>{len(title)}}" for name, title in titles.items())]
        if self._columns != (*row,):
            self._columns = (*row,)
            lines.insert(0, "  ".join(titles.values()))
        with tqdm.tqdm.external_write_mode():
            print(*lines, sep="\n", flush=True)
