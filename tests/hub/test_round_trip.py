"""What was uploaded comes back in processes without the package."""

import json
from ast import literal_eval
from pathlib import Path

import pytest

from hub.repository import REPO, as_stranger, logits


@pytest.mark.slow
def test_a_pushed_folder_comes_back_without_the_package(server, succeed, folder, environment, tmp_path):
    succeed("push-to-hub", folder, "--repo_id", REPO)
    pushed = server.repositories[REPO].branches["main"]
    succeed("push-to-hub", folder, "--repo_id", REPO, "--revision", "v1")
    # What comes after on the main branch is not what `revision` asks for.
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-8] + bytes(8))
    succeed("push-to-hub", folder, "--repo_id", REPO)
    program = """
from huggingface_hub import ModelCard
answers = [answer(*load(sys.argv[2], revision=revision)) for revision in sys.argv[3:]]
card = ModelCard.load(sys.argv[2])
results = {(r.dataset_split, r.metric_type): r.metric_value for r in card.data.eval_results}
print(json.dumps([answers, card.data.pipeline_tag, results[("test", "accuracy")]]))
# The example of the card itself.
code = card.text.split("```python\\n")[1].split("```")[0]
exec(code)
# Saved and pushed again by somebody who has not got the package.
tokenizer, model = load(sys.argv[2], revision="v1")
model.push_to_hub("kim/again")
tokenizer.push_to_hub("kim/again")
"""
    first, example = as_stranger(program, environment, tmp_path, REPO, pushed, "v1", "main").splitlines()
    answers, tag, accuracy = json.loads(first)
    expected = logits_of_commit(server, pushed, tmp_path)
    assert answers[0] == answers[1] == expected
    assert answers[2] != expected
    assert tag == "text-classification" and accuracy == round(
        json.loads((folder / "metrics.json").read_text())["test"]["accuracy"], 4
    )
    assert [answer["label"] in ("negative", "positive") for answer in literal_eval(example)] == [True, True]

    # The first repository is not needed any more.
    del server.repositories[REPO]
    config = json.loads(server.files("kim/again")["config.json"])
    assert not any("--" in reference for reference in config["auto_map"].values())
    home = tmp_path / "another"
    home.mkdir()
    assert json.loads(as_stranger("print(answer(*load('kim/again')))", environment, home)) == expected


def logits_of_commit(server, sha: str, folder: Path) -> list:
    """Return the logits that this process computes with a commit's files."""
    target = folder / sha
    for name, content in server.repositories[REPO].commits[sha][2].items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)
    return logits(target)
