# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The interface of all engines, and which engine runs a folder. Nothing here imports torch."""

import importlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..data.lines import CONTROLS
from ..errors import DataError, named_errors
from ..tasks import FORMATS, OWN, SINGLE, TASKS, Format, task_of


# An export's record: `format`, `task`, `quantize`, the model's `config` and `generation`, `comparison`.
EXPORT_FILE = "export.json"
# The subfolder of a translator's folder that holds the target tokenizer, where the target has its own vocabulary.
TARGET_TOKENIZER = "target_tokenizer"
# Of torch; `inference.precision` chooses for "auto".
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class ModelFacts:
    """What an engine and its callers need of a model's configuration."""

    model_class: str
    labels: list[str]
    problem_type: str
    pad_token_id: int | None
    start_token_id: int | None
    end_token_ids: list[int]  # that end a translation; none where the model knows no end
    max_positions: int
    max_target_positions: int
    vocab_size: int
    target_vocab_size: int
    has_target_vocabulary: bool

    @classmethod
    def of(cls, config: Any) -> "ModelFacts":
        """Read a configuration, or the mapping of its fields."""
        fields = config if isinstance(config, Mapping) else config.to_dict()
        positions = fields["max_position_embeddings"]
        ends = fields["eos_token_id"]
        return cls(
            model_class=(fields.get("architectures") or ["model without a class"])[0],
            labels=_names_of_labels(fields.get("id2label") or {}),
            problem_type=fields.get("problem_type") or SINGLE,
            pad_token_id=fields["pad_token_id"],
            start_token_id=fields["decoder_start_token_id"],
            end_token_ids=[] if ends is None else [ends] if isinstance(ends, int) else ends,
            max_positions=positions,
            max_target_positions=fields["decoder_max_position_embeddings"] or positions,
            vocab_size=fields["vocab_size"],
            target_vocab_size=fields["decoder_vocab_size"] or fields["vocab_size"],
            has_target_vocabulary=fields["decoder_vocab_size"] is not None,
        )


def labels_of(config: Any) -> list[str]:
    """The names of a classifier's labels, by number.

    Raises:
        DataError: one has a line break, a tab or another control character, with which no line can hold it.
    """
    return check_labels(_names_of_labels(config.id2label))


def _names_of_labels(id2label: Mapping[Any, Any]) -> list[str]:
    return [str(id2label[number]) for number in sorted(id2label, key=int)]  # a file's keys are texts


def check_labels(labels: list[str]) -> list[str]:
    if wrong := [label for label in labels if CONTROLS.search(label)]:
        raise DataError(f"id2label: the name {wrong[0]!r} has a line break or another control character: rename it")
    return labels


class Engine:
    """Runs one model on token ids: `logits` of a classifier, `translate` of a translator.

    Attributes:
        facts: What is known of the model.
        num_beams: The number of beams in the model's generation configuration.
        survives_fork: Whether a forked process can use the engine of its parent.
    """

    facts: ModelFacts
    num_beams = 1
    survives_fork = True

    @classmethod
    def load(
        cls, folder: str, export: dict[str, Any] | None, *, dtype: str = "float32", num_threads: int | None = None
    ) -> "Engine":
        """Load a folder; `export` is its record where it is an export. Arguments as in `load_engine`."""
        raise NotImplementedError

    def logits(self, input_ids: list[list[int]], batch_size: int) -> np.ndarray:
        """Score the labels of texts.

        Args:
            input_ids: The token ids of each text, at most as many as the model has positions; none of an empty text.
            batch_size: Maximum number of texts in one pass.

        Returns:
            (texts, labels), float32, in the order of `input_ids`.
        """
        raise NotImplementedError

    def translate(
        self,
        input_ids: list[list[int]],
        batch_size: int,
        num_beams: int = 1,
        max_new_tokens: int | None = None,
        num_return_sequences: int = 1,
    ) -> list[list[list[int]]]:
        """Translate texts.

        Args:
            input_ids: The source ids of each text, at least one.
            batch_size: Maximum number of texts in one pass.
            num_beams: Beams of the search; 1 is greedy.
            max_new_tokens: Greatest number of tokens of a translation; by default the model's limit.
            num_return_sequences: Translations of each text, at most as many as beams.

        Returns:
            For each text, in the order of `input_ids`, the target ids of its translations, the best first, from
            behind the start token to before the end token.
        """
        raise NotImplementedError

    def log_probabilities(self, input_ids: list[list[int]], target_ids: list[list[int]]) -> list[np.ndarray]:
        """The log-probability of each token of given translations, and of the end token after it.

        Each source has at least one id, and each translation fewer than there are target positions.

        Returns:
            For each text (tokens + 1,), float32.
        """
        raise NotImplementedError

    def cross_attention(self, input_ids: list[list[int]], target_ids: list[list[int]]) -> list[np.ndarray]:
        """What each token of given translations reads of its source when it is written: the mean of a layer's heads.

        The layer is `alignments.alignment_layer`. Sources and translations are as in `log_probabilities`.

        Returns:
            For each text (T, S), float32: rows of probabilities.
        """
        raise NotImplementedError

    def until_end(self, row: list[int]) -> list[int]:
        """The ids before the first end token."""
        return next((row[:place] for place, token in enumerate(row) if token in self.facts.end_token_ids), row)


