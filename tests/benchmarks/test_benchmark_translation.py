"""Speed of translating: all ways give the same translations, so that only their time differs."""

from pathlib import Path

import pytest
from exports.models import save, tiny_preset
from shared import LINES, read_json

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration


def command(folder: Path, preset: str) -> list:
    """The command for a translator with random weights that end each translation at another length."""
    config = tiny_preset(preset)
    config.tie_word_embeddings = False  # it would repeat its last token
    model = VanillaTransformerForConditionalGeneration(config)
    model.lm_head.weight.data *= 4
    model.lm_head.bias.data[config.eos_token_id] += 2
    model.lm_head.bias.data[config.pad_token_id] -= 100  # a trained model writes no pads
    for name in ("train.a", "train.b", "test.a", "test.b"):
        (folder / name).write_text("\n".join(LINES[:13]) + "\n")
    data = ["--data", folder, "--source_column", "a", "--target_column", "b"]
    return ["benchmarks/benchmark_translation.py", "--model", save(model, folder / "model"), *data]


@pytest.mark.parametrize("preset", ["pytorch-seq2seq", "base"])
def test_all_ways_give_the_same_translations(succeed, tmp_path, preset):
    """Of more sentences than a batch holds."""
    settings = ["--rounds", "2", "--batch_size", "4", "--max_new_tokens", "8", "--file", tmp_path / "times.json"]
    assert succeed(*command(tmp_path, preset), *settings).count("tokens/s") == 3
    report = read_json(tmp_path / "times.json")
    assert report["sentences"] == 13 and report["tokens"] > 13
    assert set(report["same_translations"].values()) == {13}
    assert [len(times) for times in report["seconds"].values()] == [2, 2, 2]
