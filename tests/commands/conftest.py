import shutil

import pytest
from shared import tiny_config

from hf_vanilla_transformer import VanillaTransformerModel
from hf_vanilla_transformer.tokenizer import train_tokenizer


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder in which the test runs, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def faults(here):
    """Things that are wrong, by name."""
    bart = here / "bart"
    bart.mkdir()
    (bart / "config.json").write_text('{"model_type": "bart"}')
    headless = here / "headless"
    VanillaTransformerModel(tiny_config()).save_pretrained(headless)
    train_tokenizer(["가나다"], vocab_size=29).save_pretrained(headless)
    shutil.copytree(headless, here / "corrupt")
    (here / "corrupt" / "model.safetensors").write_bytes(b"not safetensors")
    return here
