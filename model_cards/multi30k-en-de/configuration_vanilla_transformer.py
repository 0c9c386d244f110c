# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Configuration of the vanilla Transformer (Vaswani et al. 2017, "Attention Is All You Need").

Every saved model carries a copy of this file, so it imports only transformers and huggingface_hub.
"""

import copy
import dataclasses
import difflib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import transformers
from huggingface_hub.dataclasses import strict
from transformers.activations import ACT2FN
from transformers.utils import logging
from transformers.utils.versions import require_version


if TYPE_CHECKING:
    # transformers caches a folder's code under a hash of this file and its imports. This adds the other file to it.
    from .modeling_vanilla_transformer import VanillaTransformerModel  # noqa: F401


require_version("transformers>=5.24")  # a saved model's code is not installed by pip, which would check it

logger = logging.get_logger(__name__)

LAYER_NORM_TYPES = ("standard", "unbiased_std", "unbiased_std_scalar")
POSITION_EMBEDDING_TYPES = ("sinusoidal", "learned", "none")
INIT_SCHEMES = ("torch", "xavier_uniform", "tensor2tensor")


@strict
class VanillaTransformerConfig(transformers.PreTrainedConfig):
    r"""Sizes and variants of an encoder-decoder Transformer.

    The defaults are those of the tutorial series *transformer-evolution* (its "half" configuration). The fields have
    BART's names where BART has them.

    Args:
        vocab_size: Size of the source vocabulary, and of the target vocabulary if `decoder_vocab_size` is None.
        decoder_vocab_size: Size of the target vocabulary. None means one vocabulary for both sides;
            `resize_token_embeddings` then resizes both, else the source's alone.
        d_model: Width of the embeddings and of every layer's input and output.
        encoder_layers, decoder_layers: Number of layers of each stack (N in the paper).
        encoder_attention_heads, decoder_attention_heads: Number of heads of each attention (h in the paper).
        head_dim: Width of one head (d_k = d_v in the paper); heads x head_dim may differ from d_model. None means
            d_model / heads, which must be an integer.
        attention_bias: Add biases in the four projections of every attention.
        encoder_ffn_dim, decoder_ffn_dim: Inner width of each stack's feed-forward networks (d_ff in the paper).
        max_position_embeddings: Largest number of source tokens, and of target tokens if the next field is None.
        decoder_max_position_embeddings: Largest number of target tokens; None means `max_position_embeddings`.
        activation_function: Activation between the two feed-forward layers, a name from transformers' `ACT2FN`.
        dropout: Dropout of each sub-layer's output before it is added to the residual stream (§5.4).
        attention_dropout: Dropout of the attention probabilities.
        activation_dropout: Dropout between the two feed-forward layers.
        embedding_dropout: Dropout of the sum of token and position embeddings (§5.4).
        norm_first: Normalise each sub-layer's input (pre-norm) instead of the residual sum (post-norm, the paper).
        final_norm: Normalise once more after the last layer of each stack.
        layer_norm_type: `"standard"`: `torch.nn.LayerNorm`; `"unbiased_std"`: the Annotated Transformer's
            a (x - mean) / (std + eps) + b; `"unbiased_std_scalar"`: one a and one b for all features.
        layer_norm_eps: eps of the layer norms.
        position_embedding_type: `"sinusoidal"` (§3.5), `"learned"`, or `"none"`.
        position_offset: Row of the position table for the first token. With 1, transformer-evolution's value, row 0
            is for padding tokens; with 0, padding tokens share row 0 with the first token.
        scale_embedding: Multiply token embeddings by sqrt(d_model) (§3.4).
        init_scheme: `"torch"`: torch's own initialisation of linear layers, embeddings from N(0, 1);
            `"xavier_uniform"`: Glorot uniform for every matrix, the embeddings included; `"tensor2tensor"`, the
            paper's own code: Glorot uniform for linear layers, embeddings from N(0, 1 / d_model).
        share_encoder_decoder_embeddings: Use one embedding matrix for source and target tokens (§3.4).
        tie_word_embeddings: Use the target embedding matrix also as the weight of the generation head (§3.4).
        use_cache: Return the keys and values of target tokens, so that generation computes them once.
        pad_token_id, bos_token_id: Ids of `[PAD]` and `[BOS]`.
        eos_token_id: Id of `[EOS]`, or several ids, each of which ends a generated sequence.
        decoder_start_token_id: Id of the first token of every decoder input.

    Raises:
        huggingface_hub.errors.StrictDataclassError: a field has a wrong type, or the fields contradict each other;
            the message names the field.
    """

    vocab_size: int = 8007
    decoder_vocab_size: int | None = None
    d_model: int = 256
    encoder_layers: int = 6
    decoder_layers: int = 6
    encoder_attention_heads: int = 4
    decoder_attention_heads: int = 4
    head_dim: int | None = None
    attention_bias: bool = True
    encoder_ffn_dim: int = 1024
    decoder_ffn_dim: int = 1024
    max_position_embeddings: int = 256
    decoder_max_position_embeddings: int | None = None
    activation_function: str = "gelu"
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.1
    activation_dropout: float | int = 0.0
    embedding_dropout: float | int = 0.0
    norm_first: bool = False
    final_norm: bool = False
    layer_norm_type: str = "standard"
    layer_norm_eps: float | int = 1e-12
    position_embedding_type: str = "sinusoidal"
    position_offset: int = 1
    scale_embedding: bool = False
    init_scheme: str = "torch"
    share_encoder_decoder_embeddings: bool = False
    tie_word_embeddings: bool = False
    use_cache: bool = True
    is_encoder_decoder: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 3
    decoder_start_token_id: int | None = 2

    model_type = "vanilla_transformer"
    # Without this, Trainer's evaluation keeps the encoder's states of every text.
    keys_to_ignore_at_inference = ["cache", "encoder_last_hidden_state"]
    attribute_map = {
        "hidden_size": "d_model",
        "num_hidden_layers": "encoder_layers",
        "num_attention_heads": "encoder_attention_heads",
    }

    def __post_init__(self, **kwargs):
        if self.share_encoder_decoder_embeddings and self.decoder_vocab_size == self.vocab_size:
            self.decoder_vocab_size = None  # one vocabulary, also for `resize_token_embeddings`
        if self.transformers_version is None and "model_type" not in kwargs:  # not a saved one, of another version
            known = self.known_names() | _NAMES_OF_THE_BASE | set(transformers.GenerationConfig().to_dict())
            for name in kwargs.keys() - known:
                logger.warning(
                    f"{type(self).__name__} has no field {name!r}, which nothing reads{_nearest(name, known)}"
                )
        super().__post_init__(**kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field. The keys of `id2label`, numbers or JSON's "0", "1", …, must count from 0."""
        if name == "id2label" and value is not None:
            numbers = [int(key) if str(key).isdecimal() else key for key in value]
            if not isinstance(value, dict) or set(numbers) != set(range(len(value))):
                raise ValueError(f"`id2label` must number the labels from 0, got {value}")
            value = dict(zip(numbers, value.values(), strict=True))
        super().__setattr__(name, value)

    @classmethod
    def known_names(cls) -> set[str]:
        """Return the names of all fields, with those of `attribute_map`."""
        return {field.name for field in dataclasses.fields(cls)} | set(cls.attribute_map) | {"num_labels"}

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """Raise a ValueError if a field does not exist; the message suggests the nearest one."""
        known = cls.known_names()
        if unknown := sorted(set(names) - known):
            raise ValueError(f"no such field: {', '.join(name + _nearest(name, known) for name in unknown)}")

    @classmethod
    def from_preset(cls, name: str, **overrides) -> "VanillaTransformerConfig":
        """Make the configuration of a published model.

        Args:
            name: One of `PRESETS`: a tutorial's, or the paper's own (Table 3), `"base"` and `"big"`.
            **overrides: Fields with other values than the published model's.

        Raises:
            ValueError: no such preset, or no such field.
            huggingface_hub.errors.StrictDataclassError: as the constructor.
        """
        if name not in PRESETS:
            raise ValueError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
        cls.check_names(overrides)
        return cls(**{**PRESETS[name], **overrides})

    @property
    def target_vocab_size(self) -> int:
        """Size of the target vocabulary: `decoder_vocab_size`, or `vocab_size` if that is None."""
        return self.decoder_vocab_size or self.vocab_size

    @property
    def max_target_positions(self) -> int:
        """Largest number of target tokens: `decoder_max_position_embeddings`, or `max_position_embeddings`."""
        return self.decoder_max_position_embeddings or self.max_position_embeddings

    def get_text_config(
        self, decoder: bool | None = None, encoder: bool | None = None
    ) -> transformers.PreTrainedConfig:
        """Return one side's configuration: with `decoder=True`, `vocab_size` is the target vocabulary's, and so on.

        The base class copies each `decoder_*` field to the field without the prefix. None, which here means the
        source's value, is replaced first.
        """
        if not decoder or encoder:
            return super().get_text_config(decoder=decoder, encoder=encoder)
        resolved = copy.copy(self)
        resolved.decoder_vocab_size = self.target_vocab_size
        resolved.decoder_max_position_embeddings = self.max_target_positions
        return super(VanillaTransformerConfig, resolved).get_text_config(decoder=True)

    def save_pretrained(self, save_directory: str | os.PathLike, push_to_hub: bool = False, **kwargs) -> None:
        """Save with all classes of these two files in `auto_map`, not only the class of the weights.

        With `trust_remote_code=True`, a classifier's folder then loads as an `AutoModel`, too. Entries of a subclass
        stay. Entries of another repository ("--") go: the folder has the code.
        """
        if self._auto_class is not None:
            named = getattr(self, "auto_map", None) or {}
            self.auto_map = AUTO_MAP | {name: where for name, where in named.items() if "--" not in where}
        super().save_pretrained(save_directory, push_to_hub=push_to_hub, **kwargs)

    def validate_numbers(self):
        """Check that sizes are at least 1, dropout rates between 0 and 1, and so on."""
        for name in (
            *("vocab_size", "decoder_vocab_size", "d_model", "head_dim", "encoder_layers", "decoder_layers"),
            *("encoder_attention_heads", "decoder_attention_heads", "encoder_ffn_dim", "decoder_ffn_dim"),
            *("max_position_embeddings", "decoder_max_position_embeddings"),
        ):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"`{name}` must be at least 1, got {size}")
        if self.position_offset < 0:
            raise ValueError(f"`position_offset` must be at least 0, got {self.position_offset}")
        for name in ("dropout", "attention_dropout", "activation_dropout", "embedding_dropout"):
            rate = getattr(self, name)
            if not 0 <= rate <= 1:
                raise ValueError(f"`{name}` must be between 0 and 1, got {rate}")
        if not self.layer_norm_eps > 0:
            raise ValueError(f"`layer_norm_eps` must be greater than 0, got {self.layer_norm_eps}")

    def validate_heads(self):
        """Check that the number of heads divides d_model, unless `head_dim` is given."""
        for name in ("encoder_attention_heads", "decoder_attention_heads"):
            heads = getattr(self, name)
            if self.head_dim is None and heads >= 1 and self.d_model % heads != 0:
                raise ValueError(f"`{name}` {heads} must divide `d_model` {self.d_model}, unless `head_dim` is given")

    def validate_choices(self):
        """Check fields that are one of several names, and that the model is an encoder-decoder."""
        for name, choices in (
            ("activation_function", ACT2FN),
            ("layer_norm_type", LAYER_NORM_TYPES),
            ("position_embedding_type", POSITION_EMBEDDING_TYPES),
            ("init_scheme", INIT_SCHEMES),
            ("problem_type", (None, "regression", "single_label_classification", "multi_label_classification")),
        ):
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(f"`{name}` must be one of {', '.join(map(str, choices))}, got {value!r}")
        if self.layer_norm_type != "standard" and self.d_model == 1:
            raise ValueError(f"`layer_norm_type` {self.layer_norm_type!r} needs a `d_model` of at least 2")
        if not self.is_encoder_decoder:
            raise ValueError("`is_encoder_decoder` must be true: this model has no other form")

    def validate_vocabularies(self):
        """Check that special ids are tokens: the padding token of both vocabularies, the others of the target's."""
        if self.share_encoder_decoder_embeddings and self.decoder_vocab_size is not None:
            sizes = f"`decoder_vocab_size` is {self.decoder_vocab_size} and `vocab_size` {self.vocab_size}"
            raise ValueError(f"`share_encoder_decoder_embeddings` needs one vocabulary, but {sizes}")
        for name in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
            ids = getattr(self, name)
            size = min(self.vocab_size, self.target_vocab_size) if name == "pad_token_id" else self.target_vocab_size
            if ids == []:
                raise ValueError(f"`{name}` is an empty list: set it to None")
            for token_id in ids if isinstance(ids, list) else [] if ids is None else [ids]:
                if not 0 <= token_id < size:
                    raise ValueError(f"`{name}` must be in the vocabulary of {size} tokens, got {token_id}")


