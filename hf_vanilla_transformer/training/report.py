# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What a training prints: a summary of the data, then a table with a row for each evaluation."""

from collections import Counter
from itertools import chain

import numpy as np
import tqdm
from datasets import Dataset, DatasetDict
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import IntervalStrategy

from ..data.labels import label_names, problem_type_of
from ..data.problem_types import REGRESSION, SINGLE
from ..data.rows import column_array
from ..hub.record import epochs


MAX_LABELS = 20  # that are listed
TITLES = {"train_loss": "training loss", "eval_loss": "validation loss"}


def describe_data(data: DatasetDict, tokenized: DatasetDict, max_length: int) -> list[str]:
    """Return lines to print on the data: rows, labels, and lengths, which the tokenized rows have."""
    lengths = column_array(tokenized["train"], "length")
    return [
        "rows: " + ", ".join(f"{split} {len(rows):,}" for split, rows in data.items()),
        *([describe_labels(data["train"])] if "label" in data["train"].column_names else []),
        f"length: median {np.median(lengths):.0f} tokens, longest {lengths.max():,}; "
        f"{np.mean(lengths == max_length):.1%} reach the limit, {max_length:,}",
    ]


def describe_labels(rows: Dataset) -> str:
    kind, names, labels = problem_type_of(rows), label_names(rows), rows["label"][:]
    if kind == REGRESSION:
        return f"labels: numbers from {min(labels):g} to {max(labels):g}, mean {np.mean(labels):.4g}"
    counts = Counter(sorted(labels if kind == SINGLE else chain.from_iterable(labels)))
    listed = [f"{names[label]} {one:,} ({one / len(rows):.0%})" for label, one in counts.most_common(MAX_LABELS)]
    more = [f"{len(counts) - MAX_LABELS} more"] if len(counts) > MAX_LABELS else []
    return f"labels of train: {', '.join(listed + more)}"


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
