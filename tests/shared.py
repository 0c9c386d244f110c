"""What tests share: where things are, what a run leaves, tiny models, and the flags of runs that take a second."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import run_program

from hf_vanilla_transformer import VanillaTransformerConfig


ROOT = Path(__file__).parent.parent

# What a classifier's run leaves, besides checkpoints.
RUN_FILES = {
    *("README.md", "config.json", "configuration_vanilla_transformer.py", "curves.png", "generation_config.json"),
    *("metrics.json", "model.safetensors", "modeling_vanilla_transformer.py", "recipe.yaml", "run.json"),
    *("tokenizer.json", "tokenizer_config.json"),
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
        **{"vocab_size": 29, "d_model": 16, "max_position_embeddings": 16},
        **{"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32},
    }
    return VanillaTransformerConfig(**{**sizes, **overrides})


@contextlib.contextmanager
def files_of_at_most(number_of_bytes: int) -> Iterator[None]:
    """Let no longer file be written: the portable way to make writing fail, except on Windows."""
    resource = pytest.importorskip("resource", reason="Windows does not limit the size of files")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (number_of_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run_without_the_package(program: str, *arguments, home: Path, environment: dict[str, str] | None = None) -> str:
    """Run a program, which sees the installed packages but not this one, and has no input; returns what it prints.

    It runs in the folder `home`, and keeps its caches there.
    """
    environment = {**(os.environ if environment is None else environment), "HF_HOME": str(home / "stranger")}
    result = run_program(program, *arguments, environment=environment, cwd=home, package=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


TINY = ["--config", '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}']
# The same with two heads, and the decoder's inner layer small, too.
TINY_TRANSLATOR = [
    "--config",
    '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, '
    '"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}',
]
QUIET = ["--disable_tqdm", "true", "--report_to", "none"]
# Of a classifier; the model is of no use afterwards.
TWO_STEPS = ["--max_steps", "2", "--save_strategy", "no", "--eval_strategy", "epoch", "--bf16", "false", *QUIET]
TWO_STEPS += ["--load_best_model_at_end", "false"]


# The same for `train_classifier` and `train_translator`.
TINY_RUN = {"max_steps": 2, "report_to": "none", "disable_tqdm": True, "use_cpu": True, "vocab_size": 40}
TINY_RUN |= {"config": json.loads(TINY_TRANSLATOR[1])}


# Plain text with a vocabulary of ten syllables.
LINES = [" ".join("가나다라마바사아자차"[digit] for digit in map(int, str(7**number))) for number in range(60)]


def read_json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def error_line(program: str, err: str) -> str:
    """The one line in which a command or a script says what is wrong, from its standard error."""
    assert "Traceback" not in err
    name = Path(program).name if program.endswith(".py") else f"vanilla-transformer {program}"
    (line,) = [line for line in err.splitlines() if line.startswith(f"{name}: error:")]
    return line


def train_translator(run, corpus: Path, folder: Path, *arguments) -> Any:
    """Train a translator for four steps on the fixture `corpus`, by the fixture `run`, `succeed` or `refused`."""
    flags = ["--data", corpus, "--source_column", "num", "--target_column", "de", "--validation_prefix", "val"]
    flags += ["--output_dir", folder, *TINY_TRANSLATOR, "--max_steps", "4", "--save_steps", "2", "--max_length", "12"]
    flags += ["--eval_strategy", "steps", "--eval_steps", "2", *QUIET]
    flags += [] if "--model" in arguments else ["--vocab_size", "60"]
    return run("train-translation", *flags, *arguments)
