# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a model's parts as ONNX graphs.

The graphs are traced with eager attention: its rule for a query whose keys are all masked is written in the model, so
that a row without a real token comes out as in torch. In graphs made of `scaled_dot_product_attention` it does not.

Models are in float32, on the CPU, in evaluation mode. `half_weights` stores the weights that float16 holds exactly,
such as those of a model that was saved in float16, in float16: half the size, the same outputs.

Shapes: B texts, S source tokens, T target tokens, P earlier target tokens, D = `d_model`, V target vocabulary. Batch
and lengths are dynamic. Ids and masks are int64, everything else is float32.
"""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import Dim
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..inference.engine import import_extra
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel


onnx_ir = import_extra("onnx_ir", "onnxscript", "onnx")

# The version of ONNX's operators; the first one with GELU.
OPSET = 20


def past_names(config: VanillaTransformerConfig, prefix: str = "past_key_values") -> list[str]:
    """The names of a decoder's keys and values, those of a layer one after the other, as optimum gives them."""
    parts = [f"{side}.{part}" for side in ("decoder", "encoder") for part in ("key", "value")]
    return [f"{prefix}.{layer}.{part}" for layer in range(config.decoder_layers) for part in parts]


class _Classifier(nn.Module):
    def __init__(self, model: VanillaTransformerPreTrainedModel, attentions: bool):
        super().__init__()
        self.model = model
        self.attentions = attentions

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        # The model would make the start token itself, with a batch size that is fixed in the graph.
        start = input_ids.new_full((input_ids.shape[0], 1), self.model.config.decoder_start_token_id)
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_inputs_embeds=self.model.model.decoder.embed_tokens(start),
            output_attentions=self.attentions,
        )
        if not self.attentions:
            return (outputs.logits,)
        return outputs.logits, torch.stack(outputs.encoder_attentions, 1), torch.stack(outputs.cross_attentions, 1)


class _Encoder(nn.Module):
    def __init__(self, model: VanillaTransformerPreTrainedModel):
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = self.encoder(input_ids=input_ids, attention_mask=attention_mask, return_dict=True)
        return (outputs.last_hidden_state,)


class _Decoder(nn.Module):
    def __init__(self, model: VanillaTransformerPreTrainedModel):
        super().__init__()
        self.decoder = model.get_decoder()
        self.lm_head = model.lm_head

    def forward(
        self, input_ids: torch.Tensor, encoder_hidden_states: torch.Tensor, encoder_attention_mask: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        outputs = self.decoder(
            input_ids=input_ids,
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask,
            use_cache=False,
            output_attentions=True,
            return_dict=True,
        )
        return self.lm_head(outputs.last_hidden_state), torch.stack(outputs.cross_attentions, 1)


class _DecoderWithPast(nn.Module):
    """The decoder after P target tokens, whose keys and values are given, and those of C source tokens.

    C is 0 at first and S afterwards; the other S - C are computed: one graph without branches serves all steps.
    """

    def __init__(self, model: VanillaTransformerPreTrainedModel):
        super().__init__()
        self.decoder = model.get_decoder()
        self.lm_head = model.lm_head

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_hidden_states: torch.Tensor,
        encoder_attention_mask: torch.Tensor,
        past_key_values: list[torch.Tensor],
    ) -> tuple[torch.Tensor, ...]:
        layers = [past_key_values[place : place + 4] for place in range(0, len(past_key_values), 4)]
        cache = EncoderDecoderCache(
            DynamicCache([(layer[0], layer[1]) for layer in layers]),
            DynamicCache([(layer[2], layer[3]) for layer in layers]),
        )
        # The cache has source tokens, but is to take more.
        cache.is_updated = dict.fromkeys(cache.is_updated, False)
        lowest = torch.finfo(encoder_hidden_states.dtype).min
        outputs = self.decoder(
            input_ids=input_ids,
            encoder_hidden_states=encoder_hidden_states[:, past_key_values[2].shape[2] :],
            # As a layer takes it: the decoder would make one for these source tokens only.
            encoder_attention_mask=torch.where(encoder_attention_mask[:, None, None] == 0, lowest, 0.0),
            cache=cache,
            use_cache=True,
            return_dict=True,
        )
        cached: Any = zip(cache.self_attention_cache.layers, cache.cross_attention_cache.layers, strict=True)
        present = [states for own, cross in cached for states in (own.keys, own.values, cross.keys, cross.values)]
        return self.lm_head(outputs.last_hidden_state), *present


