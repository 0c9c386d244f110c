"""Tiny models of every preset and variant, their parameters nowhere at their initial values."""

from pathlib import Path

import torch
from shared import LINES, VARIANTS, tiny_config

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.configuration_vanilla_transformer import PRESETS
from hf_vanilla_transformer.data.tokenizer import train_tokenizer


HEADS = {
    "classification": VanillaTransformerForSequenceClassification,
    "translation": VanillaTransformerForConditionalGeneration,
}


# A pre-norm model whose embeddings and output layer are one matrix.
TIED = {
    **{"norm_first": True, "final_norm": True, "position_offset": 0, "layer_norm_eps": 1e-5},
    **{"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True},
}


def tiny_preset(name: str) -> VanillaTransformerConfig:
    """A preset's configuration with the sizes of `tiny_config`."""
    sizes = {
        **{"vocab_size": 29, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 16},
        **{"encoder_attention_heads": 4, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 24},
    }
    optional = {"head_dim": 6, "decoder_max_position_embeddings": 14, "decoder_vocab_size": 31}
    return VanillaTransformerConfig.from_preset(
        name, **sizes, **{field: value for field, value in optional.items() if field in PRESETS[name]}
    )


CONFIGS = {
    **{f"preset {name}": lambda name=name: tiny_preset(name) for name in PRESETS},
    **{f"variant {name}": lambda name=name: tiny_config(**VARIANTS[name]) for name in VARIANTS},
}


def random_model(config: VanillaTransformerConfig, task: str = "translation"):
    """A model whose norms and biases are random, too."""
    torch.manual_seed(0)
    model = HEADS[task](config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            spread = parameter.std() if parameter.dim() > 1 else 1.0
            parameter.add_(0.3 * spread * torch.randn_like(parameter))
    return model


def save(model, folder: Path) -> str:
    """Save a model with the tokenizers of `LINES`; returns the folder's name."""
    model.save_pretrained(folder)
    tokenizer = train_tokenizer(LINES, vocab_size=29, max_length=16, add_eos=True)
    tokenizer.save_pretrained(folder)
    if model.config.decoder_vocab_size is not None:
        tokenizer.save_pretrained(folder / "target_tokenizer")
    return str(folder)


def program_of(folder: Path) -> str:
    """The program in an exported folder's README."""
    return (folder / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
