"""`scripts/average_checkpoints.py`."""

import torch
from safetensors.torch import load_file
from shared import train_translator
from transformers import AutoTokenizer


def test_checkpoints_are_averaged_by_a_script_too(run, succeed, corpus, tmp_path):
    assert train_translator(run, corpus, tmp_path / "run", "--average_last", "2")[0] == 0
    out = succeed(
        "average_checkpoints.py", "--run", tmp_path / "run", "--last", "2", "--output_dir", tmp_path / "mean"
    )
    assert "the mean of checkpoint-2, checkpoint-4" in out
    ours, trainers = (load_file(tmp_path / folder / "model.safetensors") for folder in ("mean", "run"))
    torch.testing.assert_close(ours, trainers)
    AutoTokenizer.from_pretrained(tmp_path / "mean")

    status, _, err = run("average_checkpoints.py", "--run", tmp_path / "run", "--output_dir", tmp_path / "more")
    assert (status, err.count("\n")) == (2, 1) and "2 checkpoints, fewer than 10" in err
