# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The interface of all engines, and which engine runs a folder."""

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..errors import DataError
from ..modeling_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from .folder import EXPORT_FILE, check_config, labels_of, named_errors


# The task of each class of models, and what such a model is called.
TASKS = {
    VanillaTransformerForSequenceClassification.__name__: "classification",
    VanillaTransformerForConditionalGeneration.__name__: "translation",
}
NOUNS = {"classification": "classifier", "translation": "translator"}
# The module and class of the engine for each format and task; `transformers` has models of transformers' own classes.
ENGINES = {
    ("ctranslate2", "classification"): ("ctranslate2", "CTranslate2Engine"),
    ("ctranslate2", "translation"): ("ctranslate2", "CTranslate2Engine"),
    ("onnx", "classification"): ("onnx", "OnnxEngine"),
    ("transformers", "translation"): ("pytorch", "TorchEngine"),
}


class Engine:
    """Runs one model on token ids: `logits` of a classifier, `translate` of a translator.

    Attributes:
        config: The model's configuration; an exported folder has it in its record.
        num_beams: The number of beams in the model's generation configuration.
    """

    config: VanillaTransformerConfig
    num_beams = 1

    @property
    def model_class(self) -> str:
        """The name of the model's class."""
        return (self.config.architectures or ["model without a class"])[0]

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
        self, input_ids: list[list[int]], batch_size: int, num_beams: int = 1, max_new_tokens: int | None = None
    ) -> list[list[int]]:
        """Translate texts.

        Args:
            input_ids: The source ids of each text, at least one.
            batch_size: Maximum number of texts in one pass.
            num_beams: Beams of the search; 1 is greedy.
            max_new_tokens: Greatest number of tokens of a translation; by default the model's limit.

        Returns:
            The target ids of each text, in the order of `input_ids`, without start, end and pad tokens.
        """
        raise NotImplementedError


def import_extra(module: str, name: str, extra: str) -> ModuleType:
    """Import a module of the package called `name`; the ImportError is the command that installs it by an extra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{name} is not installed: pip install 'hf-vanilla-transformer[{extra}]'") from error


def end_tokens(config: VanillaTransformerConfig) -> list[int]:
    """The ids that end a translation; none where the model knows no end."""
    ends = config.eos_token_id
    return [] if ends is None else [ends] if isinstance(ends, int) else ends


def read_export(folder: str) -> dict[str, Any] | None:
    """The record of an exported folder; None where the folder holds a model of this package."""
    file = Path(folder, EXPORT_FILE)
    if not file.is_file():
        return None
    try:
        export = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{file}: not JSON ({error})") from error
    export = export if isinstance(export, dict) else {}
    formats = list(dict.fromkeys(format for format, _ in ENGINES))
    if export.get("format") not in formats:
        raise DataError(f"{file}: format {export.get('format')!r} is none of {', '.join(formats)}")
    kinds = {"task": str, "quantize": str | None, "config": dict, "generation": dict | None}
    if not all(name in export and isinstance(export[name], kind) for name, kind in kinds.items()):
        raise DataError(f"{file}: no whole record of an export: {', '.join(kinds)}")
    return export


def config_of(folder: str, export: dict[str, Any]) -> VanillaTransformerConfig:
    """The configuration in an export's record; a ValueError that names the folder if there is none."""
    with named_errors(folder, "model"):
        config = VanillaTransformerConfig.from_dict(export["config"])
    check_config(str(folder), config)
    return config


def load_engine(folder: str, dtype: str = "float32", task: str | None = None) -> Engine:
    """Load the engine of a folder.

    Args:
        folder: A model's folder or Hub name, or an exported folder.
        dtype: The precision of torch: `"float32"`, `"bfloat16"`, or `"auto"`, as in
            `inference.precision.choose_precision`; an export has its own.
        task: The task that the model must have, `"classification"` or `"translation"`; by default any.

    Returns:
        The engine.

    Raises:
        ValueError: record or model cannot be read, the task or the export's precision is another, or the export is
            for other programs.
        ImportError: an extra that the engine needs is not installed.
    """
    export = read_export(folder)
    module, name = "pytorch", "TorchEngine"
    if export is not None:
        place = export["format"], export["task"]
        if place not in ENGINES:
            formats = ", ".join(format for format, other in ENGINES if other == export["task"])
            noun = NOUNS.get(export["task"], export["task"])
            raise DataError(
                f"{folder}: a {noun} in the format {place[0]} is for other programs; here {noun}s run in {formats}"
            )
        module, name = ENGINES[place]
    if dtype == "bfloat16" and module != "pytorch":
        raise DataError(f"{folder}: dtype {dtype}: only torch has this choice, this is an export to {module}")
    engine_class = getattr(importlib.import_module(f".{module}", __package__), name)
    engine = engine_class.load(folder, export, dtype) if module == "pytorch" else engine_class(folder, export)
    if task is not None:
        check_task(engine, task, folder)
    if task == "classification":
        labels_of(engine.config)  # which refuses names that no line of answers can hold
    return engine


def check_task(engine: Engine, task: str, name: str) -> None:
    """Raise a `ValueError` that begins with a model's name if it is for another task."""
    if TASKS.get(engine.model_class) != task:
        raise DataError(f"{name}: not a {NOUNS[task]} but a {engine.model_class}")