# Further names that transformers reads.
_NAMES_OF_THE_BASE = {
    *("name_or_path", "torch_dtype", "attn_implementation", "experts_implementation", "output_attentions"),
    *("auto_map", "quantization_config", "gradient_checkpointing", "tokenizer_class", "task_specific_params"),
}
# Where transformers' Auto classes find the classes in a saved folder.
AUTO_MAP = {
    "AutoConfig": "configuration_vanilla_transformer.VanillaTransformerConfig",
    "AutoModel": "modeling_vanilla_transformer.VanillaTransformerModel",
    "AutoModelForSeq2SeqLM": "modeling_vanilla_transformer.VanillaTransformerForConditionalGeneration",
    "AutoModelForSequenceClassification": "modeling_vanilla_transformer.VanillaTransformerForSequenceClassification",
    "AutoModelForTextEncoding": "modeling_vanilla_transformer.VanillaTransformerEncoderModel",
}


def _nearest(name: str, known: Iterable[str]) -> str:
    """Suggest a similar name, as the end of a message; of `num_layers` or `n_heads` the one of the encoder."""
    similar = [one for one in known if one.startswith("encoder_") and one.endswith(name.rpartition("_")[2])]
    nearest = similar or difflib.get_close_matches(name, known, n=1)
    return "".join(f"; did you mean {one}?" for one in nearest[:1])


