# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a model as ONNX files, which onnxruntime, transformers.js, OpenVINO and text-embeddings-inference run."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase
from transformers.utils import CONFIG_NAME

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..hub.record import save_json
from ..inference.engine import import_extra
from ..inference.onnx import onnx_file, open_session
from ..modeling_vanilla_transformer import (
    VanillaTransformerEmbedding,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerLearnedPositions,
    VanillaTransformerPreTrainedModel,
    VanillaTransformerSinusoidalPositions,
)
from . import quantization
from .graphs import past_names, quiet, save_classifier, save_decoder_with_past, save_encoder


quantizer = import_extra("onnxruntime.quantization", "onnxruntime", "onnx")

# The graphs of a translator, as optimum and transformers.js name them.
TRANSLATOR = "encoder_model", "decoder_model_merged"


def write(
    model: VanillaTransformerPreTrainedModel,
    tokenizers: tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase],
    folder: Path,
    quantize: str | None,
) -> None:
    """Write the model's files; arguments and errors as in `Format`."""
    if model.config.decoder_start_token_id is None:
        raise ValueError("decoder_start_token_id: the engine needs a start token")
    if isinstance(model, VanillaTransformerForSequenceClassification):
        parts = {"model": save_classifier}
    else:
        if model.config.eos_token_id is None:
            raise ValueError("eos_token_id: the engine needs an end token")
        parts = dict(zip(TRANSLATOR, (save_encoder, save_decoder_with_past), strict=True))
        model.generation_config.save_pretrained(folder)
    write_config(model, folder, quantize)
    (folder / "onnx").mkdir()
    for name, save in parts.items():
        target = folder / onnx_file(name, quantize)
        if quantize is None:
            save(model, target)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch, "float32.onnx")
            save(model, file)
            quantize_weights(file, target)


class OnnxTranslator:
    """Runs a translator's graphs for the proof; the programs that they are for have a search of their own."""

    def __init__(self, folder: Path, config: VanillaTransformerConfig, quantize: str | None):
        self.config = config
        self.encoder, self.decoder = (open_session(folder, onnx_file(name, quantize)) for name in TRANSLATOR)

    def target_logits(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, decoder_input_ids: torch.Tensor
    ) -> torch.Tensor:
        """(B, T, V): the scores after the first token, then after the others with the keys and values of before."""
        mask, names = attention_mask.numpy(), past_names(self.config)
        (states,) = self.encoder.run(None, {"input_ids": input_ids.numpy(), "attention_mask": mask})
        heads = self.config.decoder_attention_heads
        nothing = np.empty((len(mask), heads, 0, self.config.head_dim or self.config.d_model // heads), np.float32)
        past = dict.fromkeys(names, nothing)
        logits = []
        for part in filter(np.size, np.split(decoder_input_ids.numpy(), [1], axis=1)):
            feed = {"input_ids": part, "encoder_hidden_states": states, "encoder_attention_mask": mask}
            scores, *present = self.decoder.run(None, feed | past)
            past = dict(zip(names, present, strict=True))
            logits.append(torch.from_numpy(scores))
        return torch.cat(logits, dim=1)


def write_config(model: VanillaTransformerPreTrainedModel, folder: Path, quantize: str | None) -> None:
    """Write config.json with the names of fields that other libraries look for, and without code of the Hub."""
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
