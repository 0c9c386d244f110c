# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Convert the tutorials' checkpoints to ours and back: one table of tensor names for each tutorial.

In the names, braces expand as in a shell, and the first name of one side belongs to the first of the other. `*` is a
layer's number. If three names of ours belong to one of theirs, that tensor stacks the three along its first dimension.
"""

import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch
import torch
from transformers import PreTrainedModel

from ..data.errors import DataError
from ..inference.registration import (  # a converted model is saved with its code
    VanillaTransformerConfig,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)
from ..modeling_vanilla_transformer import sinusoid_table


logger = logging.getLogger(__name__)


# Our names: a prefix that theirs have, too, and the rest. `norm` stands for `pre_norm` or `post_norm`.
_BOTH, _ENCODER, _DECODER = "{encoder,decoder}.layers.*.", "encoder.layers.*.", "decoder.layers.*."
_OURS = {
    "embed_tokens": ("", "{encoder,decoder}.embed_tokens.weight"),
    "embed_positions": ("", "{encoder,decoder}.embed_positions.weight"),
    "final_norm": ("", "{encoder,decoder}.final_norm.{weight,bias}"),
    "lm_head": ("", "lm_head.{weight,bias}"),
    "classifier": ("", "classifier.weight"),
    "self_attn": (_BOTH, "self_attn.{q,k,v,out}_proj.{weight,bias}"),
    "feed_forward": (_BOTH, "feed_forward.fc{1,2}.{weight,bias}"),
    "encoder_norms": (_ENCODER, "{self_attn,feed_forward}_residual.norm.{weight,bias}"),
    "encoder_attn": (_DECODER, "encoder_attn.{q,k,v,out}_proj.{weight,bias}"),
    "decoder_norms": (_DECODER, "{self_attn,encoder_attn,feed_forward}_residual.norm.{weight,bias}"),
}


def _float32_sinusoid(rows: int, d_model: int) -> torch.Tensor:
    """Compute the sinusoid (rows, d_model) as the Annotated Transformer does, in float32 throughout."""
    factor = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
    angle = torch.arange(rows).unsqueeze(1) * factor
    table = torch.zeros(rows, d_model, dtype=torch.float32)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)[:, : d_model // 2]
    return table


class _Source(NamedTuple):
    """A tutorial's code: its tensor names, and the configurations that it supports."""

    names: Mapping[str, str]
    # The end of our name, and a dimension of size one that only their tensor has.
    unit_dimensions: Mapping[str, int] = MappingProxyType({})
    position_types: tuple[str, ...] = ("sinusoidal", "learned")
    sinusoid: Callable[[int, int], torch.Tensor] = _float32_sinusoid
    # Fields that may differ from the preset, and the values that they may have; None for any value.
    open_fields: Mapping[str, tuple | None] = MappingProxyType({})
    # Fields that the caller must give, besides the numbers of heads: the tensors do not show them.
    required: tuple[str, ...] = ()

    def unit_dimension(self, ours: str) -> int | None:
        return next((dimension for end, dimension in self.unit_dimensions.items() if ours.endswith(end)), None)


