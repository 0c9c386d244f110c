"""`vanilla-transformer train-translation`: what a run leaves, what its settings do, what is refused."""

import math
import sys

import pytest
import torch
from safetensors.torch import load_file
from shared import read_json, train_translator
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_vanilla_transformer import VanillaTransformerConfig
from hf_vanilla_transformer.commands.arguments import parse_arguments
from hf_vanilla_transformer.evaluation.evaluate import evaluate
from hf_vanilla_transformer.training.trainer import noam_peak
from hf_vanilla_transformer.training.translator import GROUPS


def test_a_translator_is_a_folder_that_transformers_loads(succeed, refused, corpus, tmp_path):
    beams = ["--generation_num_beams", "2", "--length_penalty", "1.5"]
    out = train_translator(succeed, corpus, tmp_path / "run", "--average_last", "2", *beams)
    assert "\ntest BLEU: " in out and f"vanilla-transformer translate --model {tmp_path}/run" in out

    metrics = read_json(tmp_path / "run" / "metrics.json")
    assert metrics["averaged_steps"] == [2, 4]
    assert [entry["step"] for entry in metrics["epochs"]] == [2, 4]
    for split, rows in (("validation", 12), ("test", 13)):
        assert metrics[split].keys() == {"loss", "perplexity", "precision", "beams_1", "beams_2"}
        report = metrics[split]["beams_2"]
        assert report["rows"] == rows
        assert "case:lc" in report["bleu_lowercased_signature"] and "case:mixed" in report["bleu_signature"]

    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run")
    assert (model.generation_config.num_beams, model.generation_config.length_penalty) == (2, 1.5)
    assert model.lm_head.weight is model.get_input_embeddings().weight
    steps = [load_file(tmp_path / "run" / f"checkpoint-{step}" / "model.safetensors") for step in (2, 4)]
    bias = (steps[0]["lm_head.bias"] + steps[1]["lm_head.bias"]) / 2
    torch.testing.assert_close(model.lm_head.bias.data, bias)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run")
    ids = model.generate(**tokenizer(["1 2 3", "4"], padding=True, return_tensors="pt"))
    assert ids.shape[1] <= 12

    script = ["average_checkpoints.py", "--run", tmp_path / "run", "--output_dir"]
    assert "2 checkpoints, fewer than 10" in refused(*script, tmp_path / "more")
    assert "the mean of checkpoint-2, checkpoint-4" in succeed(*script, tmp_path / "mean", "--last", "2")
    torch.testing.assert_close(*(load_file(tmp_path / name / "model.safetensors") for name in ("mean", "run")))


def test_a_run_with_too_few_checkpoints_saves_the_mean_of_those(succeed, corpus, tmp_path):
    out = train_translator(succeed, corpus, tmp_path / "run", "--average_last", "3")
    assert "3 checkpoints are asked for, and the run saved 2" in out
    assert read_json(tmp_path / "run" / "metrics.json")["averaged_steps"] == [2, 4]


@pytest.mark.slow
def test_a_translator_is_trained_further(succeed, corpus, tmp_path):
    """From its own weights, with its vocabularies and its case, on other pairs; the record has both runs."""
    train_translator(succeed, corpus, tmp_path / "run", "--vocabularies", "separate")
    other = tmp_path / "other"
    other.mkdir()
    for prefix in ("train", "val"):
        (other / f"{prefix}.num").write_text("".join(f"{number} {number}\n" for number in range(40)))
        (other / f"{prefix}.de").write_text("".join(f"ANDERE Wörter {number}\n" for number in range(40)))
    # It has its own case, whatever is asked for here.
    still = ["--lowercase", "--learning_rate", "1e-9", "--config", '{"dropout": 0.0}']
    out = train_translator(succeed, other, tmp_path / "further", "--model", tmp_path / "run", *still)
    assert "test BLEU:" in out
    assert "lowercase: false\n" in (tmp_path / "further" / "recipe.yaml").read_text()
    before, after = (AutoModelForSeq2SeqLM.from_pretrained(tmp_path / name) for name in ("run", "further"))
    assert after.generation_config.use_cache
    assert after.config.dropout == 0 and before.config.vocab_size == after.config.vocab_size
    for name, weight in before.state_dict().items():
        torch.testing.assert_close(after.state_dict()[name], weight, atol=1e-6, rtol=0)
    for file in ("tokenizer.json", "target_tokenizer/tokenizer.json"):
        assert (tmp_path / "further" / file).read_text() == (tmp_path / "run" / file).read_text()
    assert read_json(tmp_path / "further" / "run.json")["parent_model"] == {"name": "run"}
    assert "bleu_words" not in read_json(tmp_path / "further" / "metrics.json")["test"]["beams_1"]


