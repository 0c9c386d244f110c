"""`upload`, `vanilla-transformer push-to-hub` and runs that push: which files arrive, and come back."""

import json
import os
import re
import shutil
from ast import literal_eval

import pytest
import torch
from shared import QUIET, RUN_FILES, TINY, error_line, run_without_the_package
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_vanilla_transformer.hub import repository_files
from hub.repository import REPO, contents, edit


pytestmark = pytest.mark.slow  # they train and send for seconds


def dry_run(succeed, folder) -> dict[str, int]:
    """Return the sizes of the files to upload, by name."""
    *lines, total = succeed("push-to-hub", folder, "--repo_id", REPO, "--dry_run").splitlines()
    listed = re.findall(r"^ *([\d,]+)  (.*)$", "\n".join(lines), re.MULTILINE)
    sizes = {name: int(size.replace(",", "")) for size, name in listed}
    assert int(total.split()[0].replace(",", "")) == sum(sizes.values())
    texts = [line for line in lines if line.startswith("README.md, run.json: a text of the data, ")]
    assert len(texts) == 2 and len(lines) == len(listed) + len(texts)  # one of each label
    return sizes


def test_only_what_a_run_writes_is_uploaded(hub, succeed, folder):
    """`folder` also holds `UNLISTED`."""
    others = {"notes.txt", "x.pkl", "int8[1]/id_rsa", "wandb/debug.log", "runs/today_host/events.out"}
    for name in (*others, "vocab.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("secret")
    sizes = dry_run(succeed, folder)
    assert not hub.requests
    assert sizes == {name: len(content) for name, content in contents(folder).items()}
    assert sizes.keys() == RUN_FILES | {"vocab.txt"}
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert hub.branches[REPO, "main"].keys() == sizes.keys()


def test_an_export_alone_is_a_repository(hub, succeed, refused, tmp_path):
    """Its card is sent as it is."""
    files = {
        "README.md": "---\ntags: [vanilla-transformer]\n---\n`model`, exported.",
        "config.json": '{"model_type": "bart"}',
        **{"export.json": "{}", "recipe.yaml": "{}", "tokenizer.json": "{}", "model.bin": "weights"},
    }
    for name, content in (files | {"id_rsa": "private"}).items():
        (tmp_path / name).write_text(content)
    for _ in range(2):  # the second meets the first one's kind of model
        succeed("push-to-hub", tmp_path, "--repo_id", REPO)
    assert {name: content.decode() for name, content in hub.branches[REPO, "main"].items()} == files
    (tmp_path / "config.json").unlink()
    assert "config.json missing" in refused("push-to-hub", tmp_path, "--repo_id", REPO, "--dry_run")


def test_the_repository_is_the_folder(hub, succeed, folder):
    """The card names the repository where it loads the model."""
    before = (folder / "README.md").read_text()
    out = succeed("push-to-hub", folder, "--repo_id", REPO)
    assert hub.branches[REPO, "main"] == contents(folder)
    card = (folder / "README.md").read_text()
    assert f'model="{REPO}"' in card and card.replace(REPO, "sample") == before
    assert out.strip().endswith(f"/{REPO}/commit/1") and hub.private == {REPO: False}

    (folder / "README.md").unlink()
    out = succeed("push-to-hub", folder, "--repo_id", REPO, "--dry_run")
    assert "README.md (made from the record)" in out and not (folder / "README.md").exists()
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert hub.branches[REPO, "main"]["README.md"].decode() == card


def test_a_branch_begins_as_main_does(hub, succeed, folder):
    succeed("push-to-hub", folder, "--repo_id", REPO)
    main = dict(hub.branches[REPO, "main"])
    (folder / "run.json").write_text((folder / "run.json").read_text() + "\n")
    succeed("push-to-hub", folder, "--repo_id", REPO, "--revision", "v1")
    assert hub.branches[REPO, "main"] == main != hub.branches[REPO, "v1"] == contents(folder)


def test_a_second_vocabulary_is_uploaded(hub, succeed, refused, folder):
    edit(folder / "config.json", decoder_vocab_size=1507)
    assert "no tokenizer can be read here" in refused("push-to-hub", folder, "--repo_id", REPO, "--dry_run")
    (folder / "target_tokenizer").mkdir()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / file, folder / "target_tokenizer" / file)
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert hub.branches[REPO, "main"].keys() >= {"target_tokenizer/tokenizer.json"}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("curves.png", None, "curves.png missing"),
        ("model.safetensors", b"cut off", "no model can be read"),
        ("tokenizer.json", b"{", "no tokenizer can be read"),
        ("README.md", b"---\na: [\n---\n", "README.md"),
    ],
)
def test_a_folder_that_is_not_complete_is_refused(folder, file, content, message):
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        repository_files(folder)


def test_without_a_token_nothing_is_asked(hub, refused, trained, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    assert "`hf auth login`" in refused("push-to-hub", trained, "--repo_id", REPO)
    assert not hub.requests


def test_a_taken_name_is_refused(hub, refused, folder):
    hub.branches[REPO, "main"] = {"config.json": b'{"model_type": "bert"}'}
    assert "bert" in refused("push-to-hub", folder, "--repo_id", REPO)
    hub.branches["kim/public", "main"], hub.private["kim/public"] = {}, False
    assert "public" in refused("push-to-hub", folder, "--repo_id", "kim/public", "--private")
    assert not hub.titles


QUICK = ["--data", "sample", "--max_steps", "2", "--eval_strategy", "epoch", "--save_strategy", "no"]
QUICK += ["--vocab_size", "1500", *QUIET, *TINY]
PUSH = ["--push_to_hub", "true", "--hub_model_id", REPO]


def test_a_run_that_pushes_leaves_the_same_repository(hub, succeed, tmp_path):
    """In one commit at its end, of the listed files; Trainer itself would push all that lies in the folder."""
    folder = tmp_path / "trained"
    flags = ["--output_dir", folder, *QUICK, "--save_strategy", "steps", "--save_steps", "1"]
    succeed("train-classifier", *flags, *PUSH)
    pushed = hub.branches[REPO, "main"]
    assert pushed == contents(folder) and pushed.keys() == RUN_FILES and hub.titles == ["Upload the folder"]
    card = pushed["README.md"].decode()
    assert f'model="{REPO}"' in card and "generated_from_trainer" not in card
    # The recipe makes the run again, not the push.
    assert not re.search("hub", (folder / "recipe.yaml").read_text())


def test_a_run_keeps_its_record_if_the_push_fails(hub, run, succeed, tmp_path):
    folder = tmp_path / "trained"
    hub.refuses = True
    status, out, err = run("train-classifier", "--output_dir", folder, *QUICK, *PUSH)
    assert status == 2 and "test accuracy" in out
    assert "500" in error_line("train-classifier", err)
    hub.refuses = False
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert hub.branches[REPO, "main"] == contents(folder)


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