_SOURCES = {
    "transformer-evolution": _Source(
        {
            "embed_tokens": "{encoder.enc,decoder.dec}_emb.weight",
            "embed_positions": "{encoder,decoder}.pos_emb.weight",
            "classifier": "projection.weight",
            "self_attn": "self_attn.{W_Q,W_K,W_V,linear}.{weight,bias}",
            "feed_forward": "pos_ffn.conv{1,2}.{weight,bias}",
            "encoder_norms": "layer_norm{1,2}.{weight,bias}",
            "encoder_attn": "dec_enc_attn.{W_Q,W_K,W_V,linear}.{weight,bias}",
            "decoder_norms": "layer_norm{1,2,3}.{weight,bias}",
        },
        # A convolution of kernel size 1 is a linear layer.
        unit_dimensions={"fc1.weight": -1, "fc2.weight": -1},
        sinusoid=lambda rows, d_model: sinusoid_table(rows, d_model).float(),
        open_fields={"layer_norm_eps": None},
    ),
    "annotated-transformer": _Source(
        {
            "embed_tokens": "{src,tgt}_embed.0.lut.weight",
            "embed_positions": "{src,tgt}_embed.1.pe",
            "final_norm": "{encoder,decoder}.norm.{a_2,b_2}",
            "lm_head": "generator.proj.{weight,bias}",
            "self_attn": "self_attn.linears.{0,1,2,3}.{weight,bias}",
            "feed_forward": "feed_forward.w_{1,2}.{weight,bias}",
            "encoder_norms": "sublayer.{0,1}.norm.{a_2,b_2}",
            "encoder_attn": "src_attn.linears.{0,1,2,3}.{weight,bias}",
            "decoder_norms": "sublayer.{0,1,2}.norm.{a_2,b_2}",
        },
        unit_dimensions={"embed_positions.weight": 0},
    ),
    "pytorch-seq2seq": _Source(
        {
            "embed_tokens": "{encoder,decoder}.tok_embedding.weight",
            "embed_positions": "{encoder,decoder}.pos_embedding.weight",
            "lm_head": "decoder.fc_out.{weight,bias}",
            "self_attn": "self_attention.fc_{q,k,v,o}.{weight,bias}",
            "feed_forward": "positionwise_feedforward.fc_{1,2}.{weight,bias}",
            "encoder_norms": "{self_attn,ff}_layer_norm.{weight,bias}",
            "encoder_attn": "encoder_attention.fc_{q,k,v,o}.{weight,bias}",
            "decoder_norms": "{self_attn,enc_attn,ff}_layer_norm.{weight,bias}",
        },
        position_types=("learned",),
        open_fields={"decoder_attention_heads": None},
    ),
    "pytorch-transformer": _Source(
        {
            "embed_tokens": "{src,tgt}_embed.embedding.weight",
            "embed_positions": "{src,tgt}_pos.pe",
            "final_norm": "{encoder,decoder}.norm.{alpha,bias}",
            "lm_head": "projection_layer.proj.{weight,bias}",
            "self_attn": "self_attention_block.w_{q,k,v,o}.{weight,bias}",
            "feed_forward": "feed_forward_block.linear_{1,2}.{weight,bias}",
            "encoder_norms": "residual_connections.{0,1}.norm.{alpha,bias}",
            "encoder_attn": "cross_attention_block.w_{q,k,v,o}.{weight,bias}",
            "decoder_norms": "residual_connections.{0,1,2}.norm.{alpha,bias}",
        },
        unit_dimensions={"embed_positions.weight": 0},
        # Norms of the tutorial's document have one scale and one shift; some versions have attention biases.
        open_fields={"layer_norm_type": ("unbiased_std", "unbiased_std_scalar"), "attention_bias": (False, True)},
    ),
    "torch-nn-transformer": _Source(
        {
            "final_norm": "{encoder,decoder}.norm.{weight,bias}",
            "self_attn": "self_attn.{in_proj_,in_proj_,in_proj_,out_proj.}{weight,bias}",
            "feed_forward": "linear{1,2}.{weight,bias}",
            "encoder_norms": "norm{1,2}.{weight,bias}",
            "encoder_attn": "multihead_attn.{in_proj_,in_proj_,in_proj_,out_proj.}{weight,bias}",
            "decoder_norms": "norm{1,2,3}.{weight,bias}",
        },
        position_types=("none",),
        open_fields={"norm_first": None, "activation_function": ("relu", "gelu"), "layer_norm_eps": None},
        required=("norm_first", "activation_function", "layer_norm_eps"),
    ),
}
# Presets of the same code with other sizes.
_VARIANTS = {
    "transformer-evolution-half": "transformer-evolution",
    "transformer-evolution-full": "transformer-evolution",
    "pytorch-transformer-scalar-norm": "pytorch-transformer",
}
# Fields besides the sizes that change what a model computes.
_CODE_FIELDS = (
    "norm_first",
    "final_norm",
    "layer_norm_type",
    "layer_norm_eps",
    "activation_function",
    "attention_bias",
    "scale_embedding",
    "position_offset",
    "share_encoder_decoder_embeddings",
    "tie_word_embeddings",
)
_CLASSES = {
    None: VanillaTransformerModel,
    "lm_head": VanillaTransformerForConditionalGeneration,
    "classifier": VanillaTransformerForSequenceClassification,
}
# transformer-evolution's classifier has the Transformer's tensors under this prefix.
_CLASSIFIER_PREFIX = "transformer."


