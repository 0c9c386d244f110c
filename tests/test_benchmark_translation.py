"""The benchmark of translating: all ways give the same translations, so that only their time differs."""

import json

import pytest
from shared import tiny_config, train_translator

from hf_vanilla_transformer import (
    VanillaTransformerForSequenceClassification,
)


@pytest.mark.parametrize("preset", ["pytorch-seq2seq", "base"])
def test_the_benchmark_compares_what_is_the_same(run, corpus, tmp_path, preset):
    """All three ways give the same translations, so that only their time differs."""
    status, _, _ = train_translator(run, corpus, tmp_path / "run", "--preset", preset, "--vocabularies", "separate")
    assert status == 0
    status, out, _ = run(
        "benchmarks/benchmark_translation.py",
        *("--model", tmp_path / "run", "--data", corpus, "--source_column", "num", "--target_column", "de"),
        *("--rounds", "1", "--batch_size", "4", "--max_new_tokens", "8", "--file", tmp_path / "times.json"),
    )
    assert status == 0 and out.count("tokens/s") == 3
    report = json.loads((tmp_path / "times.json").read_text())
    assert report["sentences"] == 13
    assert set(report["same_translations"].values()) == {13}


def test_the_benchmark_refuses_with_one_line(run, corpus, tmp_path):
    VanillaTransformerForSequenceClassification(tiny_config()).save_pretrained(tmp_path / "classifier")
    columns = ["--source_column", "en", "--target_column", "de"]
    (tmp_path / "there.json").touch()
    for arguments, message in (
        (["--rounds", "0"], "--rounds: at least 1"),
        (["--file", tmp_path / "there.json"], "there.json is there, and nothing is overwritten"),
        (["--file", tmp_path / "nowhere" / "times.json"], "--file: no folder"),
        ([], "not a translator"),
    ):
        status, _, err = run(
            "benchmarks/benchmark_translation.py",
            "--model",
            tmp_path / "classifier",
            "--data",
            corpus,
            *columns,
            *arguments,
        )
        assert status == 2 and message in err and "Traceback" not in err


def test_the_benchmark_refuses_what_marian_is_not(run, corpus, tmp_path):
    assert train_translator(run, corpus, tmp_path / "run", "--preset", "annotated-transformer")[0] == 0
    status, _, err = run(
        "benchmarks/benchmark_translation.py",
        *("--model", tmp_path / "run", "--data", corpus, "--source_column", "num", "--target_column", "de"),
    )
    assert status == 2 and "Marian has post-norm models alone" in err
