"""What a command refuses, in one line, before it has written anything."""

import shutil
from pathlib import Path

import pytest
from shared import QUIET, ROOT, TINY_TRANSLATOR, TWO_STEPS, tiny_config
from transformers import AutoTokenizer

from hf_vanilla_transformer import VanillaTransformerModel


NSMC_SMALL = str(ROOT / "model_cards" / "nsmc-small")
# What is right.
FLAGS = {
    "predict": ["--model", NSMC_SMALL],
    "evaluate": ["--model", NSMC_SMALL, "--output_dir", "new"],
    "train-classifier": [*TWO_STEPS, "--output_dir", "new"],
    "train-translation": ["--source_column", "num", "--target_column", "de", "--validation_prefix", "val", *QUIET],
    "pretrain": ["--texts", "corpus.txt.gz", "--validation", "10", "--max_length", "12", *TINY_TRANSLATOR, *QUIET],
}
FLAGS["train-translation"] += [*TINY_TRANSLATOR, "--max_steps", "4", "--output_dir", "new"]
FLAGS["pretrain"] += ["--max_steps", "4", "--output_dir", "new"]
SIX = '{"decoder_vocab_size": 6}'
TWO, FOUR, DROPOUT = '{"d_model": 2}', '{"max_position_embeddings": 4}', '{"dropout": 0.1}'
REFUSED = [
    ("predict", ["--model", "./nowhere"], "nowhere"),
    ("predict", ["--model", "./headless"], "not a classifier"),
    ("predict", ["--model", "./corrupt"], "corrupt: no model can be read here"),
    ("predict", ["--dtype", "half"], "--dtype: invalid choice: 'half'"),
    ("evaluate", ["--split", "tset"], "--split"),
    ("evaluate", ["--batch_size", "0"], "batch_size"),
    ("evaluate", ["--data", "nowhere.csv"], "nowhere.csv"),
    ("evaluate", ["--robustness", "upside_down"], "no such change: upside_down"),
    ("evaluate", ["--data", "three.csv"], "the model has no label a, b, c; it has negative, positive"),
    ("train-classifier", ["--data", "./nowhere"], "nowhere"),
    ("train-classifier", ["--model", "./bart"], "'bart', not 'vanilla_transformer'"),
    ("train-classifier", ["--model", "./headless", "--config", TWO], "only the dropout rates can be changed"),
    ("train-classifier", ["--config", '{"d_modle": 8}'], "no such field: d_modle; did you mean d_model?"),
    ("train-classifier", ["--config", '{"vocab_size": 8}'], "less than the tokenizer's"),
    ("train-classifier", ["--config", FOUR], "the model has 4 positions"),
    ("train-classifier", ["--metric_for_best_model", "f2"], "loss, accuracy, f1, macro_f1; not f2"),
    ("train-classifier", ["--vocab_size", "8007", "--model", NSMC_SMALL], "--vocab_size: has no effect with --model"),
    ("train-classifier", ["--tokenizer", "./headless", "--model", NSMC_SMALL], "headless gives other ids than"),
    ("train-translation", ["--target_vocab_size", "60"], "--target_vocab_size"),
    ("train-translation", ["--metric_for_best_model", "bleu", "--vocab_size", "60"], "--metric_for_best_model: loss;"),
    ("train-translation", ["--generation_num_beams", "-1"], "generation_num_beams: a whole number, at least 1"),
    ("train-translation", ["--vocabularies", "separate", "--config", SIX], "decoder_vocab_size: 6 is less than"),
    ("train-translation", ["--model", NSMC_SMALL, "--config", "{}"], "nsmc-small: no translator"),
    ("train-translation", ["--average_last", "3", "--save_total_limit", "2"], "--average_last: needs 3 checkpoints"),
    ("train-translation", ["--max_tokens", "2", "--vocab_size", "60"], "does not fit in a batch of 2"),
    ("pretrain", ["--predict_with_generate", "true"], "--predict_with_generate"),
    ("pretrain", ["--vocab_size", "29", "--config", FOUR], "--max_length"),
    ("pretrain", ["--model", "./headless", "--config", DROPOUT, "--tokenizer", "./other"], "pad_token_id"),
    ("pretrain", ["--model", NSMC_SMALL, "--config", DROPOUT, "--max_length", "999"], "--max_length"),
    ("pretrain", ["--model", NSMC_SMALL, "--config", DROPOUT, "--preset", "base"], "--preset"),
    ("pretrain", ["--texts", "missing.txt"], "missing.txt"),
    ("pretrain", ["--texts", "latin1.txt"], "latin1.txt"),
]


@pytest.fixture
def faults(here, corpus, text_file, text_tokenizer) -> Path:
    """What the commands' flags name, right and wrong."""
    (here / "bart").mkdir()
    (here / "bart" / "config.json").write_text('{"model_type": "bart"}')
    VanillaTransformerModel(tiny_config(pad_token_id=0, bos_token_id=2, eos_token_id=3)).save_pretrained("headless")
    text_tokenizer.save_pretrained("headless")
    AutoTokenizer.from_pretrained("headless", pad_token="[CLS]").save_pretrained("other")
    shutil.copytree("headless", "corrupt")
    Path("corrupt", "model.safetensors").write_bytes(b"not safetensors")
    Path("three.csv").write_text("document,label\n" + "x,a\ny,b\nz,c\n" * 40)
    Path("latin1.txt").write_bytes("caf\xe9".encode("latin-1"))
    return here


@pytest.mark.parametrize(("command", "arguments", "message"), REFUSED)
def test_a_command_refuses_with_one_line(refused, faults, corpus, command, arguments, message):
    before = {file: file.read_bytes() for file in faults.rglob("*") if file.is_file()}
    data = ["--data", corpus] if command == "train-translation" else []
    assert message in refused(command, *FLAGS[command], *data, *arguments)
    assert {file: file.read_bytes() for file in faults.rglob("*") if file.is_file()} == before
