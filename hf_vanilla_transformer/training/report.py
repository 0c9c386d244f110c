# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What a training prints: a summary of the data, then a table with a row for each evaluation."""

import copy
from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
import tqdm
from datasets import Dataset, DatasetDict
from transformers import PreTrainedTokenizerBase, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import IntervalStrategy

from ..data.labels import label_names, problem_type_of
from ..hub.record import epochs
from ..tasks import REGRESSION, SINGLE


# Texts whose tokens are counted, and labels that are listed.
SAMPLE, MAX_LABELS = 1000, 20
TITLES = {"train_loss": "training loss", "eval_loss": "validation loss"}


def describe_data(data: DatasetDict, tokenizers: Mapping[str, PreTrainedTokenizerBase]) -> list[str]:
    """Return lines to print on data that are not tokenized yet: rows, labels and lengths.

    `tokenizers` are those of each column of texts, `text` or `source` and `target`.
    """
    train = data["train"]
    rows = "rows: " + ", ".join(f"{split} {len(rows):,}" for split, rows in data.items())
    labels = _describe_labels(train) if "label" in train.column_names else []
    return [rows, *labels, *(_describe_lengths(train, column, one) for column, one in tokenizers.items())]


def _describe_labels(rows: Dataset) -> Iterator[str]:
    kind, names, labels = problem_type_of(rows), label_names(rows), rows["label"][:]
    if kind == REGRESSION:
        yield f"labels: numbers from {min(labels):g} to {max(labels):g}, mean {np.mean(labels):.4g}"
        return
    flat = labels if kind == SINGLE else [*chain.from_iterable(labels)]
    counts = np.bincount(np.asarray(flat, dtype=int), minlength=len(names))
    order = np.argsort(-counts, kind="stable")[:MAX_LABELS]
    listed = [f"{names[label]} {counts[label]:,} ({counts[label] / len(rows):.0%})" for label in order]
    more = [f"{len(names) - MAX_LABELS} more"] if len(names) > MAX_LABELS else []
    yield f"labels of train: {', '.join(listed + more)}"


def _describe_lengths(rows: Dataset, column: str, tokenizer: PreTrainedTokenizerBase) -> str:
    size, max_length = min(SAMPLE, len(rows)), tokenizer.model_max_length
    texts = rows[(np.arange(size) * len(rows) // size).tolist()][column]
    # A copy: `save_pretrained` writes how a tokenizer cut its last texts.
    ids = copy.deepcopy(tokenizer)(texts, truncation=False, padding=False, verbose=False)["input_ids"]
    lengths = np.array([*map(len, ids)])
    cut = f"{np.mean(lengths > max_length):.1%} are cut to {max_length:,}"
    sample = f" (of {size:,} rows)" if size < len(rows) else ""
    return f"length of {column}: median {np.median(lengths):.0f} tokens, longest {lengths.max():,}; {cut}{sample}"


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
