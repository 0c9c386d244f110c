import json
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
    broken = here / "broken"
    broken.mkdir()
    (broken / "ratings_train.txt").write_text("id\tdocument\tlabel\n1\t좋다\t1\n2\t나쁘다\t2\n")
    (broken / "ratings_test.txt").write_text("id\tdocument\tlabel\n1\t좋다\t1\n")
    (here / "full").mkdir()
    (here / "full" / "precious").touch()
    (here / "a-file").touch()
    (here / "latin-1.txt").write_bytes("caf\xe9\n".encode("latin-1"))
    headless = here / "headless"
    VanillaTransformerModel(tiny_config()).save_pretrained(headless)
    train_tokenizer(["가나다"], vocab_size=29).save_pretrained(headless)
    shutil.copytree(headless, here / "corrupt")
    (here / "corrupt" / "model.safetensors").write_bytes(b"not safetensors")
    shutil.copytree(headless, here / "misfit")
    config = json.loads((headless / "config.json").read_text())
    (here / "misfit" / "config.json").write_text(json.dumps({**config, "d_model": 8}))
    return here
