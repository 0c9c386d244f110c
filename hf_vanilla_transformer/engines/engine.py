# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What every engine can do, and how a folder names its engine."""

import importlib
import json
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..loading import EXPORT_FILE


# The module and class of the engine that runs each format. "transformers" is a model of transformers itself.
ENGINES = {
    "ctranslate2": ("ctranslate2", "CTranslate2Engine"),
    "onnx": ("onnx", "OnnxEngine"),
    "transformers": ("pytorch", "TorchEngine"),
}
MODEL_CLASSES = {
    "classifier": "VanillaTransformerForSequenceClassification",
    "translator": "VanillaTransformerForConditionalGeneration",
}


class Engine(ABC):
    """Computes the answers of one model from token ids: `logits` of a classifier, `translate` of a translator.

    Attributes:
        config: The model's configuration; an exported folder has it in its record.
    """

    config: VanillaTransformerConfig

    @property
    def model_class(self) -> str:
        """The name of the class of the model whose answers these are."""
        return self.config.architectures[0]

    @classmethod
    @abstractmethod
    def load(cls, folder: str, export: dict[str, Any] | None, dtype: str) -> "Engine":
        """Load the engine of a folder; arguments and errors as in `load_engine`, `export` as in `read_export`."""

    def logits(self, input_ids: list[list[int]], batch_size: int) -> np.ndarray:
        """Score the labels of texts.

        Args:
            input_ids: The token ids of each text, of any number of texts, within the model's positions.
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
            input_ids: The source ids of each text, of any number of texts, each with at least one id.
            batch_size: Maximum number of texts in one pass.
            num_beams: Beams of the search; 1 is greedy.
            max_new_tokens: Greatest number of tokens of a translation; by default the model's limit.

        Returns:
            The target ids of each text, in the order of `input_ids`, without start, end and pad tokens.
        """
        raise NotImplementedError


def import_extra(module: str, name: str, extra: str) -> ModuleType:
    """Import a module of an optional extra.

    Args:
        module: The module.
        name: What the package is called.
        extra: The extra of this package that installs it.

    Returns:
        The module.

    Raises:
        ImportError: it is not installed; the message is the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{name} is not installed: pip install 'hf-vanilla-transformer[{extra}]'") from error


def end_tokens(config: VanillaTransformerConfig) -> list[int]:
    """The ids that end a translation; none where the model knows no end."""
    ends = config.eos_token_id
    return [] if ends is None else [ends] if isinstance(ends, int) else ends


def read_export(folder: str) -> dict[str, Any] | None:
    """The record of an exported folder; None where the folder holds a model of this package.

    Raises:
        ValueError: the record cannot be read, or names a format that this version does not know.
    """
    file = Path(folder, EXPORT_FILE)
    if not file.is_file():
        return None
    try:
        export = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: not JSON ({error})") from error
    if export.get("format") not in ENGINES:
        raise ValueError(f"{file}: format {export.get('format')!r} is none of {', '.join(ENGINES)}")
    return export


def load_engine(folder: str, dtype: str = "float32", kind: str | None = None) -> Engine:
    """Load the engine of a folder.

    Args:
        folder: A model's folder or Hub name, or an exported folder.
        dtype: The precision in which torch computes, `"float32"`, `"bfloat16"`, or `"auto"`, as in
            `precision.choose_precision`; other engines have their own.
        kind: What the model must be, `"classifier"` or `"translator"`; by default any.

    Returns:
        The engine.

    Raises:
        ValueError: as in `read_export`, or the model cannot be loaded, or it is of another kind, or an extra that the
            engine needs is not installed, or its precision was chosen by the export.
    """
    export = read_export(folder)
    module, name = ENGINES["transformers" if export is None else export["format"]]
    if dtype == "bfloat16" and module != "pytorch":
        raise ValueError(f"{folder}: dtype {dtype}: only torch has this choice, this is an export to {module}")
    engine_class = getattr(importlib.import_module(f".{module}", __package__), name)
    engine = engine_class.load(folder, export, dtype)
    if kind is not None:
        check_kind(engine, kind, folder)
    return engine


def check_kind(engine: Engine, kind: str, name: str) -> None:
    """Check that an engine can do what is asked of it.

    Args:
        engine: The engine.
        kind: `"classifier"` or `"translator"`.
        name: The model's name in messages.

    Raises:
        ValueError: it is another kind of model.
    """
    if engine.model_class != MODEL_CLASSES[kind]:
        raise ValueError(f"{name}: not a {kind} but a {engine.model_class}")