def save_classifier(
    model: VanillaTransformerPreTrainedModel, file: Path, *, attentions: bool = False, half_weights: bool = False
) -> None:
    """Write a classifier. Inputs `input_ids`, `attention_mask` (B, S); output `logits` (B, labels).

    With `attentions` also `encoder_attentions` (B, layers, heads, S, S), `cross_attentions` (B, layers, heads, 1, S).
    """
    outputs = ["logits", "encoder_attentions", "cross_attentions"] if attentions else ["logits"]
    _save(_Classifier(model, attentions), *_source_inputs(model), outputs, file, half_weights)


def save_encoder(model: VanillaTransformerPreTrainedModel, file: Path, *, half_weights: bool = False) -> None:
    """Write a translator's encoder. Inputs `input_ids`, `attention_mask` (B, S); output `last_hidden_state`."""
    _save(_Encoder(model), *_source_inputs(model), ["last_hidden_state"], file, half_weights)


def save_decoder(model: VanillaTransformerPreTrainedModel, file: Path, *, half_weights: bool = False) -> None:
    """Write a translator's decoder without a cache.

    Inputs `input_ids` (B, T), `encoder_hidden_states` (B, S, D), `encoder_attention_mask` (B, S); outputs `logits`
    (B, T, V), `cross_attentions` (B, layers, heads, T, S).
    """
    inputs, axes = _target_inputs(model, 3, 4, max=model.config.max_target_positions)
    _save(_Decoder(model), inputs, axes, ["logits", "cross_attentions"], file, half_weights)


def save_decoder_with_past(model: VanillaTransformerPreTrainedModel, file: Path) -> None:
    """Write a translator's decoder with a cache, in one graph for the first token and for all others.

    Inputs as of `save_decoder`, but here T tokens follow P earlier ones, and the keys and values of both sides,
    `past_key_values.LAYER.decoder.key` (B, heads, P, `head_dim`) and so on, `past_key_values.LAYER.encoder.key`
    (B, heads, 0 or S, `head_dim`) and so on. Outputs `logits` (B, T, V), and the same for the next call,
    `present.LAYER.decoder.key` and so on.
    """
    config, names = model.config, past_names(model.config)
    inputs, axes = _target_inputs(model, 2, 5)
    own = {0: axes["input_ids"][0], 2: Dim("past_decoder_sequence_length")}
    cross = {0: axes["input_ids"][0], 2: Dim("past_encoder_sequence_length")}
    heads = config.decoder_attention_heads
    past = torch.zeros(2, heads, 3, config.head_dim or config.d_model // heads)
    _save(
        _DecoderWithPast(model),
        inputs | {"past_key_values": [past.clone() for _ in names]},
        axes | {"past_key_values": [own if ".decoder." in name else cross for name in names]},
        ["logits", *past_names(config, "present")],
        file,
        names=[*inputs, *names],
    )


def _target_inputs(
    model: VanillaTransformerPreTrainedModel, length: int, source_length: int, **limit: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The example inputs of a graph that reads target and encoded source, and their dynamic axes."""
    batch = Dim("batch_size")
    source = {0: batch, 1: Dim("encoder_sequence_length")}
    inputs = {
        "input_ids": torch.ones(2, length, dtype=torch.long),
        "encoder_hidden_states": torch.zeros(2, source_length, model.config.d_model),
        "encoder_attention_mask": torch.ones(2, source_length, dtype=torch.long),
    }
    own = {0: batch, 1: Dim("decoder_sequence_length", **limit)}
    return inputs, dict(zip(inputs, (own, source, source), strict=True))


def _source_inputs(model: VanillaTransformerPreTrainedModel) -> tuple[dict[str, Any], dict[str, Any]]:
    """The example inputs of a graph that reads the source, and their dynamic axes."""
    names = ["input_ids", "attention_mask"]
    axes = {0: Dim("batch_size"), 1: Dim("sequence_length", max=model.config.max_position_embeddings)}
    # Not one tensor twice, or the graph takes the ids for the mask.
    return {name: torch.ones(2, 2, dtype=torch.long) for name in names}, dict.fromkeys(names, axes)


def _save(
    module: nn.Module,
    inputs: dict[str, Any],
    axes: dict[str, Any],
    outputs: list[str],
    file: Path,
    half_weights: bool = False,
    names: list[str] | None = None,
) -> None:
    """Trace a module, whose `forward` returns a tuple, and write the graph with its weights into one file.

    `inputs` has an example of each input, `axes` its dynamic axes; `names` are those of the inputs in the graph.
    """
    with _eager_attention(module), quiet():
        program = torch.onnx.export(
            module.eval(),
            kwargs=inputs,
            dynamic_shapes=axes,
            input_names=names or list(inputs),
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
def _eager_attention(module: nn.Module) -> Iterator[None]:
    """Let the models in a module attend by the code in their file, which also returns attentions."""
    model = next(part for part in module.modules() if isinstance(part, VanillaTransformerPreTrainedModel))
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the notes of exporter and quantizer."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
