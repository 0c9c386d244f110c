# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a model's parts as ONNX graphs.

The graphs are traced with eager attention, which gives a text without a real token the same answer as in torch.
Graphs of `scaled_dot_product_attention` do not.

Models are in float32, on the CPU, in evaluation mode. The page's graphs also return attentions, and store a weight in
float16 if that holds it exactly, as after a save in float16: half the size, the same outputs.

Shapes: B texts, S source tokens, T target tokens, D = `d_model`, V target vocabulary. Batch and lengths are dynamic.
Ids and masks are int64, everything else is float32.
"""

import contextlib
import copy
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import Dim

from ..inference.engine import import_extra
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel


onnx_ir = import_extra("onnx_ir", "onnxscript", "onnx")

# The version of ONNX's operators; the first one with GELU.
OPSET = 20
Tensors = tuple[torch.Tensor, ...]


def save_classifier(model: VanillaTransformerPreTrainedModel, file: Path, *, for_page: bool = False) -> None:
    """Write a classifier. Inputs `input_ids`, `attention_mask` (B, S); output `logits` (B, labels).

    For the page also `encoder_attentions` (B, layers, heads, S, S), `cross_attentions` (B, layers, heads, 1, S).
    """

    def classify(model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Tensors:
        # The model would make the start token itself, with a batch size that is fixed in the graph.
        start = input_ids.new_full((input_ids.shape[0], 1), model.config.decoder_start_token_id)
        outputs = model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_inputs_embeds=model.model.decoder.embed_tokens(start),
            output_attentions=for_page,
        )
        attentions = (outputs.encoder_attentions, outputs.cross_attentions) if for_page else ()
        return outputs.logits, *(torch.stack(layers, 1) for layers in attentions)

    outputs = ["logits", "encoder_attentions", "cross_attentions"] if for_page else ["logits"]
    _save(model, classify, _source(model), outputs, file, half_weights=for_page)


def save_encoder(model: VanillaTransformerPreTrainedModel, file: Path) -> None:
    """Write a translator's encoder. Inputs `input_ids`, `attention_mask` (B, S); output `last_hidden_state`."""

    def encode(model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Tensors:
        return (model.get_encoder()(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state,)

    _save(model, encode, _source(model), ["last_hidden_state"], file, half_weights=True)


def save_decoder(model: VanillaTransformerPreTrainedModel, file: Path) -> None:
    """Write a translator's decoder without a cache.

    Inputs `input_ids` (B, T), `encoder_hidden_states` (B, S, D), `encoder_attention_mask` (B, S); outputs `logits`
    (B, T, V), `cross_attentions` (B, layers, heads, T, S).
    """

    def decode(model: Any, input_ids: torch.Tensor, states: torch.Tensor, mask: torch.Tensor) -> Tensors:
        outputs = model(
            decoder_input_ids=input_ids,
            encoder_outputs=(states,),
            attention_mask=mask,
            use_cache=False,
            output_attentions=True,
        )
        return outputs.logits, torch.stack(outputs.cross_attentions, 1)

    batch = Dim("batch_size")
    target = {0: batch, 1: Dim("decoder_sequence_length", max=model.config.max_target_positions)}
    source = {0: batch, 1: Dim("encoder_sequence_length")}
    inputs = {
        "input_ids": (torch.ones(2, 3, dtype=torch.long), target),
        "encoder_hidden_states": (torch.zeros(2, 4, model.config.d_model), source),
        "encoder_attention_mask": (torch.ones(2, 4, dtype=torch.long), source),
    }
    _save(model, decode, inputs, ["logits", "cross_attentions"], file, half_weights=True)


# The inputs of a graph, in order: of each an example, and its dynamic axes.
Inputs = dict[str, tuple[torch.Tensor, dict[int, Any]]]


def _source(model: VanillaTransformerPreTrainedModel) -> Inputs:
    axes = {0: Dim("batch_size"), 1: Dim("sequence_length", max=model.config.max_position_embeddings)}
    # Not one tensor twice, or the graph takes the ids for the mask.
    return {name: (torch.ones(2, 2, dtype=torch.long), axes) for name in ("input_ids", "attention_mask")}


class _Graph(nn.Module):
    """What `compute` makes of a model and the graph's inputs."""

    def __init__(self, model: nn.Module, compute: Callable[..., Tensors]):
        super().__init__()
        self.model, self.compute = model, compute

    def forward(self, *inputs: torch.Tensor) -> Tensors:
        return self.compute(self.model, *inputs)


def _save(
    model: VanillaTransformerPreTrainedModel,
    compute: Callable[..., Tensors],
    inputs: Inputs,
    outputs: list[str],
    file: Path,
    half_weights: bool,
) -> None:
    """Trace `compute`, and write the graph with the model's weights into one file."""
    model = copy.deepcopy(model)
    model.set_attn_implementation("eager")
    examples, axes = zip(*inputs.values(), strict=True)
    with quiet():
        program: Any = torch.onnx.export(
            _Graph(model, compute).eval(),
            examples,
            dynamic_shapes=(axes,),
            input_names=list(inputs),
            output_names=outputs,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    onnx_ir.passes.common.ClearMetadataAndDocStringPass()(program.model)  # each node's place in the source code
    if half_weights:
        _halve_weights(program.model)
    program.save(str(file), external_data=False)


def _halve_weights(model) -> None:
    """Store the initializers that float16 holds exactly in float16, and cast them in the graph."""
    for name, weight in list(model.graph.initializers.items()):
        values = weight.const_value.numpy()
        halved = values.clip(-65504, 65504).astype("float16")  # float16's range
        if values.dtype != "float32" or (halved != values).any():
            continue
        stored = onnx_ir.Value(name=f"{name}_float16", const_value=onnx_ir.tensor(halved))
        cast = onnx_ir.node("Cast", [stored], {"to": onnx_ir.DataType.FLOAT})
        cast.outputs[0].name = name
        weight.replace_all_uses_with(cast.outputs[0])
        del model.graph.initializers[name]
        model.graph.initializers[stored.name] = stored
        model.graph.insert_before(model.graph[0], cast)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the notes of exporter and quantizer."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
