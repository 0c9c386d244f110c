"""scripts/train_copy.py: the Annotated Transformer's copy task."""

import pytest
from safetensors.torch import load_file
from shared import QUIET, ROOT, TINY_TRANSLATOR, read_json
from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration


def test_the_copy_task_runs_with_one_step(succeed, refused, tmp_path):
    arguments = ["--output_dir", tmp_path, "--train_sequences", "64", "--test_sequences", "8", "--max_steps", "1"]
    assert "vocab_size" in refused("train_copy.py", *arguments, "--config", '{"vocab_size": 5}')
    assert "of 8 fresh sequences" in succeed("train_copy.py", *arguments)
    assert read_json(tmp_path / "metrics.json")["test"]["sequences"] == 8
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config.vocab_size == 11


@pytest.mark.slow
def test_the_copy_task_is_drawn_by_the_seed(succeed, tmp_path, monkeypatch):
    """The seed decides the weights, the training sequences and the different ones to copy at the end."""
    trained, asked = [], []
    train, generate = Seq2SeqTrainer.train, VanillaTransformerForConditionalGeneration.generate

    def noting_train(trainer, *args, **kwargs):
        trained.append(trainer.train_dataset["input_ids"][:].tolist())
        return train(trainer, *args, **kwargs)

    def noting_generate(model, sequences, *args, **kwargs):
        asked.append(sequences.tolist())
        return generate(model, sequences, *args, **kwargs)

    monkeypatch.setattr(Seq2SeqTrainer, "train", noting_train)
    monkeypatch.setattr(VanillaTransformerForConditionalGeneration, "generate", noting_generate)
    weights = []
    few = ["--learning_rate", "0", "--max_steps", "1", "--train_sequences", "4", "--test_sequences", "4"]
    for name, seed in (("one", "1"), ("again", "1"), ("other", "2")):
        flags = ["--output_dir", tmp_path / name, "--seed", seed]
        succeed("train_copy.py", *flags, *few, *TINY_TRANSLATOR, *QUIET)
        weights.append(load_file(tmp_path / name / "model.safetensors")["model.encoder.embed_tokens.weight"].tolist())
    for drawn in (weights, trained, asked):
        assert drawn[0] == drawn[1] != drawn[2]
    assert all(sequence not in trained[0] for sequence in asked[0])


@pytest.mark.slow
def test_the_copy_task_is_learned(succeed, tmp_path):
    """By a smaller model than the recipe's, in a quarter of its updates."""
    sizes = '{"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}'
    few = ["--config", sizes, "--train_sequences", "14400", "--test_sequences", "250", "--max_steps", "450"]
    few += ["--per_device_train_batch_size", "32", "--disable_tqdm", "true"]
    few += ["--learning_rate", "5e-3", "--warmup_steps", "100", "--lr_scheduler_type", "linear"]
    succeed("train_copy.py", ROOT / "scripts/recipes/copy.yaml", "--output_dir", tmp_path, *few)
    assert read_json(tmp_path / "metrics.json")["test"]["copied"] >= 0.99
