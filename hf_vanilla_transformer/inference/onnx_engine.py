# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of classifiers in ONNX files."""

from pathlib import Path

import numpy as np

from ..data.errors import named_errors
from .batches import batches_by_length
from .engine import Engine, Export, Rows


def onnx_file(quantize: str | None) -> str:
    """Return the path of the graph in an exported folder, as transformers.js and optimum name it."""
    return f"onnx/model{'_quantized' if quantize else ''}.onnx"


class OnnxEngine(Engine):
    """Computes with onnxruntime, on the CPU."""

    def __init__(self, folder: str, export: Export, num_threads: int):
        import onnxruntime

        self.facts, self.precision = export.facts, export.quantize or "float32"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads
        options.log_severity_level = 3  # errors only
        file = str(Path(folder, onnx_file(export.quantize)))
        with named_errors(file, "model"):
            self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def logits(self, input_ids: Rows, batch_size: int) -> np.ndarray:
        logits = np.empty((len(input_ids), len(self.facts.labels)), dtype=np.float32)
        for places, ids, mask in batches_by_length(input_ids, batch_size, self.facts.pad_token_id):
            (logits[places],) = self.session.run(["logits"], {"input_ids": ids, "attention_mask": mask})
        return logits
