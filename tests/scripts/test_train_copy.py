"""scripts/train_copy.py: the Annotated Transformer's copy task."""

import pytest
from shared import ROOT, read_json
from transformers import AutoModelForSeq2SeqLM


@pytest.mark.slow
def test_the_copy_task_is_learned(succeed, refused, tmp_path):
    """By a smaller model than the recipe's, in a quarter of its updates."""
    sizes = '{"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}'
    few = ["--config", sizes, "--train_sequences", "14400", "--test_sequences", "250", "--max_steps", "450"]
    few += ["--per_device_train_batch_size", "32", "--disable_tqdm", "true"]
    few += ["--learning_rate", "5e-3", "--warmup_steps", "100", "--lr_scheduler_type", "linear"]
    succeed("train_copy.py", ROOT / "scripts/recipes/copy.yaml", "--output_dir", tmp_path, *few)
    assert read_json(tmp_path / "metrics.json")["test"]["copied"] >= 0.99
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config.vocab_size == 11
    assert "vocab_size" in refused("train_copy.py", "--output_dir", tmp_path / "new", "--config", '{"vocab_size": 5}')
