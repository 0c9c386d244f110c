"""The page's folder: what is in it, what is refused. tests/exports/test_page_in_browser.py runs it."""

import hashlib
import re
from pathlib import Path

import pytest
from shared import ROOT, read_json, tiny_config

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.exports import browser_page
from hf_vanilla_transformer.tokenizer import train_tokenizer


STATIC = ROOT / "hf_vanilla_transformer" / "exports" / "page"
RUNTIME = browser_page.RUNTIME


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A small package instead of the runtime, and nothing instead of the networks."""
    checksum = hashlib.sha256(b"export {};").hexdigest()
    monkeypatch.setattr(browser_page, "RUNTIME", {"tiny@1.2.3": {"dist/library.mjs": checksum}})
    monkeypatch.setattr(browser_page, "_save_networks", lambda model, task, folder: folder.mkdir())


@pytest.fixture
def make(tmp_path):
    """Save a tiny model, and return the command's flags that make its page."""

    def make(model_class, **fields) -> list:
        model_class(tiny_config(**fields)).save_pretrained(tmp_path / "tiny")
        train_tokenizer(["가나다 라마바"], vocab_size=29, max_length=12).save_pretrained(tmp_path / "tiny")
        train_tokenizer(["abc"], vocab_size=20).save_pretrained(tmp_path / "tiny" / "target_tokenizer")
        (tmp_path / "runtime").mkdir()
        (tmp_path / "runtime" / "library.mjs").write_text("export {};")
        folders = ["--model", tmp_path / "tiny", "--output_dir", tmp_path / "page"]
        return [*folders, "--runtime", tmp_path / "runtime"]

    return make


def test_a_classifiers_page(succeed, make, tmp_path):
    flags = make(VanillaTransformerForSequenceClassification, id2label={0: "bad", 1: "good", 2: "so-so"})
    folder = tmp_path / "page"
    assert f"{folder}: a page of " in succeed("page", *flags, "--examples", "가나", "다")
    settings = read_json(folder / "model" / "page.json")
    assert settings["task"] == "classification" and settings["name"] == "tiny"
    assert settings["labels"] == ["bad", "good", "so-so"] and settings["examples"] == ["가나", "다"]
    assert settings["max_length"] == 12 and settings["target_tokenizer"] is False
    assert settings["attention"]["encoder"] == {"layers": 2, "heads": 4}
    for file in ("runtime/library.mjs", "model/tokenizer.json", *(path.name for path in STATIC.glob("*.*"))):
        assert (folder / file).is_file()


def test_a_translators_page_has_both_vocabularies(succeed, make, tmp_path):
    succeed("page", *make(VanillaTransformerForConditionalGeneration, decoder_vocab_size=31))
    settings = read_json(tmp_path / "page" / "model" / "page.json")
    assert settings["task"] == "translation" and settings["target_tokenizer"] is True
    assert (settings["start"], settings["end"], settings["target_vocab_size"]) == (2, [3], 31)
    assert (tmp_path / "page" / "model" / "target_tokenizer" / "tokenizer.json").is_file()


def test_another_runtime_is_refused(refused, make, tmp_path):
    flags = make(VanillaTransformerForSequenceClassification)
    (tmp_path / "runtime" / "library.mjs").write_text("another version")
    assert "library.mjs: not the file of the npm package tiny@1.2.3" in refused("page", *flags)
    assert not (tmp_path / "page").exists()


def test_several_labels_are_refused(refused, make):
    flags = make(VanillaTransformerForSequenceClassification, problem_type="multi_label_classification")
    assert "trained for multi_label_classification" in refused("page", *flags)


def test_the_pages_own_files_name_nothing_outside_and_only_what_is_there():
    of_npm = {f"runtime/{Path(path).name}" for files in RUNTIME.values() for path in files}
    for file in [*STATIC.glob("*.js"), STATIC / "index.html", STATIC / "style.css"]:
        text = file.read_text()
        assert "://" not in text, file
        for name in re.findall(r'(?:from |href=|src=)"(?:\./)?([\w./-]+)"', text):
            assert (STATIC / name).is_file() or name in of_npm, (file, name)