def _expand(pattern: str) -> list[str]:
    """Expand the braces of a pattern to a list of names."""
    start, brace, rest = pattern.partition("{")
    if not brace:
        return [pattern]
    choices, _, end = rest.partition("}")
    return [start + choice + tail for choice in choices.split(",") for tail in _expand(end)]


def _pairs(source: _Source, head: str | None) -> Iterator[tuple[str, str]]:
    """Yield a source's names with ours, for a model with this head; `*` is not replaced."""
    for part, (prefix, pattern) in _OURS.items():
        if part in source.names and (part == head or part not in _CLASSES):
            outer = _CLASSIFIER_PREFIX if head == "classifier" and part != head else ""
            yield from zip(_expand(outer + prefix + source.names[part]), _expand(prefix + pattern), strict=True)


def _rows(source: _Source, head: str | None, fields: Mapping[str, Any]) -> dict[str, list[str]]:
    """Map a source's tensor names to ours, for a model with this head."""
    rows: dict[str, list[str]] = {}
    for theirs, ours in _pairs(source, head):
        if ours.endswith("_proj.bias") and not fields["attention_bias"]:
            continue
        part = ours.partition(".")[0]
        ours = ours.replace(".norm.", ".pre_norm." if fields["norm_first"] else ".post_norm.")
        ours = f"model.{ours}" if head and part not in _CLASSES else ours
        for number in map(str, range(fields[f"{part}_layers"]) if "*" in ours else [""]):
            rows.setdefault(theirs.replace("*", number), []).append(ours.replace("*", number))
    return rows


def _find_source(name: str) -> tuple[str, _Source]:
    preset = _VARIANTS.get(name, name)
    if preset not in _SOURCES:
        raise DataError(f"no source {name!r}; there are {', '.join([*_SOURCES, *_VARIANTS])}")
    return preset, _SOURCES[preset]


def convert_checkpoint(state_dict: Mapping[str, torch.Tensor], source: str, **config_fields: Any) -> PreTrainedModel:
    """Make a model from a tutorial's checkpoint.

    All sizes are read from the tensors, and for pytorch-transformer the kind of norm and the attention biases.

    A sinusoid that equals the tutorial's, bit for bit, is dropped: the model computes its own in float64. The float32
    sinusoid of the Annotated Transformer and pytorch-transformer differs by 4e-6 within 64 positions and by 4e-4 at
    position 5000; `position_embedding_type="learned"` keeps it. Any other table becomes learned positions, with a
    warning.

    torch.nn.Transformer has no embeddings: the model gets one zero row on each side; pass `inputs_embeds` and
    `decoder_inputs_embeds`.

    Args:
        state_dict: The tensors under the tutorial's names, including buffers, all of one floating-point dtype.
        source: The name of the tutorial's preset.
        **config_fields: Fields of `VanillaTransformerConfig`. Required are `encoder_attention_heads` and
            `decoder_attention_heads`, for torch-nn-transformer also `norm_first`, `activation_function` and
            `layer_norm_eps`. Others, such as special ids, if they differ from the preset.

    Returns:
        A `VanillaTransformerForConditionalGeneration` if the checkpoint has a generator, a
        `VanillaTransformerForSequenceClassification` if it has transformer-evolution's classifier, else a
        `VanillaTransformerModel`; in evaluation mode, in the checkpoint's dtype, on the CPU.

    Raises:
        ValueError: no such source; a field is missing, unknown, or contradicts the tensors; tensors are missing or
            extra.
        RuntimeError: a tensor has another shape; raised by `load_state_dict`.
        huggingface_hub.errors.StrictDataclassError: as `VanillaTransformerConfig`.
    """
    preset_name, family = _find_source(source)
    preset = VanillaTransformerConfig.from_preset(preset_name)
    fields = {VanillaTransformerConfig.attribute_map.get(name, name): value for name, value in config_fields.items()}
    required = ("encoder_attention_heads", "decoder_attention_heads", *family.required)
    if missing := [name for name in required if fields.get(name) is None]:
        raise DataError(f"{source}: the tensors do not show {', '.join(missing)}; give them as config fields")
    head, structure = _read_structure(state_dict, family)
    rows = _rows(family, head, {**structure, "norm_first": fields.get("norm_first", preset.norm_first)})
    missing, extra = rows.keys() - state_dict.keys(), state_dict.keys() - rows.keys()
    if missing or extra:
        listing = f"missing: {', '.join(sorted(missing))}; extra: {', '.join(sorted(extra))}"
        raise DataError(f"not a checkpoint of {source}: {listing}")
    ours: dict[str, torch.Tensor] = {}
    for theirs, names in rows.items():
        tensor = state_dict[theirs].detach()
        if (dimension := family.unit_dimension(names[0])) is not None:
            tensor = tensor.squeeze(dimension)
        ours.update(zip(names, tensor.chunk(len(names)), strict=True))
    if "none" in family.position_types:  # the source has no embeddings
        d_model = ours["encoder.layers.0.self_attn.q_proj.weight"].shape[1]
        ours |= {f"{side}.embed_tokens.weight": torch.zeros(1, d_model) for side in ("encoder", "decoder")}
        fields = {"bos_token_id": None, "eos_token_id": None, "decoder_start_token_id": None, **fields}

    shown = structure | _read_shapes(ours, family, preset, fields)
    shown["position_embedding_type"] = _position_type(ours, family, fields)
    if shown["position_embedding_type"] == "sinusoidal":
        ours = {name: tensor for name, tensor in ours.items() if "embed_positions" not in name}
    if wrong := [name for name in shown if name in fields and fields[name] != shown[name]]:
        contradictions = ", ".join(f"{name}={fields[name]!r} (it has {shown[name]!r})" for name in wrong)
        raise DataError(f"{source}: the checkpoint contradicts {contradictions}")

    config = VanillaTransformerConfig.from_preset(preset_name, **{**fields, **shown})
    # In the checkpoint's dtype from the start, so that the sinusoid is rounded once, as by `from_pretrained`.
    model = _CLASSES[head]._from_config(config, dtype=next(iter(state_dict.values())).dtype)
    model.load_state_dict(ours)
    return model.eval()


