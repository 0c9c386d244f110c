# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a classifier as an ONNX file: onnxruntime, transformers.js, OpenVINO, text-embeddings-inference run it."""

import contextlib
import copy
import io
import logging
import warnings
from pathlib import Path
from typing import Any

import onnx_ir
import torch
from transformers import PreTrainedModel
from transformers.exporters import OnnxConfig, OnnxExporter, OnnxRuntimeDynamicConfig, OnnxRuntimeQuantizer
from transformers.utils import CONFIG_NAME

from ..hub.record import save_json
from ..inference.folder import Tokenizers
from ..inference.onnx_engine import onnx_file
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel


# The version of ONNX's operators; the first one with GELU.
OPSET = 20


def write(
    model: VanillaTransformerPreTrainedModel, tokenizers: Tokenizers, folder: Path, quantize: str | None
) -> None:
    """Write the model's files; arguments and errors as in `Format`."""
    # With the names that other libraries look for.
    fields = model.config.to_dict() | {name: getattr(model.config, name) for name in model.config.attribute_map}
    fields.pop("auto_map", None)
    quantizer = None
    if quantize is not None:
        fields["transformers.js_config"] = {"dtype": "q8"}  # by default it looks for the float32 file
        # One scale a column keeps the logits nearest; `reduce_range` makes weights of seven bits, as in
        # `ctranslate2_writer.quantize_weights`.
        quantizer = OnnxRuntimeQuantizer(OnnxRuntimeDynamicConfig(per_channel=True, reduce_range=True))
    save_json(folder / CONFIG_NAME, fields)
    file = folder / onnx_file(quantize)
    file.parent.mkdir()
    save_graph(model, file, quantizer)


def save_graph(model: PreTrainedModel, file: Path, quantizer: Any = None) -> None:
    """Trace a classifier with two texts of three tokens, whose lengths may change later; write it into one file."""
    example: dict[str, Any] = {name: torch.ones(2, 3, dtype=torch.long) for name in ("input_ids", "attention_mask")}
    model = copy.deepcopy(model)
    model.set_attn_implementation("eager")  # a text without a real token has the same answer as in torch
    settings = OnnxConfig(dynamic=True, opset_version=OPSET, quantizer=quantizer)
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
            graph = OnnxExporter().export(model, example, settings).program
    finally:
        logging.disable(disabled)
    onnx_ir.passes.common.ClearMetadataAndDocStringPass()(graph)  # each node's place in the source code
    onnx_ir.save(graph, file)