def _stacks(**sizes: int) -> dict[str, int]:
    """Give encoder and decoder the same `layers`, `attention_heads` or `ffn_dim`."""
    return {f"{side}_{name}": size for name, size in sizes.items() for side in ("encoder", "decoder")}


# Table 3, "base"; three tutorials have these sizes, too.
_BASE_SIZES = {"d_model": 512, **_stacks(attention_heads=8, ffn_dim=2048)}
# §5.4: dropout of each sub-layer's output and of the embeddings only.
_PAPER_BASE = {
    "vocab_size": 37000,
    **_BASE_SIZES,
    "max_position_embeddings": 1024,
    "activation_function": "relu",
    "attention_dropout": 0.0,
    "embedding_dropout": 0.1,
    "layer_norm_eps": 1e-5,
    "position_offset": 0,
    "scale_embedding": True,
    "init_scheme": "tensor2tensor",
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
}
_ANNOTATED_TRANSFORMER = {
    **_BASE_SIZES,
    "max_position_embeddings": 5000,
    "activation_function": "relu",
    "activation_dropout": 0.1,
    "embedding_dropout": 0.1,
    "norm_first": True,
    "final_norm": True,
    "layer_norm_type": "unbiased_std",
    "layer_norm_eps": 1e-6,
    "position_offset": 0,
    "scale_embedding": True,
    "init_scheme": "xavier_uniform",
}
_PYTORCH_TRANSFORMER = {
    **_ANNOTATED_TRANSFORMER,
    "max_position_embeddings": 350,
    "decoder_max_position_embeddings": 350,
    "attention_bias": False,
}
# For each published model, the fields that differ from the defaults.
PRESETS: dict[str, dict[str, Any]] = {
    # https://github.com/paul-hyun/transformer-evolution: config_half.json, config.json
    "transformer-evolution": {},
    "transformer-evolution-half": {},
    "transformer-evolution-full": {
        "d_model": 768,
        **_stacks(layers=12, attention_heads=12, ffn_dim=3072),
        "head_dim": 64,
        "max_position_embeddings": 512,
    },
    # https://nlp.seas.harvard.edu/annotated-transformer
    "annotated-transformer": _ANNOTATED_TRANSFORMER,
    # https://github.com/bentrevett/pytorch-seq2seq, "Attention is All You Need"
    "pytorch-seq2seq": {
        "vocab_size": 7853,
        "decoder_vocab_size": 5893,
        **_stacks(layers=3, attention_heads=8, ffn_dim=512),
        "max_position_embeddings": 100,
        "activation_function": "relu",
        "activation_dropout": 0.1,
        "embedding_dropout": 0.1,
        "layer_norm_eps": 1e-5,
        "position_embedding_type": "learned",
        "position_offset": 0,
        "scale_embedding": True,
        "init_scheme": "xavier_uniform",
        "pad_token_id": 1,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "decoder_start_token_id": 2,
    },
    # https://github.com/hkproj/pytorch-transformer; in the accompanying document, a norm has one scale and one shift
    "pytorch-transformer": _PYTORCH_TRANSFORMER,
    "pytorch-transformer-scalar-norm": {**_PYTORCH_TRANSFORMER, "layer_norm_type": "unbiased_std_scalar"},
    # https://docs.pytorch.org/docs/stable/generated/torch.nn.Transformer.html; it takes embeddings
    "torch-nn-transformer": {
        **_BASE_SIZES,
        "max_position_embeddings": 5000,
        "activation_function": "relu",
        "activation_dropout": 0.1,
        "final_norm": True,
        "layer_norm_eps": 1e-5,
        "position_embedding_type": "none",
        "init_scheme": "xavier_uniform",
    },
    "base": _PAPER_BASE,
    "big": {
        **_PAPER_BASE,
        "d_model": 1024,
        **_stacks(attention_heads=16, ffn_dim=4096),
        "dropout": 0.3,
        "embedding_dropout": 0.3,
    },
}


__all__ = ["VanillaTransformerConfig"]
