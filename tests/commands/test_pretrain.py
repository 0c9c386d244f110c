"""`vanilla-transformer pretrain`: what a run leaves, fine-tuning from it, what is refused."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from shared import QUIET, TINY_TRANSLATOR, read_json
from transformers import GenerationConfig


BOS, EOS = 2, 3
TINY = TINY_TRANSLATOR[1]


def pretrain(run, text_file, folder, *arguments):
    flags = ["--texts", text_file, "--output_dir", folder, "--config", TINY, "--max_length", "12"]
    flags += ["--max_steps", "4", "--save_steps", "2", "--eval_strategy", "steps", "--eval_steps", "2"]
    flags += ["--logging_steps", "2", *QUIET, "--validation", "10"]
    flags += [] if {"--model", "--tokenizer"} & set(arguments) else ["--vocab_size", "29"]
    return run("pretrain", *flags, *arguments)


@pytest.mark.slow
def test_a_pretrained_model_is_a_folder_to_fine_tune(succeed, text_file, tmp_path):
    folder = tmp_path / "pretrained"
    out = pretrain(succeed, text_file, folder, "--max_tokens", "64", "--attn_implementation", "eager")
    metrics = read_json(folder / "metrics.json")
    assert f"\nvalidation perplexity: {metrics['validation']['perplexity']:.3f}\n" in out
    assert [entry["step"] for entry in metrics["epochs"]] == [2, 4]
    last = metrics["epochs"][-1]
    loss, perplexity = last["eval_token_loss"], last["eval_perplexity"]
    assert metrics["validation"] == {"loss": loss, "perplexity": perplexity, "rows": 10}
    assert perplexity == pytest.approx(np.exp(loss))
    assert GenerationConfig.from_pretrained(folder).max_length == 12
    assert last["train_loss"] is not None and (folder / "curves.png").stat().st_size > 0
    record = read_json(folder / "run.json")
    assert record["data"]["train"] == {"rows": 50} and list(record["data"]["source"]) == [text_file.name]
    assert "max_tokens: 64" in (folder / "recipe.yaml").read_text()

    pretrained = load_file(folder / "model.safetensors")
    assert read_json(folder / "config.json")["decoder_start_token_id"] == BOS
    flags = ["--max_steps", "1", "--learning_rate", "0", *QUIET]
    succeed("train-classifier", "--model", folder, "--output_dir", tmp_path / "finetuned", *flags)
    finetuned = load_file(tmp_path / "finetuned" / "model.safetensors")
    assert finetuned.keys() - pretrained.keys() == {"classifier.weight"}
    assert all(torch.equal(finetuned[name], pretrained[name]) for name in finetuned.keys() & pretrained.keys())

    assert read_json(tmp_path / "finetuned" / "run.json")["parent_model"] == {"name": folder.name}
    again = ["--model", tmp_path / "finetuned", "--config", '{"dropout": 0.0}', "--learning_rate", "0"]
    pretrain(succeed, text_file, tmp_path / "again", *again)
    weights = load_file(tmp_path / "again" / "model.safetensors")
    assert weights.keys() == pretrained.keys()
    assert all(torch.equal(weights[name], pretrained[name]) for name in finetuned.keys() & pretrained.keys())
    assert read_json(tmp_path / "again" / "config.json")["dropout"] == 0.0
