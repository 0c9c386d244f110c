"""Engines side by side: all answer the same texts, in turn; quality stands beside speed."""

import pytest
from benchmark_engines import CONTENDERS, PROCESSOR, TASKS, TORCH, UNSORTED, markdown_tables
from shared import read_json, tiny_config

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.tokenizer import train_tokenizer


@pytest.fixture
def settings(tmp_path, corpus, trained) -> list:
    """The settings that name tiny models and their data."""
    sentences = [line for file in corpus.iterdir() for line in file.read_text().splitlines()]
    tokenizer = train_tokenizer(sentences, vocab_size=1000, add_eos=True, max_length=16)
    config = tiny_config(encoder_layers=1, decoder_layers=1, vocab_size=len(tokenizer))
    for saved in (VanillaTransformerForConditionalGeneration(config), tokenizer):
        saved.save_pretrained(tmp_path / "translator")
    settings = ["--translator", tmp_path / "translator", "--parallel_data", corpus, "--test_prefix", "test"]
    settings += ["--source_column", "num", "--target_column", "de"]
    settings += ["--classifier", trained, "--labelled_data", "sample"]
    return [*settings, "--texts", "10", "--single_texts", "3", "--rounds", "2", "--output_dir", tmp_path / "run"]


@pytest.mark.slow
def test_engines_are_measured_in_turn(succeed, settings, tmp_path):
    pytest.importorskip("ctranslate2")
    names = [name for name, contender in CONTENDERS.items() if contender.format in (None, "ctranslate2")]
    page = tmp_path / "page.md"
    page.write_text(f"before\n<!-- tables {PROCESSOR} -->\nold\n<!-- end of tables -->\nafter\n")
    chosen = ["--contenders", *names, "--threads", "1"]
    out = succeed("benchmarks/benchmark_engines.py", *settings, "--page", page, *chosen)
    report = read_json(tmp_path / "run" / "engines.json")
    for task in TASKS:
        if task in ("batches", "single"):
            own = [name for name in names if name != UNSORTED]
        else:
            own = [name for name in names if name != "torch, bfloat16"]
        assert [row["name"] for row in report[task]] == own
        quality = "bleu" if task in ("greedy", "beams") else "accuracy"
        for row in report[task]:
            assert len(row["seconds"]) == 2 and row["texts_per_second"] > 0
            assert (row["times_torch"] == 1) == (row["name"] == TORCH)
            if "float32" in row["name"] and task != "beams":
                assert row[quality] == report[task][0][quality]
    tables = markdown_tables(report)
    assert all(line in out for line in tables.splitlines())
    assert page.read_text() == f"before\n<!-- tables {PROCESSOR} -->\n\n{tables}\n<!-- end of tables -->\nafter\n"
    assert tables.count("| torch, float32 |") == 4
