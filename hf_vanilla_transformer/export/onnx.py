# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a classifier as an ONNX file: onnxruntime, transformers.js, OpenVINO, text-embeddings-inference run it."""

import tempfile
from pathlib import Path

import torch
from transformers.utils import CONFIG_NAME

from ..hub.record import save_json
from ..inference.engine import import_extra
from ..inference.folder import Tokenizers
from ..inference.onnx import onnx_file
from ..modeling_vanilla_transformer import (
    VanillaTransformerEmbedding,
    VanillaTransformerLearnedPositions,
    VanillaTransformerPreTrainedModel,
    VanillaTransformerSinusoidalPositions,
)
from . import quantization
from .graphs import quiet, save_classifier


quantizer = import_extra("onnxruntime.quantization", "onnxruntime", "onnx")


def write(
    model: VanillaTransformerPreTrainedModel, tokenizers: Tokenizers, folder: Path, quantize: str | None
) -> None:
    """Write the model's files; arguments and errors as in `Format`."""
    write_config(model, folder, quantize)
    target = folder / onnx_file(quantize)
    target.parent.mkdir()
    if quantize is None:
        save_classifier(model, target)
        return
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "float32.onnx")
        save_classifier(model, file)
        quantize_weights(file, target)


def write_config(model: VanillaTransformerPreTrainedModel, folder: Path, quantize: str | None) -> None:
    """Write config.json with the field names that other libraries look for, and without `auto_map`."""
    config = model.config
    fields = config.to_dict() | {
        "architectures": [type(model).__name__],
        **{name: getattr(config, name) for name in config.attribute_map},
    }
    fields.pop("auto_map", None)
    if quantize is not None:
        fields["transformers.js_config"] = {"dtype": "q8"}  # or it looks for the float32 file
    save_json(folder / CONFIG_NAME, fields)


def quantize_weights(source: Path, target: Path) -> None:
    """Quantize the weights of a graph to int8; onnxruntime quantizes the activations while it runs.

    One scale a column keeps the logits nearest; `reduce_range` makes the weights those of `quantize_rows`.
    """
    with quiet():
        quantizer.quantize_dynamic(
            source, target, weight_type=quantizer.QuantType.QInt8, per_channel=True, reduce_range=True
        )


def rounded(model: VanillaTransformerPreTrainedModel) -> VanillaTransformerPreTrainedModel:
    """The model in torch that rounds as onnxruntime does; as in `Format`."""
    tables = VanillaTransformerEmbedding, VanillaTransformerSinusoidalPositions, VanillaTransformerLearnedPositions
    return quantization.rounded(model, round_matrix, dict.fromkeys(tables, round_matrix))


def round_matrix(matrix: torch.Tensor) -> torch.Tensor:
    """Round to integers from 0 to 255, one scale and one zero for the whole tensor: ONNX's DynamicQuantizeLinear."""
    lowest, highest = matrix.min().clamp(max=0), matrix.max().clamp(min=0)
    scale = ((highest - lowest) / 255).clamp(min=quantization.SMALLEST)
    zero = (-lowest / scale).round()
    return (((matrix / scale).round() + zero).clamp(0, 255) - zero) * scale
