"""A benchmark that cannot be run says so in one line, before it measures anything."""

import pytest
from conftest import tiny_config
from shared import ROOT

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification


SCRIPTS = {
    "benchmark.py": ["--output_dir", "run"],
    "benchmark_engines.py": ["--output_dir", "run", "--labelled_data", "sample", "--tasks", "batches"],
    "benchmark_translation.py": ["--model", "classifier", "--source_column", "num", "--target_column", "de"],
    "size.py": ["--output_dir", "run"],
}


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("benchmark.py", ["--rounds", "0"], "--rounds"),
        ("benchmark.py", ["--tasks", "training", "speed"], "not speed"),
        ("benchmark.py", ["--device", "banana"], "not banana"),
        ("benchmark.py", ["--config", "{"], "--config"),
        ("benchmark_engines.py", ["--tasks", "greedy", "speed"], "not speed"),
        ("benchmark_engines.py", ["--contenders", "CTranslate2, int8"], "torch, float32 must be one"),
        ("benchmark_engines.py", ["--threads", "0"], "--threads: at least 1"),
        ("benchmark_engines.py", ["--page", ROOT / "README.md"], "README.md has no marks for the tables"),
        ("benchmark_engines.py", ["--classifier", "nowhere"], "nowhere"),
        ("benchmark_translation.py", ["--file", "there.json"], "there.json is there, and nothing is overwritten"),
        ("benchmark_translation.py", ["--file", "nowhere/times.json"], "--file: no folder"),
        ("benchmark_translation.py", [], "not a translator"),
        ("size.py", ["--rows", "9"], "--rows"),
        ("size.py", ["--kinds", "plain"], "not plain"),
        ("size.py", ["--vocab_lines", "0"], "--vocab_lines"),
    ],
)
def test_a_benchmark_refuses_with_one_line(refused, corpus, tmp_path, monkeypatch, script, arguments, message):
    monkeypatch.chdir(tmp_path)
    VanillaTransformerForSequenceClassification(tiny_config()).save_pretrained("classifier")
    (tmp_path / "there.json").touch()
    data = ["--data", corpus] if script == "benchmark_translation.py" else []
    assert message in refused(f"benchmarks/{script}", *SCRIPTS[script], *data, *arguments)
