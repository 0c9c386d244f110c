# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of classifiers in ONNX files."""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import named_errors
from .batches import batches_by_length
from .engine import Engine, ModelFacts, default_threads


def onnx_file(quantize: str | None) -> str:
    """Return the path of the graph in an exported folder, as transformers.js and optimum name it."""
    return f"onnx/model{'_quantized' if quantize else ''}.onnx"


def open_session(folder: str | Path, name: str, num_threads: int | None = None) -> Any:
    """Open a graph for onnxruntime, on the CPU; `num_threads` as in `load_engine`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads or default_threads()
    options.log_severity_level = 3  # errors only
    with named_errors(f"{folder}: {name}", "model"):
        return onnxruntime.InferenceSession(str(Path(folder, name)), options, providers=["CPUExecutionProvider"])


class OnnxEngine(Engine):
    """Computes with onnxruntime."""

    def __init__(self, folder: str, export: dict[str, Any], num_threads: int | None = None):
        self.facts = ModelFacts.of(export["config"])
        self.session = open_session(folder, onnx_file(export["quantize"]), num_threads)

    def logits(self, input_ids: list[list[int]], batch_size: int) -> np.ndarray:
        logits = np.empty((len(input_ids), len(self.facts.labels)), dtype=np.float32)
        for places, ids, mask in batches_by_length(input_ids, batch_size, self.facts.pad_token_id):
            (logits[places],) = self.session.run(["logits"], {"input_ids": ids, "attention_mask": mask})
        return logits
