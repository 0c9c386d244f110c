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

from exports.models import TWIN, random_model, save
from hf_vanilla_transformer import VanillaTransformerModel
from hf_vanilla_transformer.exports import comparison, export, exporting, native_writer, restore
from hf_vanilla_transformer.exports.card import facts_of_source
from hf_vanilla_transformer.inference import load_engine
from hf_vanilla_transformer.inference.torch_engine import TorchEngine
from hf_vanilla_transformer.tasks import FORMATS
from hf_vanilla_transformer.tokenizer import train_tokenizer


@pytest.fixture
def model(tmp_path):
    return save(random_model(tiny_config(**TWIN)), tmp_path / "model")


def left(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir())


def test_the_record_says_what_was_done(model, tmp_path):
    record = export(model, output_dir=str(tmp_path / "new" / "parents" / "export"), format="transformers")
    assert left(tmp_path) == ["model", "new"]
    folder = tmp_path / "new" / "parents" / "export"
    assert json.loads((folder / "export.json").read_text()) == json.loads(json.dumps(record))
    assert (record["format"], record["task"], record["quantize"]) == ("transformers", "translation", None)
    assert (
        record["source"] == "LOCAL/model"
        and read_json(folder / "local.json") == {"LOCAL/model": model}
        and record["versions"]["torch"] == metadata.version("torch")
    )
    assert record["config"].items() >= {"norm_first": True, "vocab_size": 29}.items()
    assert load_engine(str(folder)).facts.max_positions == 16
    assert "_name_or_path" not in record["config"]
    assert record["comparison"]["same_ids"].split()[0] == record["comparison"]["same_ids"].split()[2]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "of random tokens, 1 to 16 of them" in card and "same translation, greedy search" in card


def test_an_exports_card_says_what_it_was_made_of(model, tmp_path):
    """From the model's own card, which may be a stranger's; of a name on the Hub, that."""
    folder = Path(model)
    head = {"language": ["de", "en"], "license": "mit", "datasets": [{"odd": 1}], "widget": "x"}
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(head)}---\n# a model\n")
    export(str(folder), output_dir=str(tmp_path / "export"), format="transformers")
    found = ModelCard.load(tmp_path / "export" / "README.md").data.to_dict()
    assert (found["language"], found["license"]) == (["de", "en"], "mit")
    assert not found.keys() & {"datasets", "widget", "base_model"}
    (folder / "README.md").write_text("---\n: [\n---\n")
    assert facts_of_source(str(folder), None) == {}
    assert facts_of_source("user/model", "int8") == {"base_model": "user/model", "base_model_relation": "quantized"}


def scaled(name: str):
    return lambda state_dict, *_: state_dict.update({name: state_dict[name] * 1.001})


def another_search(settings, *_):
    """The same log-probabilities, and another end of the search."""
    settings.no_repeat_ngram_size = 1


def another_tokenizer(_, tokenizers, folder):
    train_tokenizer(["나 가", "라 다"] * 9, vocab_size=20, max_length=16, add_eos=True).save_pretrained(folder)


@pytest.mark.parametrize(
    ("module", "function", "change", "message"),
    [
        (native_writer, "twin_state_dict", scaled("lm_head.weight"), "log-probabilities differ by up to"),
        (native_writer, "twin_state_dict", scaled("final_logits_bias"), "log-probabilities differ by up to"),
        (
            native_writer,
            "twin_state_dict",
            scaled("model.encoder.layers.1.fc1.bias"),
            "log-probabilities differ by up to",
        ),
        (native_writer, "twin_generation_config", another_search, "translations differ, the ids"),
        (exporting, "save_tokenizers", another_tokenizer, "its tokenizer gives other ids than the model's"),
    ],
)
def test_an_export_that_does_not_agree_leaves_nothing(
    module, function, change, message, model, monkeypatch, refuse_export
):
    right = getattr(module, function)

    def wrong(*arguments):
        value = right(*arguments)
        change(value, *arguments)
        return value

    monkeypatch.setattr(module, function, wrong)
    refuse_export(model, f"^the export does not agree with torch: {message}")


