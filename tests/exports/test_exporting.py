"""An export is there as a whole or not at all, and only if it agrees with its model."""

import json
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from shared import files_of_at_most, read_json, tiny_config
from transformers import ByT5Tokenizer

from exports.models import random_model, save
from hf_vanilla_transformer import VanillaTransformerModel
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.exports import comparison, export
from hf_vanilla_transformer.exports.exporting import metadata_of
from hf_vanilla_transformer.inference import load_engine
from hf_vanilla_transformer.inference.torch_engine import TorchEngine
from hf_vanilla_transformer.settings.tasks import FORMATS


pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")

from hf_vanilla_transformer.exports import ctranslate2_writer


@pytest.fixture
def model(tmp_path):
    return save(random_model(tiny_config()), tmp_path / "model")


def test_record_card_and_lines_say_what_was_done(model, tmp_path, capsys):
    folder = tmp_path / "new" / "parents" / "export"
    record = export(model, output_dir=str(folder), format="ctranslate2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "new"]
    assert read_json(folder / "export.json") == json.loads(json.dumps(record))
    assert (record["format"], record["task"], record["quantize"]) == ("ctranslate2", "translation", None)
    assert record["source"] == "model" and record["versions"]["torch"] == metadata.version("torch")
    assert record["config"]["vocab_size"] == 29 and "_name_or_path" not in record["config"]
    assert load_engine(str(folder)).facts.max_positions == 16
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "| same translation, greedy search | 25 of 25 |" in card
    assert capsys.readouterr().out.startswith(f"{folder}: ctranslate2, float32; beside torch, ")


def test_an_exports_card_has_language_and_licence_of_its_model(model, tmp_path):
    head = {"language": ["de", "en"], "license": "mit", "widget": "x"}
    Path(model, "README.md").write_text(f"---\n{yaml.safe_dump(head)}---\n# a model\n")
    export(model, output_dir=str(tmp_path / "export"), format="ctranslate2")
    data = ModelCard.load(tmp_path / "export" / "README.md").data.to_dict()
    assert (data["language"], data["license"]) == (["de", "en"], "mit")
    assert not data.keys() & {"widget", "base_model"}
    assert metadata_of("user/model") == {"base_model": "user/model"}


CHANGES = {
    "head": lambda model: model.lm_head.weight.data.zero_(),
    "layer": lambda model: model.model.encoder.layers[1].feed_forward.fc1.weight.data.mul_(0.999),
    "end": lambda model: setattr(model.generation_config, "eos_token_id", 9),
    "start": lambda model: setattr(model.generation_config, "decoder_start_token_id", 9),
    "bias": lambda model: model.lm_head.bias.data.add_(torch.arange(29.0)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_writer_that_changes_the_model_is_found_out(change, model, monkeypatch, refuse_export):
    right = ctranslate2_writer.write

    def wrong(network, *arguments):
        change(network)
        right(network, *arguments)

    monkeypatch.setattr(ctranslate2_writer, "write", wrong)
    refuse_export(model, "does not agree with torch: ")


def test_an_export_with_another_search_leaves_nothing(model, monkeypatch, refuse_export):
    monkeypatch.setattr(TorchEngine, "translate", lambda self, rows, *_, **__: [[[5]] for _ in rows])
    refuse_export(model, "does not agree with torch: translations differ")


def test_an_export_with_another_tokenizer_leaves_nothing(model, monkeypatch, refuse_export):
    other = train_tokenizer(["나 가", "라 다"] * 9, vocab_size=20, max_length=16, add_eos=True)
    save = type(other).save_pretrained
    monkeypatch.setattr(type(other), "save_pretrained", lambda self, folder: save(other, folder))
    refuse_export(model, "does not agree with torch: its tokenizer gives other ids than the model's")


@pytest.mark.parametrize(
    ("is_quantized", "difference"), [(False, np.nan), (True, np.nan), (False, 2e-5), (False, -2e-5), (True, 0.5)]
)
def test_numbers_beyond_the_tolerance_or_not_finite_do_not_agree(is_quantized, difference):
    expected = np.array([[1.0, -1.0], [-1.0, 1.0]])
    comparison.differences(expected, expected + (0.1 if is_quantized else 5e-6), is_quantized)
    with pytest.raises(ValueError, match="differ by"):
        comparison.differences(expected, expected + difference, is_quantized)


def test_a_tie_is_no_difference():
    """Two tokens of the same probability: which of them is written is chance."""
    model = random_model(tiny_config())
    weight = model.lm_head.weight.data
    weight[9], model.lm_head.bias.data[9] = weight[8], model.lm_head.bias.data[8]
    engine = TorchEngine(model)
    assert comparison.is_tie(engine, [5, 6], [7, 8, 4], [7, 9, 6, 6])
    assert not comparison.is_tie(engine, [5, 6], [7, 8, 4], [7, 10, 6, 6])
    assert not comparison.is_tie(engine, [5, 6], [7, 8], [7])


def test_a_full_folder_and_a_full_disk_are_refused(model, tmp_path, refuse_export):
    with pytest.raises(ValueError, match="is not empty, and nothing is overwritten"):
        export(model, output_dir=model, format="ctranslate2")
    with files_of_at_most(40_000):
        refuse_export(model, "File too large", error=OSError)


def test_a_task_that_a_format_has_not_is_refused_before_an_extra_is_asked_for(model, refuse_export, monkeypatch):
    monkeypatch.setitem(sys.modules, f"hf_vanilla_transformer.exports.{FORMATS['onnx'].writer}", None)
    refuse_export(model, "a translator is exported to ctranslate2, not to onnx", "onnx")


def test_models_that_cannot_be_exported_are_refused(tmp_path, refuse_export):
    refuse_export("nowhere", "nowhere")
    refuse_export(VanillaTransformerModel(tiny_config()), "neither classifier nor translator but a VanillaTransformer")
    refuse_export(random_model(tiny_config(vocab_size=20)), "the tokenizer has the id 27")
    random_model(tiny_config(vocab_size=400)).save_pretrained(tmp_path / "slow")
    ByT5Tokenizer().save_pretrained(tmp_path / "slow")
    refuse_export(str(tmp_path / "slow"), "its tokenizer is not a fast one")
