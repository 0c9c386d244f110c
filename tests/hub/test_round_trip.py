"""What was uploaded comes back in processes without the package."""

import json
import re
import shutil
from pathlib import Path

import pytest
from hub_server import USER

from hub.repository import REPO, as_stranger, logits


pytestmark = [pytest.mark.usefixtures("server"), pytest.mark.slow]  # the client starts in a process of its own


def test_a_pushed_folder_comes_back_without_the_package(server, succeed, folder, environment, tmp_path):
    succeed("push-to-hub", folder, "--repo_id", REPO)
    pushed = server.repositories[REPO].branches["main"]
    succeed("push-to-hub", folder, "--repo_id", REPO, "--revision", "v1")
    # What comes after on the main branch is not what `revision` asks for.
    shutil.copy(folder / "config.json", tmp_path / "config.json")
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-8] + bytes(8))
    succeed("push-to-hub", folder, "--repo_id", REPO)
    program = """
import huggingface_hub
from huggingface_hub import ModelCard
answers = [answer(*load(sys.argv[2], revision=revision)) for revision in sys.argv[3:]]
card = ModelCard.load(sys.argv[2])
if int(huggingface_hub.__version__.split(".")[0]) >= 2:  # before, it asks huggingface.co, whatever HF_ENDPOINT says
    card.validate()
results = {(r.dataset_split, r.metric_type): r.metric_value for r in card.data.eval_results}
print(json.dumps([answers, card.data.license, card.data.pipeline_tag, results[("test", "accuracy")]]))
# The example of the card itself.
code = card.text.split("```python\\n")[1].split("```")[0]
exec(code)
# Saved and pushed again by somebody who has not got the package.
tokenizer, model = load(sys.argv[2], revision="v1")
model.push_to_hub("kim/again")
tokenizer.push_to_hub("kim/again")
"""
    first, *example = as_stranger(program, environment, tmp_path, REPO, pushed, "v1", "main").splitlines()
    answers, licence, tag, accuracy = json.loads(first)
    expected = logits_of_commit(server, pushed, tmp_path)
    assert answers[0] == answers[1] == expected
    assert answers[2] != expected
    assert (licence, tag) == ("apache-2.0", "text-classification")
    assert accuracy == round(json.loads((folder / "metrics.json").read_text())["test"]["accuracy"], 4)
    assert [line.split()[0] in ("negative", "positive") for line in example] == [True, True]

    # The first repository is not needed any more.
    del server.repositories[REPO]
    config = json.loads(server.files("kim/again")["config.json"])
    assert not any("--" in reference for reference in config["auto_map"].values())
    home = tmp_path / "another"
    home.mkdir()
    assert json.loads(as_stranger("print(answer(*load('kim/again')))", environment, home)) == expected


def logits_of_commit(server, sha: str, folder: Path) -> list:
    """What this process makes of a commit's files."""
    target = folder / sha
    for name, content in server.repositories[REPO].commits[sha][2].items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)
    return logits(target)


def test_a_private_repository_is_not_for_strangers(succeed, folder, environment, tmp_path):
    succeed("push-to-hub", folder, "--repo_id", REPO, "--private")
    program = """
def refused(token):
    try:
        load(sys.argv[2], token=token)
    except OSError:
        return True
print(json.dumps([refused(False), refused("hf_" + "x" * 34), answer(*load(sys.argv[2]))]))
"""
    assert json.loads(as_stranger(program, environment, tmp_path, REPO)) == [True, True, logits(folder)]


TWO_KINDS = """
places = sys.argv[3:]
pairs = [load(name) for name in places] + [load(name) for name in reversed(places)]
models = [model for _, model in pairs]
again = []
for i, model in enumerate(models):
    model.save_pretrained(f"{sys.argv[2]}/{i}")
    again.append("mark = 'edited'" in open(f"{sys.argv[2]}/{i}/modeling_vanilla_transformer.py").read())
print(json.dumps([[getattr(model, "mark", None) for model in models], again, [answer(*pair) for pair in pairs]]))
"""


def test_two_models_in_one_process_do_not_mix(succeed, folder, environment, tmp_path):
    """Repositories, and folders of one name, whose codes differ, loaded one after the other, and saved again."""
    edited = shutil.copytree(folder, tmp_path / "edited" / folder.name)
    file = edited / "modeling_vanilla_transformer.py"
    code, edits = re.subn(r"(class .*ForSequenceClassification\(.*\n)", r"\1    mark = 'edited'\n", file.read_text())
    assert edits == 1
    file.write_text(code)
    succeed("push-to-hub", folder, "--repo_id", REPO)
    succeed("push-to-hub", edited, "--repo_id", f"{USER}/edited")
    places = [REPO, f"{USER}/edited", folder, edited]
    out = as_stranger(TWO_KINDS, environment, tmp_path, tmp_path / "again", *places)
    marks, again, answers = json.loads(out)
    assert marks == [None, "edited", None, "edited", "edited", None, "edited", None]
    assert again == [mark is not None for mark in marks]
    assert answers == [logits(folder)] * 8
