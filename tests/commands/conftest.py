import json
import shutil

import pytest
from shared import tiny_config

from hf_vanilla_transformer import VanillaTransformerModel
from hf_vanilla_transformer.tokenizer import train_tokenizer


@pytest.fixture
def faults(tmp_path):
    """Things that are wrong, by name."""
    bart = tmp_path / "bart"
    bart.mkdir()
    (bart / "config.json").write_text('{"model_type": "bart"}')
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "ratings_train.txt").write_text("id\tdocument\tlabel\n1\t좋다\t1\n2\t나쁘다\t2\n")
    (broken / "ratings_test.txt").write_text("id\tdocument\tlabel\n1\t좋다\t1\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").touch()
    (tmp_path / "a-file").touch()
    (tmp_path / "latin-1.txt").write_bytes("caf\xe9\n".encode("latin-1"))
    headless = tmp_path / "headless"
    VanillaTransformerModel(tiny_config()).save_pretrained(headless)
    train_tokenizer(["가나다"], vocab_size=29).save_pretrained(headless)
    shutil.copytree(headless, tmp_path / "corrupt")
    (tmp_path / "corrupt" / "model.safetensors").write_bytes(b"not safetensors")
    shutil.copytree(headless, tmp_path / "misfit")
    config = json.loads((headless / "config.json").read_text())
    (tmp_path / "misfit" / "config.json").write_text(json.dumps({**config, "d_model": 8}))
    return tmp_path
