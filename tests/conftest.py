import atexit
import io
import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path


# Before any other import: no test may read or fill the user's caches, nor ask the network.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="hf-home-")
os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch

import hf_vanilla_transformer  # noqa: F401 - registers the Auto classes
from hf_vanilla_transformer import VanillaTransformerConfig


atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)

ROOT = Path(__file__).parent.parent

# Every variant that the tutorials use, at least once.
VARIANTS = {
    "default": {},
    "pre-norm": {"norm_first": True, "final_norm": True, "activation_function": "relu", "scale_embedding": True},
    "unbiased-std": {"norm_first": True, "final_norm": True, "layer_norm_type": "unbiased_std", "position_offset": 0},
    "scalar-norm": {"layer_norm_type": "unbiased_std_scalar", "layer_norm_eps": 1e-6},
    "learned": {"position_embedding_type": "learned", "position_offset": 0, "init_scheme": "xavier_uniform"},
    "no-positions": {"position_embedding_type": "none", "final_norm": True},
    "own-head-size": {"head_dim": 5, "encoder_attention_heads": 3, "decoder_attention_heads": 2},
    "no-attention-bias": {"attention_bias": False},
    "two-vocabularies": {"decoder_vocab_size": 31, "decoder_max_position_embeddings": 12, "decoder_ffn_dim": 24},
    "shared": {"share_encoder_decoder_embeddings": True},
    "tied": {"tie_word_embeddings": True},
    "shared-and-tied": {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True},
}


def tiny_config(**overrides) -> VanillaTransformerConfig:
    """A configuration that computes in milliseconds."""
    sizes = {
        "vocab_size": 29,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "max_position_embeddings": 16,
    }
    return VanillaTransformerConfig(**{**sizes, **overrides})


@pytest.fixture(params=VARIANTS)
def config(request) -> VanillaTransformerConfig:
    """Each variant in turn, tiny."""
    return tiny_config(**VARIANTS[request.param])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a script in this process; returns its exit status, standard output and standard error."""

    def run(name: str, *arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin or ""))
        capsys.readouterr()
        status = 0
        try:
            runpy.run_path(str(ROOT / "scripts" / name), run_name="__main__")
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return run