def test_the_papers_own_recipe_has_the_papers_settings(tmp_path, monkeypatch):
    words = ["wmt14-en-de-base", "--data", "wmt14", "--output_dir", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["vanilla-transformer train-translation"])
    (_, model, training), _ = parse_arguments(GROUPS, "", words)
    config = VanillaTransformerConfig.from_preset(model.preset, **model.config)
    sizes = (config.d_model, config.encoder_ffn_dim, config.decoder_ffn_dim)
    layers = (config.encoder_layers, config.decoder_layers)
    heads = (config.encoder_attention_heads, config.decoder_attention_heads)
    assert (sizes, layers, heads) == ((512, 2048, 2048), (6, 6), (8, 8))
    assert (config.dropout, config.embedding_dropout) == (0.1, 0.1)
    assert (config.attention_dropout, config.activation_dropout) == (0, 0)
    assert (model.vocabularies, model.vocab_size, model.tokenizer_model) == ("joint", 37000, "bpe")
    assert (model.max_tokens, training.max_steps, training.gradient_accumulation_steps) == (25000, 100000, 1)
    assert training.learning_rate == pytest.approx(noam_peak(512, 4000), rel=1e-12)
    assert (training.lr_scheduler_type, training.warmup_steps) == ("inverse_sqrt", 4000)
    adam = (training.adam_beta1, training.adam_beta2, training.adam_epsilon, training.weight_decay)
    assert adam == (0.9, 0.98, 1e-9, 0)
    assert (training.label_smoothing_factor, training.max_grad_norm) == (0.1, 0)
    assert (model.average_last, training.generation_num_beams, model.length_penalty) == (5, 4, 0.6)


def test_two_vocabularies_and_a_token_budget(succeed, corpus, tmp_path):
    flags = ["--preset", "pytorch-seq2seq", "--vocabularies", "separate", "--tokenizer_model", "word", "--lowercase"]
    flags += ["--target_vocab_size", "13", "--max_tokens", "50", "--predict_with_generate", "true"]
    flags += ["--load_best_model_at_end", "true", "--metric_for_best_model", "bleu"]
    train_translator(succeed, corpus, tmp_path / "run", *flags)
    config = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run").config
    source = AutoTokenizer.from_pretrained(tmp_path / "run")
    target = AutoTokenizer.from_pretrained(tmp_path / "run" / "target_tokenizer")
    assert (config.vocab_size, config.decoder_vocab_size) == (len(source), len(target)) == (12, 13)
    assert target.tokenize("Eins zwei.") == ["eins", "zwei", "."]
    assert not config.tie_word_embeddings
    metrics = read_json(tmp_path / "run" / "metrics.json")
    assert metrics["epochs"][0].keys() >= {"eval_bleu", "eval_bleu_lowercased", "eval_loss"}

    assert succeed("translate", "--model", tmp_path / "run", stdin="1 2\n").count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "split"),
    [
        (["--bf16", "true", "--generation_num_beams", "2", "--length_penalty", "0.5"], "test"),
        (["--vocabularies", "separate", "--tokenizer_model", "word", "--lowercase", "--bf16", "true"], "validation"),
        (["--weights_dtype", "bfloat16", "--per_device_eval_batch_size", "3", "--average_last", "2"], "test"),
        (["--preset", "pytorch-seq2seq", "--gradient_checkpointing", "true"], "test"),
    ],
)
def test_the_published_figures_are_those_of_evaluate(corpus, succeed, tmp_path, flags, split):
    """To the last digit, whatever the run computed in; the card names the precision."""
    train_translator(succeed, corpus, tmp_path / "run", *flags, "--learning_rate", "1e-2")
    metrics = read_json(tmp_path / "run" / "metrics.json")
    assert metrics[split]["precision"] == "float32"
    for beams in (1, 2) if "--generation_num_beams" in flags else (1,):
        report = evaluate(tmp_path / "run", data=corpus, num_beams=beams, split=split)
        published = metrics[split][f"beams_{beams}"]
        assert {name: report[name] for name in published} == published and report["precision"] == "float32"
    assert "computed in float32" in (tmp_path / "run" / "README.md").read_text()


def test_the_published_perplexity_is_that_of_each_sentence_by_itself(succeed, corpus, tmp_path):
    flags = ["--vocabularies", "separate", "--learning_rate", "1e-2", "--max_tokens", "200", "--lowercase"]
    train_translator(succeed, corpus, tmp_path / "run", *flags)
    metrics = read_json(tmp_path / "run" / "metrics.json")
    sources, references = ((corpus / f"test.{side}").read_text().splitlines() for side in ("num", "de"))
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run")
    target_tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run", subfolder="target_tokenizer")
    losses, tokens = 0.0, 0
    for source, reference in zip(sources, references, strict=True):
        batch = tokenizer(source, truncation=True, return_tensors="pt")
        labels = target_tokenizer(reference, truncation=True, return_tensors="pt").input_ids
        with torch.no_grad():
            losses += model(**batch, labels=labels).loss.item() * labels.numel()
        tokens += labels.numel()
    assert metrics["test"]["loss"] == pytest.approx(losses / tokens, rel=1e-4)
    assert metrics["test"]["perplexity"] == pytest.approx(math.exp(losses / tokens), rel=1e-4)