def import_extra(module: str, name: str, extra: str) -> ModuleType:
    """Import a module of the package called `name`; the ImportError is the command that installs it by an extra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{name} is not installed: pip install 'hf-vanilla-transformer[{extra}]'") from error


def default_threads() -> int:
    """As many threads as torch uses, or would use, without an import of torch."""
    if torch := sys.modules.get("torch"):
        return torch.get_num_threads()
    if (given := os.environ.get("OMP_NUM_THREADS", "")).isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_export(folder: str | Path) -> dict[str, Any] | None:
    """The record of an exported folder; None where the folder holds a model of this package."""
    file = Path(folder, EXPORT_FILE)
    if not file.is_file():
        return None
    try:
        export = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{file}: not JSON ({error})") from error
    export = export if isinstance(export, dict) else {}
    if export.get("format") not in [*FORMATS]:
        raise DataError(f"{file}: format {export.get('format')!r} is none of {', '.join(FORMATS)}")
    kinds = {"task": str, "quantize": str | None, "config": dict, "generation": dict | None}
    if not all(name in export and isinstance(export[name], kind) for name, kind in kinds.items()):
        raise DataError(f"{file}: no whole record of an export: {', '.join(kinds)}")
    return export


def facts_of_export(folder: str, export: dict[str, Any]) -> ModelFacts:
    """What an export's record says of the model; a DataError that names the folder if that is not whole."""
    with named_errors(folder, "model"):
        return ModelFacts.of(export["config"])


def format_of(export: dict[str, Any] | None) -> Format:
    """The format of a folder: `OWN`, or that of the export whose record it has."""
    return OWN if export is None else FORMATS[export["format"]]


def load_engine(
    folder: str, dtype: str = "float32", task: str | None = None, num_threads: int | None = None
) -> Engine:
    """Load the engine of a folder.

    Args:
        folder: A model's folder or Hub name, or an exported folder.
        dtype: The precision of torch: `"float32"`, `"bfloat16"`, or `"auto"`, as in
            `inference.precision.choose_precision`; an export has its own.
        task: The task that the model must have, `"classification"` or `"translation"`; by default any.
        num_threads: Processor threads of an export's engine; by default as many as torch uses.

    Returns:
        The engine.

    Raises:
        DataError: record or model cannot be read, the task or the export's precision is another, or the export is
            for other programs.
        ImportError: an extra that the engine needs is not installed.
    """
    export = read_export(folder)
    form = format_of(export)
    if export is not None and export["task"] not in form.tasks:
        formats = ", ".join(other.name for other in FORMATS.values() if export["task"] in other.tasks)
        noun = TASKS[export["task"]].noun if export["task"] in TASKS else export["task"]
        raise DataError(
            f"{folder}: a {noun} in the format {form.name} is for other programs; here {noun}s run in {formats}"
        )
    if dtype == "bfloat16" and not form.runs_in_torch:
        raise DataError(f"{folder}: dtype {dtype}: only torch has this choice, this is an export to {form.name}")
    module, name = form.engine.split(".")
    engine_class = getattr(importlib.import_module(f".{module}", __package__), name)
    engine = engine_class.load(folder, export, dtype=dtype, num_threads=num_threads)
    if task is not None:
        check_task(engine, task, folder)
    return engine


def check_task(engine: Engine, task: str, name: str) -> None:
    """Raise a `DataError` that begins with a model's name if it is for another task, or cannot name its labels."""
    if (found := task_of(engine.facts.model_class)) is None or found.name != task:
        raise DataError(f"{name}: not a {TASKS[task].noun} but a {engine.facts.model_class}")
    if task == "classification":
        check_labels(engine.facts.labels)
