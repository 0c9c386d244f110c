"""`scripts/average_checkpoints.py`."""

import torch
from safetensors.torch import load_file
from shared import train_translator
from transformers import AutoTokenizer


def test_checkpoints_are_averaged_by_a_script_too(succeed, refused, corpus, tmp_path):
    train_translator(succeed, corpus, tmp_path / "run", "--average_last", "2")
    settings = ["--run", tmp_path / "run", "--last", "2", "--output_dir", tmp_path / "mean"]
    out = succeed("average_checkpoints.py", *settings)
    assert "the mean of checkpoint-2, checkpoint-4" in out
    ours, trainers = (load_file(tmp_path / folder / "model.safetensors") for folder in ("mean", "run"))
    torch.testing.assert_close(ours, trainers)
    AutoTokenizer.from_pretrained(tmp_path / "mean")

    line = refused("average_checkpoints.py", "--run", tmp_path / "run", "--output_dir", tmp_path / "more")
    assert "2 checkpoints, fewer than 10" in line
