"""Training sequence-to-sequence models by the scripts: what they leave, and what they refuse."""

import json

import pytest
import torch
from conftest import ROOT
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer


TINY = (
    '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, '
    '"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}'
)
QUICK = [
    *("--config", TINY, "--max_steps", "4", "--save_steps", "2", "--eval_strategy", "steps", "--eval_steps", "2"),
    *("--disable_tqdm", "true", "--report_to", "none", "--max_length", "12", "--vocab_size", "60"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Numbers in figures and in words."""
    folder = tmp_path_factory.mktemp("corpus")
    words = ["Null", "Eins", "Zwei", "Drei", "Vier"]
    pairs = [([a, b, c], [words[a], words[b], words[c]]) for a in range(5) for b in range(5) for c in range(5)]
    for name, part in (("train", pairs[:100]), ("val", pairs[100:112]), ("test", pairs[112:])):
        (folder / f"{name}.num").write_text("".join(" ".join(map(str, number)) + "\n" for number, _ in part))
        (folder / f"{name}.de").write_text("".join(" ".join(word) + ".\n" for _, word in part))
    return folder


def train(run, corpus, folder, *arguments):
    return run(
        "train_translation.py",
        *("--data", corpus, "--source_column", "num", "--target_column", "de", "--validation_prefix", "val"),
        *("--output_dir", folder, *QUICK, *arguments),
    )


def test_a_translator_is_a_folder_that_transformers_loads(run, corpus, tmp_path):
    status, out, _ = train(run, corpus, tmp_path / "run", "--average_last", "2", "--generation_num_beams", "2")
    assert status == 0
    assert out.strip().splitlines()[-1].startswith("test BLEU: ")

    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["averaged_steps"] == [2, 4]
    assert [entry["step"] for entry in metrics["epochs"]] == [2, 4]
    for split, rows in (("validation", 12), ("test", 13)):
        assert metrics[split].keys() == {"beams_1", "beams_2"}
        report = metrics[split]["beams_2"]
        assert report["rows"] == rows
        assert "case:lc" in report["bleu_lowercased_signature"] and "case:mixed" in report["bleu_signature"]

    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run")
    assert model.lm_head.weight is model.get_input_embeddings().weight
    steps = [load_file(tmp_path / "run" / f"checkpoint-{step}" / "model.safetensors") for step in (2, 4)]
    bias = (steps[0]["lm_head.bias"] + steps[1]["lm_head.bias"]) / 2
    torch.testing.assert_close(model.lm_head.bias.data, bias)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run")
    ids = model.generate(**tokenizer(["1 2 3", "4"], padding=True, return_tensors="pt"))
    assert ids.shape[1] <= 12


def test_two_vocabularies_and_a_token_budget(run, corpus, tmp_path):
    status, _, _ = train(
        run,
        corpus,
        tmp_path / "run",
        *("--preset", "pytorch-seq2seq", "--vocabularies", "separate", "--tokenizer_model", "word", "--lowercase"),
        *("--target_vocab_size", "13", "--max_tokens", "50", "--predict_with_generate", "true"),
        *("--load_best_model_at_end", "true", "--metric_for_best_model", "bleu"),
    )
    assert status == 0
    config = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run").config
    source = AutoTokenizer.from_pretrained(tmp_path / "run")
    target = AutoTokenizer.from_pretrained(tmp_path / "run" / "target_tokenizer")
    assert (config.vocab_size, config.decoder_vocab_size) == (len(source), len(target)) == (12, 13)
    assert target.tokenize("Eins zwei.") == ["eins", "zwei", "."]
    assert not config.tie_word_embeddings
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["epochs"][0].keys() >= {"eval_bleu", "eval_bleu_lowercased", "eval_loss"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target_column", "fr"], "train.fr: no such file"),
        (["--preset", "bert"], "no preset 'bert'"),
        (["--config", '{"d_modle": 8}'], "no such field: d_modle"),
        (["--config", "{"], "--config"),
        (["--vocabularies", "three"], "--vocabularies"),
        (["--average_last", "0"], "--average_last"),
        (["--max_tokens", "2"], "does not fit in a batch of 2"),
        (["--tokenizer_model", "char"], "char"),
    ],
)
def test_training_refuses_with_one_line(run, corpus, tmp_path, arguments, message):
    status, _, err = train(run, corpus, tmp_path / "run", *arguments)
    assert status == 2
    lines = [line for line in err.splitlines() if line.startswith("train_translation.py: error:")]
    assert len(lines) == 1 and message in lines[0]


def test_checkpoints_are_averaged_by_a_script_too(run, corpus, tmp_path):
    assert train(run, corpus, tmp_path / "run", "--average_last", "2")[0] == 0
    status, out, _ = run(
        "average_checkpoints.py", "--run", tmp_path / "run", "--last", "2", "--output_dir", tmp_path / "mean"
    )
    assert status == 0 and "the mean of checkpoint-2, checkpoint-4" in out
    ours, trainers = (load_file(tmp_path / folder / "model.safetensors") for folder in ("mean", "run"))
    torch.testing.assert_close(ours, trainers)
    AutoTokenizer.from_pretrained(tmp_path / "mean")

    status, _, err = run("average_checkpoints.py", "--run", tmp_path / "run", "--output_dir", tmp_path / "more")
    assert (status, err.count("\n")) == (2, 1) and "2 checkpoints, fewer than 10" in err


def test_the_copy_task_leaves_its_record(run, tmp_path):
    arguments = ["--train_sequences", "64", "--test_sequences", "8", "--max_steps", "2", "--disable_tqdm", "true"]
    status, out, _ = run("train_copy.py", ROOT / "scripts/recipes/copy.yaml", "--output_dir", tmp_path, *arguments)
    assert status == 0 and "of 8 fresh sequences" in out
    assert json.loads((tmp_path / "metrics.json").read_text())["test"]["sequences"] == 8
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config.vocab_size == 11


@pytest.mark.slow
def test_the_copy_task_is_learned(run, tmp_path):
    arguments = [ROOT / "scripts/recipes/copy.yaml", "--output_dir", tmp_path, "--disable_tqdm", "true"]
    assert run("train_copy.py", *arguments)[0] == 0
    assert json.loads((tmp_path / "metrics.json").read_text())["test"]["copied"] >= 0.99
