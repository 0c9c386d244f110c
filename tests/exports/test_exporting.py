"""An export is there as a whole or not at all, and only if it agrees with its model."""

import json
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard
from shared import read_json, tiny_config
from transformers import ByT5Tokenizer

from exports.models import random_model, save
from hf_vanilla_transformer import VanillaTransformerModel
from hf_vanilla_transformer.exports import comparison, export, exporting
from hf_vanilla_transformer.exports.card import facts_of_source
from hf_vanilla_transformer.inference import load_engine
from hf_vanilla_transformer.inference.torch_engine import TorchEngine
from hf_vanilla_transformer.tasks import FORMATS
from hf_vanilla_transformer.tokenizer import train_tokenizer


pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")

from hf_vanilla_transformer.exports import ctranslate2_writer


@pytest.fixture
def model(tmp_path):
    return save(random_model(tiny_config()), tmp_path / "model")


def test_record_and_card_say_what_was_done(model, tmp_path):
    folder = tmp_path / "new" / "parents" / "export"
    record = export(model, output_dir=str(folder), format="ctranslate2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "new"]
    assert read_json(folder / "export.json") == json.loads(json.dumps(record))
    assert (record["format"], record["task"], record["quantize"]) == ("ctranslate2", "translation", None)
    assert record["source"] == "model" and record["versions"]["torch"] == metadata.version("torch")
    assert record["config"]["vocab_size"] == 29 and "_name_or_path" not in record["config"]
    assert load_engine(str(folder)).facts.max_positions == 16
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"| same translation, greedy search | {record['comparison']['random_texts']['same_translation']} |" in card


def test_an_exports_card_has_language_and_licence_of_its_model(model, tmp_path):
    folder = Path(model)
    head = {"language": ["de", "en"], "license": "mit", "widget": "x"}
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(head)}---\n# a model\n")
    export(str(folder), output_dir=str(tmp_path / "export"), format="ctranslate2")
    found = ModelCard.load(tmp_path / "export" / "README.md").data.to_dict()
    assert (found["language"], found["license"]) == (["de", "en"], "mit")
    assert not found.keys() & {"widget", "base_model"}
    assert facts_of_source("user/model") == {"base_model": "user/model"}


def scale_head(spec):
    spec.decoder.projection.weight = spec.decoder.projection.weight * 1.001


def scale_a_bias(spec):
    spec.encoder.layer[1].ffn.linear_0.bias = spec.encoder.layer[1].ffn.linear_0.bias * 1.001


def write_another_tokenizer(tokenizers, folder):
    train_tokenizer(["나 가", "라 다"] * 9, vocab_size=20, max_length=16, add_eos=True).save_pretrained(folder)


@pytest.mark.parametrize("change", [scale_head, scale_a_bias])
def test_an_export_with_other_numbers_leaves_nothing(change, model, monkeypatch, refuse_export):
    right = ctranslate2_writer.set_translator

    def wrong(spec, *arguments):
        right(spec, *arguments)
        change(spec)

    monkeypatch.setattr(ctranslate2_writer, "set_translator", wrong)
    refuse_export(model, "^the export does not agree with torch: log-probabilities differ by up to")


def test_an_export_with_another_search_leaves_nothing(model, monkeypatch, refuse_export):
    monkeypatch.setattr(TorchEngine, "translate", lambda self, rows, *_, **__: [[[5]] for _ in rows])
    refuse_export(model, "^the export does not agree with torch: translations differ")


def test_an_export_with_another_tokenizer_leaves_nothing(model, monkeypatch, refuse_export):
    monkeypatch.setattr(exporting, "save_tokenizers", write_another_tokenizer)
    refuse_export(model, "^the export does not agree with torch: its tokenizer gives other ids than the model's")


@pytest.mark.parametrize("is_quantized", [False, True])
def test_numbers_that_are_not_finite_do_not_agree(is_quantized):
    with pytest.raises(ValueError, match="differ by"):
        comparison.differences("logits", np.ones(2), np.array([1.0, np.nan]), is_quantized)


def test_a_tie_is_no_difference():
    """Two tokens of the same probability: which of them is written is chance."""
    model = random_model(tiny_config())
    weight = model.lm_head.weight.data
    weight[9], model.lm_head.bias.data[9] = weight[8], model.lm_head.bias.data[8]
    engine = TorchEngine(model)
    assert comparison.is_tie(engine, [5, 6], [7, 8, 4], [7, 9, 6, 6])
    assert not comparison.is_tie(engine, [5, 6], [7, 8, 4], [7, 10, 6, 6])
    assert not comparison.is_tie(engine, [5, 6], [7, 8], [7])


def test_a_full_folder_is_refused(model):
    with pytest.raises(ValueError, match="is not empty, and nothing is overwritten"):
        export(model, output_dir=model, format="ctranslate2")


@pytest.mark.parametrize(
    ("format", "fields", "message"),
    [
        ("onnx", {}, "architectures: a translator is exported to ctranslate2, not"),
        ("ctranslate2", {"decoder_start_token_id": None}, "decoder_start_token_id: none"),
        ("ctranslate2", {"eos_token_id": None}, "eos_token_id: none"),
    ],
)
def test_what_no_engine_of_a_format_runs_is_refused_by_its_field(format, fields, message, refuse_export, monkeypatch):
    # Before an extra is asked for.
    monkeypatch.setitem(sys.modules, f"hf_vanilla_transformer.exports.{FORMATS[format].writer}", None)
    model = random_model(tiny_config())
    model.config.update(fields)
    refuse_export(model, f"^{message}", format)


def test_models_that_cannot_be_exported_are_refused(tmp_path, refuse_export):
    refuse_export("nowhere", "nowhere")
    refuse_export(VanillaTransformerModel(tiny_config()), "neither classifier nor translator but a VanillaTransformer")
    refuse_export(random_model(tiny_config(vocab_size=20)), "the tokenizer has the id 27")
    random_model(tiny_config(vocab_size=400)).save_pretrained(tmp_path / "slow")
    ByT5Tokenizer().save_pretrained(tmp_path / "slow")
    refuse_export(str(tmp_path / "slow"), "its tokenizer is not a fast one")


def test_a_missing_extra_is_named_with_its_command(model, tmp_path, monkeypatch, refused):
    export(model, output_dir=str(tmp_path / "export"), format="ctranslate2")
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    for name in [name for name in sys.modules if name.startswith("ctranslate2.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "hf_vanilla_transformer.exports.ctranslate2_writer", raising=False)
    for words in (
        ["export", "--model", model, "--format", "ctranslate2", "--output_dir", tmp_path / "other"],
        ["translate", "--model", tmp_path / "export"],
    ):
        said = refused(*words, stdin="x")
        assert said.endswith("ctranslate2 is not installed: pip install 'hf-vanilla-transformer[ctranslate2]'")
