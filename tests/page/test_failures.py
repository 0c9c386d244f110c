"""The page opens a folder at an address; what it cannot open gets one sentence."""

import functools
import json
import re
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import torch
from exports.models import random_model, save
from safetensors.torch import load_file, save_file
from shared import tiny_config

from .node import ask_page, needs_node


pytestmark = needs_node


def change_json(file, **fields) -> None:
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, **fields}))


def change_weights(folder, change) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def cut(file) -> None:
    file.write_bytes(file.read_bytes()[:-100])


EMBEDDING = "model.encoder.embed_tokens.weight"
SMALL, LARGE = torch.zeros(1, dtype=torch.int8), torch.zeros(30, 16)
# What is done to a translator's folder, and what the page says of it.
FAULTS = {
    "no_model": shutil.rmtree,
    "other_model": lambda folder: change_json(folder / "config.json", model_type="bart"),
    "no_task": lambda folder: change_json(folder / "config.json", architectures=["VanillaTransformerModel"]),
    "unreadable_file": lambda folder: (folder / "config.json").write_text("{"),
    "too_large": lambda folder: change_json(folder / "config.json", d_model=2**14),
    "activation": lambda folder: change_json(folder / "config.json", activation_function="xielu"),
    "missing_file": lambda folder: (folder / "model.safetensors").unlink(),
    "missing_file, too": lambda folder: (folder / "tokenizer.json").unlink(),
    "damaged": lambda folder: cut(folder / "model.safetensors"),
    "damaged, too": lambda folder: (folder / "model.safetensors").write_text("a text"),
    "precision": lambda folder: change_weights(folder, lambda weights: weights.update(x=SMALL)),
    "missing_weight": lambda folder: change_weights(folder, lambda weights: weights.pop("lm_head.bias")),
    "wrong_shape": lambda folder: change_weights(folder, lambda weights: weights.update({EMBEDDING: LARGE})),
    "tokenizer": lambda folder: change_json(folder / "tokenizer.json", model={"type": "New"}),
}


def test_one_sentence_says_what_is_wrong(tmp_path):
    model = random_model(tiny_config())
    for number, spoil in enumerate(FAULTS.values()):
        save(model, tmp_path / str(number))
        spoil(tmp_path / str(number))
        (tmp_path / str(number)).mkdir(exist_ok=True)
    jobs = [{"folder": str(tmp_path / str(number)), "asks": []} for number in range(len(FAULTS))]
    for result, code in zip(ask_page(jobs, tmp_path), FAULTS, strict=True):
        assert result["error"]["code"] == code.partition(",")[0]
        english, korean = result["error"]["en"], result["error"]["ko"]
        assert re.fullmatch(r"[A-Z].*\.", english) and re.fullmatch(r".*[가-힣].*\.", korean)
        assert "undefined" not in english + korean and "\n" not in english + korean


def test_a_folder_at_an_address(tmp_path):
    model = random_model(tiny_config(decoder_vocab_size=31))
    folder = save(model, tmp_path / "model")
    random_model(tiny_config()).save_pretrained(tmp_path / "without-tokenizer")
    handler = functools.partial(QuietHandler, directory=str(tmp_path))
    ask = [{"call": "translate", "values": [[5, 9, 4], {"maxLength": 8}]}]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        at = f"http://127.0.0.1:{server.server_port}"
        places = [f"{at}/model", f"{at}/without-tokenizer/", f"{at}/nothing/"]
        here, there, without, nothing = ask_page(
            [{"folder": name, "asks": ask} for name in [folder, *places]], tmp_path
        )
        server.shutdown()
    assert there["answers"] == here["answers"] and there["opened"] == here["opened"]
    size = (tmp_path / "model" / "model.safetensors").stat().st_size
    assert there["loaded"]["model.safetensors"] == {"file": "model.safetensors", "loaded": size, "total": size}
    assert (without["error"]["code"], nothing["error"]["code"]) == ("missing_file", "no_model_there")
    (unreachable,) = ask_page([{"folder": f"{at}/model", "asks": ask}], tmp_path)
    assert unreachable["error"]["code"] == "unreachable"


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Requests are not printed."""