def _read_structure(state_dict: Mapping[str, torch.Tensor], source: _Source) -> tuple[str | None, dict[str, Any]]:
    """Read the head, the numbers of layers and `attention_bias` from the tensors' names."""
    heads = source.names.keys() & _CLASSES.keys()
    head = next((one for one in heads if not state_dict.keys().isdisjoint(_expand(source.names[one]))), None)
    layer = re.compile(rf"(?:{_CLASSIFIER_PREFIX})?(encoder|decoder)\.layers\.([0-9]+)\.")
    layers = {match.groups() for match in map(layer.match, state_dict) if match}
    biases = {theirs.replace("*", "0") for theirs, ours in _pairs(source, head) if ours.endswith("_proj.bias")}
    return head, {
        "attention_bias": "attention_bias" not in source.open_fields or not biases.isdisjoint(state_dict),
        # At least one layer, so that an error lists its tensors as missing.
        **{f"{side}_layers": max(1, sum(side == one for one, _ in layers)) for side in ("encoder", "decoder")},
    }


def _read_shapes(
    ours: Mapping[str, torch.Tensor], source: _Source, preset: VanillaTransformerConfig, fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Read the fields that the shapes show."""
    base = {name.removeprefix("model."): tensor for name, tensor in ours.items()}
    width, d_model = base["encoder.layers.0.self_attn.q_proj.weight"].shape
    shown: dict[str, Any] = {
        "d_model": d_model,
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "head_dim": None,
    }
    if width != d_model or fields.get("head_dim") is not None:
        shown["head_dim"] = width // fields["encoder_attention_heads"]
    if "layer_norm_type" in source.open_fields and len(base["encoder.final_norm.weight"]) == 1:
        shown["layer_norm_type"] = "unbiased_std_scalar"
    if "classifier.weight" in base:
        shown["num_labels"] = len(base["classifier.weight"])
    for side, prefix in (("encoder", ""), ("decoder", "decoder_")):
        shown[f"{side}_ffn_dim"] = len(base[f"{side}.layers.0.feed_forward.fc1.weight"])
        shown[f"{prefix}vocab_size"] = len(base[f"{side}.embed_tokens.weight"])
        if "none" not in source.position_types:
            rows = len(base[f"{side}.embed_positions.weight"])
            shown["position_offset"] = preset.position_offset
            shown[f"{prefix}max_position_embeddings"] = rows - preset.position_offset
    for name in ("vocab_size", "max_position_embeddings"):
        if shown.get(f"decoder_{name}") == shown.get(name) and fields.get(f"decoder_{name}") is None:
            shown[f"decoder_{name}"] = None  # the same as the source's
    return shown


def _position_type(ours: Mapping[str, torch.Tensor], source: _Source, fields: Mapping[str, Any]) -> str:
    """Return the type of the positions: the tutorial's sinusoid, bit for bit, or else learned."""
    if "sinusoidal" not in source.position_types or fields.get("position_embedding_type") == "learned":
        return source.position_types[-1]
    tables = [tensor for name, tensor in ours.items() if name.endswith("embed_positions.weight")]
    if all(torch.equal(table.cpu(), source.sinusoid(*table.shape).to(table.dtype)) for table in tables):
        return "sinusoidal"
    logger.warning("The position tables are not the tutorial's sinusoid: they become learned positions")
    return "learned"


def to_source_state_dict(model: PreTrainedModel, source: str) -> dict[str, torch.Tensor]:
    """Make a tutorial's checkpoint from a model: the exact inverse of `convert_checkpoint`.

    Args:
        model: A `VanillaTransformerModel`, or one of the classes with a head.
        source: As in `convert_checkpoint`.

    Returns:
        Copies of the tensors under the tutorial's names and in its shapes, including position buffers, in the model's
        dtype and on its device.

    Raises:
        ValueError: no such source; or its code has no such model, because of the head or configuration fields; the
            message names all differences.
    """
    preset_name, family = _find_source(source)
    # By name: the class of a model loaded with `trust_remote_code` is another one.
    heads = {model_class.__name__: head for head, model_class in _CLASSES.items()}
    head = heads.get(type(model).__name__, "another model's")
    if head is not None and head not in family.names:
        raise DataError(f"{source} has no counterpart of {type(model).__name__}")
    config, preset = model.config, VanillaTransformerConfig.from_preset(preset_name)
    allowed = {
        **{name: (getattr(preset, name),) for name in _CODE_FIELDS},
        "position_embedding_type": family.position_types,
        "decoder_attention_heads": (config.encoder_attention_heads,),
        **family.open_fields,
    }
    if problems := [
        f"{name} is {getattr(config, name)!r} instead of {' or '.join(map(repr, values))}"
        for name, values in allowed.items()
        if values is not None and getattr(config, name) not in values
    ]:
        raise DataError(f"{source} has no such model: {'; '.join(problems)}")

    rows = _rows(family, head, vars(config))
    ours = dict(model.state_dict())
    if config.position_embedding_type == "sinusoidal":
        for side in ("encoder", "decoder"):
            weight = getattr(model.base_model, side).embed_positions.weight
            name = f"{side}.embed_positions.weight"
            ours[f"model.{name}" if head else name] = family.sinusoid(*weight.shape).to(weight)
    state_dict = {}
    for theirs, names in rows.items():
        tensor = torch.cat([ours[name] for name in names])
        dimension = family.unit_dimension(names[0])
        state_dict[theirs] = tensor if dimension is None else tensor.unsqueeze(dimension)
    return state_dict


# transformer-evolution saves its best loss and score with the weights, as NumPy scalars. Before NumPy 2 their
# constructor had another name.
_SCALAR = np.float64(0).__reduce__()[0]
_NUMPY_SCALARS: list[Any] = [_SCALAR, (_SCALAR, "numpy.core.multiarray.scalar"), np.dtype]
_NUMPY_SCALARS += [type(np.dtype(code)) for code in "?bhilqBHILQefd"]


def load_source_state_dict(file: str) -> dict[str, torch.Tensor]:
    """Read a tutorial's checkpoint from a file, without running code in it.

    Args:
        file: `.safetensors`, or a file that `torch.load` reads with `weights_only=True`. The tensors may be
            in a mapping, as the tutorials save them: `{"state_dict": ...}` or `{"model_state_dict": ...}`. The prefix
            of DistributedDataParallel, `module.`, is removed.

    Returns:
        The tensors by name, on the CPU.

    Raises:
        OSError, RuntimeError: the file is missing or damaged; raised by safetensors and torch.
        pickle.UnpicklingError: it holds code.
    """
    if Path(file).suffix == ".safetensors":
        content: Any = safetensors.torch.load_file(file)
    else:
        with torch.serialization.safe_globals(_NUMPY_SCALARS):
            content = torch.load(file, map_location="cpu", weights_only=True)
    for wrapper in ("state_dict", "model_state_dict"):
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    return {name.removeprefix("module."): tensor for name, tensor in content.items()}