@pytest.mark.parametrize("is_quantized", [False, True])
def test_numbers_that_are_not_finite_do_not_agree(is_quantized):
    with pytest.raises(ValueError, match="differ by"):
        comparison.differences("logits", [np.ones(2)], [np.array([1.0, np.nan])], is_quantized)


def test_a_tie_is_no_difference():
    """Two tokens of the same probability: which of them is written is chance."""
    model = random_model(tiny_config(**TWIN))
    weight = model.lm_head.weight.data
    weight[9], model.lm_head.bias.data[9] = weight[8], model.lm_head.bias.data[8]
    engine = TorchEngine(model)
    assert comparison.is_tie(engine, [5, 6], [7, 8, 4], [7, 9, 6, 6])
    assert not comparison.is_tie(engine, [5, 6], [7, 8, 4], [7, 10, 6, 6])
    assert not comparison.is_tie(engine, [5, 6], [7, 8], [7])


def test_an_empty_folder_is_used_and_a_full_one_refused(model, tmp_path):
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / ".DS_Store").touch()
    export(model, output_dir=str(tmp_path / "export"), format="transformers")
    for full in (tmp_path / "export", tmp_path / "model" / "config.json"):
        with pytest.raises(ValueError, match="is not empty, and nothing is overwritten"):
            export(model, output_dir=str(full), format="transformers")
        with pytest.raises(ValueError, match="is not empty, and nothing is overwritten"):
            restore(str(tmp_path / "export"), str(full))
    assert left(tmp_path) == ["export", "model"]


@pytest.mark.parametrize(
    ("format", "task", "fields", "message"),
    [
        ("transformers", "classification", {}, "architectures: a classifier is exported to ctranslate2 or onnx, not"),
        ("onnx", "translation", {}, "architectures: a translator is exported to ctranslate2 or transformers, not"),
        ("transformers", "translation", {"decoder_start_token_id": None}, "decoder_start_token_id: none"),
        ("transformers", "translation", {"eos_token_id": None}, "eos_token_id: none"),
    ],
)
def test_what_no_engine_of_a_format_runs_is_refused_by_its_field(
    format, task, fields, message, refuse_export, monkeypatch
):
    # Before an extra is asked for.
    monkeypatch.setitem(sys.modules, f"hf_vanilla_transformer.exports.{FORMATS[format].writer}", None)
    model = random_model(tiny_config(**TWIN), task)
    model.config.update(fields)
    refuse_export(model, f"^{message}", format)


def test_other_mistakes_are_told(model, tmp_path, refuse_export):
    refuse_export(model, "invalid choice: 'tensorrt'", "tensorrt")
    refuse_export(model, "quantize: 'int8' is not for transformers", quantize="int8")
    refuse_export("nowhere", "nowhere")
    refuse_export(VanillaTransformerModel(tiny_config()), "neither classifier nor translator but a VanillaTransformer")
    refuse_export(random_model(tiny_config(vocab_size=20)), "the tokenizer has the id 27")
    random_model(tiny_config(vocab_size=400)).save_pretrained(tmp_path / "slow")
    ByT5Tokenizer().save_pretrained(tmp_path / "slow")
    refuse_export(str(tmp_path / "slow"), "its tokenizer is not a fast one")


def test_a_missing_extra_is_named_with_its_command(model, tmp_path, monkeypatch, refuse_export):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    for name in [name for name in sys.modules if name.startswith("ctranslate2.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "hf_vanilla_transformer.exports.ctranslate2_writer", raising=False)
    message = "^CTranslate2 is not installed: pip install 'hf-vanilla-transformer\\[ctranslate2\\]'$"
    refuse_export(model, message, "ctranslate2", error=ImportError)
    record = {"format": "ctranslate2", "task": "translation", "quantize": None, "generation": None}
    record["config"] = tiny_config().to_dict()
    (tmp_path / "export.json").write_text(json.dumps(record))
    with pytest.raises(ImportError, match=message):
        load_engine(str(tmp_path))
