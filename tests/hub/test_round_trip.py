"""A pushed folder comes back by the repository's name, in a process without the package."""

import json
import os
from ast import literal_eval

import pytest
import torch
from shared import run_without_the_package
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hub.repository import REPO


TEXTS = ["정말 재미있고 감동적인 영화", "지루하고 유치했다"]
COMMIT = "a" * 40
STRANGER = """
import importlib.util, json, sys, torch
from huggingface_hub import ModelCard
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
assert importlib.util.find_spec("hf_vanilla_transformer") is None
def answers(name):
    tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=True)
    model = AutoModelForSequenceClassification.from_pretrained(name, trust_remote_code=True).eval()
    with torch.no_grad():
        return model(**tokenizer(json.loads(sys.argv[1]), padding=True, return_tensors="pt")).logits.tolist()
print(json.dumps(answers(sys.argv[2])))
card = ModelCard.load(sys.argv[2])
print(card.data.pipeline_tag)
exec(card.text.split("```python\\n")[1].split("```")[0])  # the example of the card itself
# Saved again by somebody who has not got the package.
for loader in (AutoModelForSequenceClassification, AutoTokenizer):
    loader.from_pretrained(sys.argv[2], trust_remote_code=True).save_pretrained("again")
print(json.dumps(answers("again")))
"""


@pytest.mark.slow
def test_a_pushed_folder_comes_back_without_the_package(hub, succeed, folder, tmp_path):
    succeed("push-to-hub", folder, "--repo_id", REPO)
    # As `huggingface_hub` keeps a repository that it has downloaded.
    cached = tmp_path / "stranger" / "hub" / f"models--{REPO.replace('/', '--')}"
    files = {f"snapshots/{COMMIT}/{name}": content for name, content in hub.branches[REPO, "main"].items()}
    for name, content in {"refs/main": COMMIT.encode(), **files}.items():
        file = cached / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))}
    environment |= {"HF_HUB_OFFLINE": "1"}
    out = run_without_the_package(STRANGER, json.dumps(TEXTS), REPO, home=tmp_path, environment=environment)
    answers, tag, example, again = out.splitlines()
    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModelForSequenceClassification.from_pretrained(folder),
    )
    with torch.no_grad():
        expected = model.eval()(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits.tolist()
    assert json.loads(answers) == json.loads(again) == expected
    assert tag == "text-classification"
    assert [answer["label"] in ("negative", "positive") for answer in literal_eval(example)] == [True, True]
    auto_map = json.loads((tmp_path / "again" / "config.json").read_text())["auto_map"]
    assert not any("--" in reference for reference in auto_map.values())
