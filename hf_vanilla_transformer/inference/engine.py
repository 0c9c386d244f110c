# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The interface of all engines, and which engine runs a folder. Nothing here imports torch."""

import importlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data.errors import DataError
from ..data.problem_types import PROBLEM_TYPES, SINGLE
from ..settings.tasks import CLASSIFICATION, FORMATS


# An export's record: `format`, `task`, `quantize`, the model's `config` and `generation`, `comparison`.
EXPORT_FILE = "export.json"
# Token ids, text by text.
Rows = list[list[int]]
# The subfolder of a translator's folder that holds the target tokenizer, where the target has its own vocabulary.
TARGET_TOKENIZER = "target_tokenizer"


@dataclass(frozen=True)
class ModelFacts:
    """What an engine and its callers need of a model's configuration and of how it generates."""

    model_class: str
    labels: list[str]
    problem_type: str
    pad_token_id: int | None
    start_token_id: int | None
    end_token_ids: list[int]  # these end a translation; empty if the model has no end token
    max_positions: int
    max_new_tokens: int  # of a translation, without the start token
    num_beams: int
    length_penalty: float
    vocab_size: int
    target_vocab_size: int | None  # None: source and target have one vocabulary

    @classmethod
    def of(cls, config: Any, generation: Any = None) -> "ModelFacts":
        """Read a configuration and, of a translator, its generation configuration, or the mappings of their fields.

        What the generation configuration sets counts, as in transformers' `generate`.
        """
        fields, chosen = (one if isinstance(one, Mapping) else one.to_dict() for one in (config, generation or {}))
        fields = {**fields, **{name: value for name, value in chosen.items() if value is not None}}
        positions = fields["max_position_embeddings"]
        target_positions = fields["decoder_max_position_embeddings"] or positions
        limit = fields.get("max_new_tokens") or fields.get("max_length", target_positions) - 1
        ends = fields["eos_token_id"]
        labels = fields.get("id2label") or {}
        return cls(
            model_class=(fields.get("architectures") or ["model without a class"])[0],
            labels=[str(labels[number]) for number in sorted(labels, key=int)],  # a file's keys are texts
            problem_type=fields.get("problem_type") or SINGLE,
            pad_token_id=fields["pad_token_id"],
            start_token_id=fields["decoder_start_token_id"],
            end_token_ids=[] if ends is None else [ends] if isinstance(ends, int) else ends,
            max_positions=positions,
            max_new_tokens=min(limit, target_positions - 1),
            num_beams=fields.get("num_beams") or 1,
            length_penalty=fields.get("length_penalty", 1.0),
            vocab_size=fields["vocab_size"],
            target_vocab_size=fields["decoder_vocab_size"],
        )


class Engine:
    """Runs one model on token ids: `logits` of a classifier, `translate` of a translator."""

    facts: ModelFacts
    precision: str  # of its weights
    device = "cpu"

    def logits(self, input_ids: Rows, batch_size: int) -> np.ndarray:
        """Return the logits of texts, (texts, labels), float32. A text may have no token."""
        raise NotImplementedError

    def translate(
        self, input_ids: Rows, batch_size: int, num_beams: int = 1, max_new_tokens: int | None = None, n_best: int = 1
    ) -> list[Rows]:
        """Return the `n_best` translations of each text, which has at least one token.

        A translation is its target ids from behind the start token to before the end token. By default, it has as many
        tokens as the model allows.
        """
        raise NotImplementedError

    def log_probabilities(self, input_ids: Rows, target_ids: Rows) -> list[np.ndarray]:
        """Return the log-probability of each token of a translation and of its end token, (tokens + 1,), float32."""
        raise NotImplementedError

    def until_end(self, row: list[int]) -> list[int]:
        """Return the ids before the first end token."""
        return next((row[:place] for place, token in enumerate(row) if token in self.facts.end_token_ids), row)


def log_probabilities(engine: Engine, sources: Rows, targets: Rows) -> np.ndarray:
    """Return the log-probability of every token of these translations, in one row."""
    parts = [slice(begin, begin + 8) for begin in range(0, len(sources), 8)]
    return np.concatenate([row for part in parts for row in engine.log_probabilities(sources[part], targets[part])])


@dataclass(frozen=True)
class Export:
    """What engines read of an export's record."""

    format: str
    task: str
    quantize: str | None
    facts: ModelFacts
    logits_without_tokens: list[float]  # empty for a translator

    def __post_init__(self):
        facts, labels = self.facts, self.facts.labels if self.task == CLASSIFICATION.name else []
        sizes = [facts.vocab_size, facts.vocab_size if facts.target_vocab_size is None else facts.target_vocab_size]
        limits = (*sizes, facts.max_positions, facts.max_new_tokens + 1, facts.num_beams)
        ids = [one for one in (facts.pad_token_id, facts.start_token_id, *facts.end_token_ids) if one is not None]
        for name, is_right in {
            "task": self.task in FORMATS[self.format].tasks,
            "quantize": self.quantize in (None, "int8"),
            "size or limit": all(type(one) is int and one >= 1 for one in limits),
            "special token": all(type(one) is int and 0 <= one < max(sizes) for one in ids),
            "problem_type": facts.problem_type in PROBLEM_TYPES,
            "length_penalty": math.isfinite(facts.length_penalty),
            "logits_without_tokens": len([*map(float, self.logits_without_tokens)]) == len(labels),
        }.items():
            if not is_right:
                raise DataError(f"a wrong {name}")


def read_export(folder: str | Path) -> Export | None:
    """Read the record of an exported folder; None if the folder holds a model of this package."""
    file = Path(folder, EXPORT_FILE)
    if not file.is_file():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        facts, logits = ModelFacts.of(record["config"], record["generation"]), record.get("logits_without_tokens", [])
        return Export(record["format"], record["task"], record["quantize"], facts, logits)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"{file}: not the record of an export ({error})") from error


def load_engine(folder: str, dtype: str = "float32", num_threads: int | None = None) -> Engine:
    """Load the engine of a folder.

    Args:
        folder: A model's folder or Hub name, or an exported folder.
        dtype: The precision of torch: `"float32"`, `"bfloat16"`, or `"auto"`, as in
            `settings.precision.choose_precision`; an export has its own.
        num_threads: Processor threads of an export's engine; by default `OMP_NUM_THREADS`, or one for each core.

    Raises:
        DataError: record or model cannot be read, or the export has another precision.
        ImportError: an extra that the engine needs is not installed.
    """
    export = read_export(folder)
    if export is None:
        from .torch_engine import TorchEngine

        return TorchEngine.load(folder, dtype)
    if dtype not in ("float32", "auto"):
        raise DataError(f"{folder}: dtype {dtype}: only torch has it, this is an export to {export.format}")
    module, name = FORMATS[export.format].engine.split(".")
    # As torch chooses them.
    num_threads = num_threads or int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    return getattr(importlib.import_module(f".{module}", __package__), name)(folder, export, num_threads)
