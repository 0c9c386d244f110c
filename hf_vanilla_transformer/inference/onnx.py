# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of classifiers in ONNX files."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from .batches import answer_by_length
from .engine import Engine, config_of, import_extra
from .folder import named_errors


def onnx_file(quantize: str | None) -> str:
    """The path of the graph in an exported folder, as transformers.js and optimum name it."""
    return f"onnx/model{'_quantized' if quantize else ''}.onnx"


def open_session(folder: str | Path, name: str) -> Any:
    """Open a graph for onnxruntime, on the CPU, with as many threads as torch would use."""
    onnxruntime = import_extra("onnxruntime", "onnxruntime", "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3  # errors only
    with named_errors(f"{folder}: {name}", "model"):
        return onnxruntime.InferenceSession(str(Path(folder, name)), options, providers=["CPUExecutionProvider"])


class OnnxEngine(Engine):
    """Computes with onnxruntime."""

    def __init__(self, folder: str, export: dict[str, Any]):
        self.config = config_of(folder, export)
        self.session = open_session(folder, onnx_file(export["quantize"]))

    def logits(self, input_ids: list[list[int]], batch_size: int) -> np.ndarray:
        def answer(ids: torch.Tensor, mask: torch.Tensor) -> np.ndarray:
            return self.session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0]

        return np.stack(answer_by_length(input_ids, batch_size, self.config.pad_token_id, answer))
