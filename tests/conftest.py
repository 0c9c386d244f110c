import atexit
import io
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


# Before any other import: no test may read or fill the user's caches, nor ask the network.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="hf-home-")
os.environ["HF_HUB_OFFLINE"] = "1"
# Tests run side by side, and sums of more threads are rounded otherwise from one machine to the next.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch
from transformers import Trainer

import hf_vanilla_transformer  # noqa: F401 - registers the Auto classes
from hf_vanilla_transformer import VanillaTransformerConfig


atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)

ROOT = Path(__file__).parent.parent

# What a classifier's run leaves, besides checkpoints.
RUN_FILES = {
    "README.md",
    "config.json",
    "configuration_vanilla_transformer.py",
    "curves.png",
    "generation_config.json",
    "metrics.json",
    "model.safetensors",
    "modeling_vanilla_transformer.py",
    "recipe.yaml",
    "run.json",
    "tokenizer.json",
    "tokenizer_config.json",
}

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


def run_without_the_package(program: str, *arguments, home: Path, environment: dict[str, str] | None = None) -> str:
    """Run a program in a fresh process that sees the installed packages but not this one, and has no input.

    Args:
        program: Python code.
        arguments: What it finds in `sys.argv[1:]`.
        home: Where it runs, and keeps its caches.
        environment: Its environment variables; by default this process's.

    Returns:
        What it prints.
    """
    inherited = os.environ if environment is None else environment
    site_packages = [path for path in sys.path if path.endswith("site-packages")]
    result = subprocess.run(
        # Without `site`, no .pth file leads to the package's checkout.
        [sys.executable, "-S", "-c", program, *map(str, arguments)],
        env={
            **{name: value for name, value in inherited.items() if not name.startswith("PYTHON")},
            "PYTHONPATH": os.pathsep.join(site_packages),
            "HF_HOME": str(home / "stranger"),
        },
        cwd=home,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(params=VARIANTS)
def config(request) -> VanillaTransformerConfig:
    """Each variant in turn, tiny."""
    return tiny_config(**VARIANTS[request.param])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def attentions(monkeypatch) -> list[str]:
    """How each model attends that is trained in this process, in turn."""
    noted, train = [], Trainer.train

    def noting(trainer, *args, **kwargs):
        noted.append(trainer.model.config._attn_implementation)
        return train(trainer, *args, **kwargs)

    monkeypatch.setattr(Trainer, "train", noting)
    return noted


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a script in this process; returns its exit status, standard output and standard error."""

    def run(name: str, *arguments: str, stdin: str | bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        given = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capsys.readouterr()
        status = 0
        try:
            runpy.run_path(str(ROOT / "scripts" / name), run_name="__main__")
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return run
