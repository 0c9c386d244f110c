"""Sharing on the Hub: the real client against a server on loopback, and back in processes without the package."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from conftest import ROOT, RUN_FILES, run_without_the_package, tiny_config
from hub_server import TOKEN, USER, Fault, HubServer
from huggingface_hub import ModelCard
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, AutoTokenizer

import hf_vanilla_transformer.hub.upload as hub_module
from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.hub import push, repository_files


REPO = f"{USER}/tiny"
TEXTS = ["정말 재미있고 감동적인 영화", "지루하고 유치했다"]
TINY = ["--config", '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}']
QUICK = [
    *("--data", "sample", "--max_steps", "2", "--eval_strategy", "epoch", "--save_strategy", "no"),
    *("--vocab_size", "1500", "--disable_tqdm", "true", "--report_to", "none", *TINY),
]

# Goes before every program here: an address that is not this machine's is written down, and refused.
ONLY_LOOPBACK = f"""
import os, sys
def only_loopback(event, arguments, allowed=("127.0.0.1", "::1", "localhost", None, {socket.gethostname()!r})):
    if event not in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        return
    host = arguments[1] if event == "socket.connect" else arguments[0]
    if isinstance(host, tuple):
        host = host[0]
    elif event == "socket.connect":
        return  # not the internet
    if host not in allowed:
        with open(os.environ["CONTACTED"], "a") as file:
            print(event, host, file=file)
        raise PermissionError(f"{{event}}: {{host}}")
sys.addaudithook(only_loopback)
"""

# Runs scripts one after the other, since importing takes longer than all of them together; waits for nothing.
CLIENT = (
    ONLY_LOOPBACK
    + """
import contextlib, io, json, runpy, time, traceback
time.sleep = lambda seconds: None
import hf_vanilla_transformer.hub
for line in sys.stdin:
    sys.argv, environment = json.loads(line)
    os.environ.update(environment)
    status, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as stop:
            status = stop.code
        except BaseException:
            traceback.print_exc()
            status = 1
    print(json.dumps([status, out.getvalue(), err.getvalue()]), file=sys.__stdout__, flush=True)
"""
)

# The start of programs that do not have the package.
STRANGER = (
    ONLY_LOOPBACK
    + """
import importlib.util, json, torch
assert importlib.util.find_spec("hf_vanilla_transformer") is None
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
def load(name, **options):
    tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=True, **options)
    model = AutoModelForSequenceClassification.from_pretrained(name, trust_remote_code=True, **options).eval()
    return tokenizer, model
@torch.no_grad()
def answer(tokenizer, model):
    return model(**tokenizer(json.loads(sys.argv[1]), padding=True, return_tensors="pt")).logits.tolist()
"""
)


@pytest.fixture(scope="module")
def hub():
    with HubServer() as server:
        yield server


@pytest.fixture(scope="module")
def environment(hub, tmp_path_factory):
    """What every client's process gets, and nothing of this one's settings for the Hub."""
    home = tmp_path_factory.mktemp("client")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))},
        "HF_HOME": str(home / "hf"),
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # or `datasets` tells a counter what kind of file it reads
        "HF_TOKEN": TOKEN,
        "NO_PROXY": "127.0.0.1,localhost",
        "CONTACTED": str(home / "contacted"),
    }


@pytest.fixture(autouse=True)
def server(hub, environment):
    """The server without repositories; when the test is over, nothing else may have been contacted."""
    for state in (hub.repositories, hub.objects, hub.faults, hub.requests, hub.unknown):
        state.clear()
    yield hub
    contacted = Path(environment["CONTACTED"])
    assert not contacted.exists(), contacted.read_text()
    assert not hub.unknown


@pytest.fixture(scope="module")
def client(environment):
    """Run a script with a token; returns its exit status, standard output and standard error."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def run(script, *arguments, token: str = TOKEN) -> tuple[int, str, str]:
        argv = [str(ROOT / "scripts" / script), *map(str, arguments)]
        print(json.dumps([argv, {"HF_TOKEN": token}]), file=process.stdin, flush=True)
        return tuple(json.loads(process.stdout.readline()))

    yield run
    process.stdin.close()
    process.wait(timeout=60)


@pytest.fixture(scope="module")
def run_folder(client, tmp_path_factory) -> Path:
    """A run's folder as the script leaves it."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    status, _, err = client("train_classifier.py", "--output_dir", folder, *QUICK)
    assert status == 0, err
    return folder


@pytest.fixture
def folder(run_folder, tmp_path) -> Path:
    """The test's own copy of the run's folder, with what shall not be uploaded."""
    folder = shutil.copytree(run_folder, tmp_path / "tiny")
    (folder / "checkpoint-2").mkdir()
    (folder / "sub" / "checkpoint-2").mkdir(parents=True)
    for file in ("checkpoint-2/config.json", "checkpoint-2/optimizer.pt", "trainer_state.json", ".secret"):
        (folder / file).write_text("{}")
        (folder / "sub" / file).write_text("{}")
    assert (folder / "training_args.bin").is_file()
    return folder


def as_stranger(program: str, environment, home: Path, *arguments) -> str:
    """Run a program without the package, on the test's texts; returns what it prints."""
    return run_without_the_package(
        STRANGER + program, json.dumps(TEXTS), *arguments, home=home, environment=environment
    )


def logits(folder: Path) -> list:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits.tolist()


def contents(folder: Path) -> dict[str, bytes]:
    """What belongs to the folder's repository."""
    return {file.as_posix(): (folder / file).read_bytes() for file in repository_files(folder)}


def in_repository(server, repo: str = REPO, revision: str = "main") -> dict[str, bytes]:
    files = dict(server.files(repo, revision))
    del files[".gitattributes"]
    return files


# --- What is uploaded ---


def test_a_dry_run_lists_what_the_upload_sends(server, client, folder):
    status, out, err = client("push_to_hub.py", folder, "--repo_id", REPO, "--dry_run", token="")
    assert (status, server.requests) == (0, []), err
    *lines, total = [line.split() for line in out.splitlines()]
    listed = {name: int(size.replace(",", "")) for size, name in lines}
    assert listed == {name: len(content) for name, content in contents(folder).items()}
    assert int(total[0].replace(",", "")) == sum(listed.values())
    assert client("push_to_hub.py", folder, "--repo_id", REPO)[0] == 0
    assert in_repository(server).keys() == listed.keys() == RUN_FILES


def test_the_repository_is_the_folder(server, client, folder):
    status, out, err = client("push_to_hub.py", folder, "--repo_id", REPO)
    assert status == 0, err
    # The folder's card has come to name the repository, so both are the same.
    assert in_repository(server) == contents(folder)
    repository = server.repositories[REPO]
    assert out.strip().endswith(f"/{REPO}/commit/{repository.branches['main']}")
    assert not repository.private
    assert len(server.titles(REPO)) == 2
    assert repository.commits[repository.branches["main"]]["lfs"] == {"model.safetensors"}


def test_the_card_names_the_repository_where_it_loads_the_model(server, client, folder):
    before = (folder / "README.md").read_text()
    assert client("push_to_hub.py", folder, "--repo_id", f"{USER}/other")[0] == 0
    card = server.files(f"{USER}/other")["README.md"].decode()
    assert 'model="tiny"' in before and f'model="{USER}/other"' in card
    assert card.replace(f"{USER}/other", "tiny") == before


def test_a_missing_card_is_made_from_the_record(server, client, folder):
    card = (folder / "README.md").read_bytes()
    (folder / "README.md").unlink()
    status, out, _ = client("push_to_hub.py", folder, "--repo_id", REPO, "--dry_run")
    assert status == 0 and "README.md (made from the record)" in out
    assert not (folder / "README.md").exists()
    assert client("push_to_hub.py", folder, "--repo_id", REPO)[0] == 0
    text = server.files(REPO)["README.md"].decode()
    assert text.replace(f'"{REPO}"', '"tiny"').replace(f"name: {REPO}", "name: tiny") == card.decode()


def test_a_second_push_sends_what_has_changed(server, client, folder):
    def push() -> list[tuple[str, str]]:
        server.requests.clear()
        status, _, err = client("push_to_hub.py", folder, "--repo_id", REPO)
        assert status == 0, err
        return server.requests

    push()
    first = server.repositories[REPO].branches["main"]
    assert not any(method == "PUT" or "/commit/" in path for method, path in push())
    assert server.repositories[REPO].branches["main"] == first
    with open(folder / "README.md", "a") as card:
        card.write("\nA remark by hand.\n")
    requests = push()
    assert not any(method == "PUT" for method, _ in requests)
    assert len(server.titles(REPO)) == 3
    before, after = server.repositories[REPO].commits[first]["files"], server.files(REPO)
    assert {name for name in after if after[name] != before.get(name)} == {"README.md"}
    assert after["README.md"].decode().endswith("A remark by hand.\n")


def test_private_repositories_and_branches(server, client, folder):
    status, _, err = client("push_to_hub.py", folder, "--repo_id", REPO, "--private", "--revision", "v1")
    assert status == 0, err
    assert server.repositories[REPO].private
    assert in_repository(server, revision="v1") == contents(folder)
    assert in_repository(server, revision="main") == {}


def test_a_second_vocabulary_is_uploaded(server, client, folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "decoder_vocab_size": 1500}))
    status, _, err = client("push_to_hub.py", folder, "--repo_id", REPO, "--dry_run")
    assert status == 2 and "target_tokenizer/tokenizer.json" in err
    (folder / "target_tokenizer").mkdir()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / file, folder / "target_tokenizer" / file)
    assert client("push_to_hub.py", folder, "--repo_id", REPO)[0] == 0
    assert in_repository(server).keys() >= {"target_tokenizer/tokenizer.json"}


# --- Refusals ---


def refused(answer: tuple[int, str, str]) -> str:
    """The one line of an answer that is a refusal."""
    status, out, err = answer
    lines = [line for line in err.splitlines() if line.startswith("push_to_hub.py: error:")]
    assert (status, out, len(lines)) == (2, "", 1), err
    assert lines[0] == err.splitlines()[-1]
    assert "Traceback" not in err
    return lines[0]


@pytest.mark.parametrize("dry_run", [[], ["--dry_run"]])
@pytest.mark.parametrize("missing", sorted(RUN_FILES - {"README.md"}))
def test_a_folder_with_a_missing_part_is_refused(server, client, folder, missing, dry_run):
    (folder / missing).unlink()
    assert missing in refused(client("push_to_hub.py", folder, "--repo_id", REPO, *dry_run))
    assert not server.requests


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("model.safetensors", b"cut off", "model.safetensors"),
        (
            "model.safetensors.index.json",
            b'{"weight_map": {"a": "model-00001-of-00002.safetensors"}}',
            "00001-of-00002",
        ),
        ("model.safetensors.index.json", b"{}", "index.json"),
        ("config.json", b'{"model_type": "vanilla_transformer"}', "auto_map"),
        ("config.json", b"{", "config.json"),
        *((file, b'{"cut": ', file) for file in sorted(RUN_FILES) if file.endswith(".json") and file != "config.json"),
        ("README.md", b"---\na: [\n---\n", "README.md"),
        ("README.md", b"# No metadata\n", "license, library_name, pipeline_tag, tags, model-index"),
    ],
)
def test_a_damaged_folder_is_refused(server, client, folder, file, content, message):
    (folder / file).write_bytes(content)
    assert message in refused(client("push_to_hub.py", folder, "--repo_id", REPO))
    assert not server.requests


@pytest.mark.parametrize("name", ["tiny", "a/b/c", "kim/", "/tiny", "kim/a--b", "kim/-tiny", "kim/ä", "kim/a b", ""])
@pytest.mark.parametrize("dry_run", [[], ["--dry_run"]])
def test_a_malformed_name_is_refused(server, client, run_folder, name, dry_run):
    assert "repo_id" in refused(client("push_to_hub.py", run_folder, "--repo_id", name, *dry_run))
    assert not server.requests


def test_wrong_command_lines_are_refused(client, run_folder, tmp_path):
    assert "no such folder" in refused(client("push_to_hub.py", tmp_path / "nowhere", "--repo_id", REPO))
    assert "no such folder" in refused(client("push_to_hub.py", tmp_path / "nowhere", "--repo_id", REPO, "--dry_run"))
    assert "FOLDER" in refused(client("push_to_hub.py", "--repo_id", REPO))
    assert "--repo_id" in refused(client("push_to_hub.py", run_folder))
    assert "--privat" in refused(client("push_to_hub.py", run_folder, "--repo_id", REPO, "--privat"))


def test_without_a_token_nothing_is_asked(server, client, run_folder):
    assert "not logged in" in refused(client("push_to_hub.py", run_folder, "--repo_id", REPO, token=""))
    assert not server.requests


def test_a_wrong_token_is_refused(server, client, run_folder):
    assert "does not accept the token" in refused(
        client("push_to_hub.py", run_folder, "--repo_id", REPO, token="hf_" + "x" * 34)
    )
    assert not server.repositories


def test_a_taken_name_is_refused(server, client, folder):
    server.create(REPO, files={"config.json": b'{"model_type": "bert"}'})
    assert "'bert'" in refused(client("push_to_hub.py", folder, "--repo_id", REPO))
    server.create("lee/theirs")
    for name in ("lee/theirs", "lee/new"):
        assert "no right to write" in refused(client("push_to_hub.py", folder, "--repo_id", name))
    assert all(len(server.titles(repo)) == 1 for repo in server.repositories)


def test_a_public_repository_is_not_taken_for_a_private_one(server, client, folder):
    server.create(REPO)
    assert "public" in refused(client("push_to_hub.py", folder, "--repo_id", REPO, "--private"))
    assert len(server.titles(REPO)) == 1


STEPS = {
    "create": ("POST", "/repos/create"),
    "information": ("GET", f"/api/models/{REPO}$"),
    "tree": ("GET", "/tree/"),
    "card": ("POST", "/validate-yaml"),
    "preupload": ("POST", "/preupload/"),
    "batch": ("POST", "/objects/batch"),
    "put": ("PUT", "/lfs/"),
    "verify": ("POST", "/lfs/verify"),
    "commit": ("POST", "/commit/"),
}


@pytest.mark.parametrize("status", [401, 409, 500, None])
@pytest.mark.parametrize("step", STEPS)
def test_whatever_the_server_does_a_second_run_completes_the_upload(server, client, folder, step, status):
    """It answers 401, 409 or 500, or hangs up in the middle of a request, each step in turn."""
    server.faults.append(Fault(*STEPS[step], status))
    line = refused(client("push_to_hub.py", folder, "--repo_id", REPO))
    assert REPO in line
    if status is None:
        assert "no connection" in line and "same command completes" in line
    elif status != 409 or step != "create":  # which is the Hub's way to say that the repository is there
        assert str(status) in line
    assert len(server.titles(REPO)) == 1 if REPO in server.repositories else step == "create"
    server.faults.clear()
    server.requests.clear()
    answer = client("push_to_hub.py", folder, "--repo_id", REPO)
    assert answer[0] == 0, answer[2]
    assert in_repository(server) == contents(folder)
    # Weights that have arrived are not sent again.
    sent = sum(method == "PUT" for method, _ in server.requests)
    assert sent == (step not in ("verify", "commit"))


def test_a_page_in_place_of_an_answer(server, client, folder):
    """As a proxy gives it."""
    for step in ("create", "card", "commit"):
        server.faults.append(Fault(*STEPS[step], 502, body="<html>Bad gateway</html>"))
        refused(client("push_to_hub.py", folder, "--repo_id", REPO))
        server.faults.clear()


# --- The round trip ---


@pytest.mark.slow
def test_a_pushed_folder_comes_back_without_the_package(server, client, folder, environment, tmp_path):
    assert client("push_to_hub.py", folder, "--repo_id", REPO)[0] == 0
    pushed = server.repositories[REPO].branches["main"]
    assert client("push_to_hub.py", folder, "--repo_id", REPO, "--revision", "v1", "--private")[0] == 2
    assert client("push_to_hub.py", folder, "--repo_id", REPO, "--revision", "v1")[0] == 0
    # What comes after on the main branch is not what `revision` asks for.
    shutil.copy(folder / "config.json", tmp_path / "config.json")
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-8] + bytes(8))
    assert client("push_to_hub.py", folder, "--repo_id", REPO)[0] == 0
    program = """
from huggingface_hub import ModelCard
answers = [answer(*load(sys.argv[2], revision=revision)) for revision in sys.argv[3:]]
card = ModelCard.load(sys.argv[2])
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
    target.mkdir()
    for name, content in server.repositories[REPO].commits[sha]["files"].items():
        (target / name).write_bytes(content)
    return logits(target)


@pytest.mark.slow
def test_a_private_repository_is_not_for_strangers(server, client, folder, environment, tmp_path):
    assert client("push_to_hub.py", folder, "--repo_id", REPO, "--private")[0] == 0
    program = """
def refused(token):
    try:
        load(sys.argv[2], token=token)
    except OSError:
        return True
print(json.dumps([refused(False), refused("hf_" + "x" * 34), answer(*load(sys.argv[2]))]))
"""
    assert json.loads(as_stranger(program, environment, tmp_path, REPO)) == [True, True, logits(folder)]


@pytest.mark.slow
def test_a_run_that_pushes_leaves_the_same_repository(server, client, environment, tmp_path):
    """Trainer pushes while it trains and writes a card of its own; at the end all is as the script would have it."""
    folder = tmp_path / "trained"
    status, _, err = client(
        "train_classifier.py",
        *("--output_dir", folder, *QUICK, "--save_strategy", "steps", "--save_steps", "1"),
        *("--push_to_hub", "true", "--hub_model_id", f"{USER}/trained", "--hub_token", TOKEN),
        token="",
    )
    assert status == 0, err
    assert in_repository(server, f"{USER}/trained") == contents(folder)
    assert in_repository(server, f"{USER}/trained").keys() == RUN_FILES
    titles = server.titles(f"{USER}/trained")
    assert titles[0] == "Upload the run's folder" and any("Training in progress" in title for title in titles)
    # What it pushed meanwhile can be loaded, too.
    for commit in server.repositories[f"{USER}/trained"].commits.values():
        if "model.safetensors" in commit["files"]:
            assert {file for file in RUN_FILES if file.endswith(".py")} <= commit["files"].keys()
    card = server.files(f"{USER}/trained")["README.md"].decode()
    assert f'model="{USER}/trained"' in card and "generated_from_trainer" not in card
    # A token is a secret: it is in nothing that was ever pushed, nor in the folder.
    for commit in server.repositories[f"{USER}/trained"].commits.values():
        assert all(TOKEN.encode() not in content for content in commit["files"].values())
    assert all(TOKEN.encode() not in file.read_bytes() for file in folder.rglob("*") if file.is_file())
    # The recipe makes the run again, not the push.
    assert not re.search("hub", (folder / "recipe.yaml").read_text())

    # Its checkpoints carry the code, and so does what comes of going on from one.
    resumed = tmp_path / "resumed"
    resumed.mkdir()
    shutil.copytree(folder / "checkpoint-1", resumed / "checkpoint-1")
    status, _, err = client("train_classifier.py", "--output_dir", resumed, *QUICK, "--resume_from_checkpoint")
    assert status == 0, err
    places = [f"{USER}/trained", folder, folder / "checkpoint-2", folder / "checkpoint-1", resumed]
    program = "print(json.dumps([answer(*load(name)) for name in sys.argv[2:]]))"
    answers = json.loads(as_stranger(program, environment, tmp_path, *places))
    assert answers == [logits(folder), *map(logits, places[1:])]
    assert answers[0] == answers[1] == answers[2] != answers[3]


def test_a_run_is_pushed_to_the_branch_that_it_names(server, client, tmp_path):
    folder = tmp_path / "trained"
    flags = ["--push_to_hub", "true", "--hub_model_id", REPO, "--hub_revision", "v1"]
    status, _, err = client("train_classifier.py", "--output_dir", folder, *QUICK, *flags)
    assert status == 0, err
    assert in_repository(server, revision="v1") == contents(folder)
    assert in_repository(server, revision="main") == {}


def test_a_run_keeps_its_record_if_the_push_fails(server, client, tmp_path):
    folder = tmp_path / "trained"
    server.faults.append(Fault("POST", "/commit/", 500))
    status, out, err = client(
        "train_classifier.py",
        *("--output_dir", folder, *QUICK, "--push_to_hub", "true", "--hub_model_id", REPO),
    )
    assert status == 2
    assert len([line for line in err.splitlines() if line.startswith("train_classifier.py: error:")]) == 1
    assert "the Hub failed" in err.splitlines()[-1] and "test accuracy" in out
    server.faults.clear()
    assert client("push_to_hub.py", folder, "--repo_id", REPO)[0] == 0
    assert in_repository(server) == contents(folder)


def test_a_run_with_a_wrong_token_ends_before_it_trains(server, client, tmp_path):
    status, _, err = client(
        "train_classifier.py",
        *("--output_dir", tmp_path / "run", *QUICK, "--push_to_hub", "true", "--hub_model_id", REPO),
        token="hf_" + "x" * 34,
    )
    assert status == 2
    assert err.splitlines()[-1].startswith("train_classifier.py: error:") and "401" in err.splitlines()[-1]
    assert not any((tmp_path / "run").iterdir())


# What people do without our scripts.
OWN = """
import sys
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments
from hf_vanilla_transformer.hub import RecordCallback, push, upload_run
from hf_vanilla_transformer.metrics import compute_metrics
from hf_vanilla_transformer.training import CheckedTrainer
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model.push_to_hub("kim/bare")
push(model, "kim/pushed")
data = [{"input_ids": [5, 6, 7], "labels": i % 2} for i in range(4)]
for trainer_class, name, settings in (
    (CheckedTrainer, "checked", {"eval_strategy": "epoch", "logging_steps": 1}),
    (Trainer, "plain", {}),
    (Trainer, "uploaded", {}),
):
    arguments = TrainingArguments(
        f"{sys.argv[2]}/{name}", push_to_hub=True, max_steps=2, report_to=[], use_cpu=True,
        learning_rate=0.01, per_device_train_batch_size=4, save_strategy="epoch", **settings
    )
    trainer = trainer_class(
        model, arguments, train_dataset=data, eval_dataset=data, processing_class=tokenizer,
        compute_metrics=compute_metrics, callbacks=[RecordCallback("reviews.csv")],
    )
    trainer.train()
    if name == "uploaded":
        trainer.evaluate()
        upload_run(trainer)
    else:
        trainer.push_to_hub()
push(model, "kim/later")
"""


@pytest.mark.slow
def test_without_our_scripts_the_repository_is_the_same(server, client, folder, environment, tmp_path):
    """`push`, after `model.push_to_hub`, which sends the model alone; a user's Trainer with and without our class."""
    (tmp_path / "own.py").write_text(OWN)
    status, _, err = client(tmp_path / "own.py", folder, tmp_path)
    assert status == 0, err
    assert in_repository(server, "kim/bare").keys() == {
        *("README.md", "config.json", "model.safetensors"),
        *("configuration_vanilla_transformer.py", "modeling_vanilla_transformer.py"),
    }
    assert in_repository(server, "kim/pushed") == contents(folder)
    assert 'model="kim/pushed"' in server.files("kim/pushed")["README.md"].decode()

    assert in_repository(server, "kim/checked").keys() == RUN_FILES | {"training_args.bin"}
    assert in_repository(server, "kim/plain").keys() == RUN_FILES | {"training_args.bin"}
    metrics = json.loads(server.files("kim/checked")["metrics.json"])
    assert [row["step"] for row in metrics["epochs"]] == [1, 2]
    assert metrics["validation"]["accuracy"] == metrics["epochs"][-1]["eval_accuracy"]
    card = ModelCard(server.files("kim/checked")["README.md"].decode())
    assert f"| validation | loss | {metrics['validation']['loss']:.4f} |" in card.text and "reviews.csv" in card.text
    assert 'model="kim/checked"' in card.text and "It began as another run's model" in card.text
    results = {(r.dataset_split, r.metric_type): r.metric_value for r in card.data.eval_results}
    assert results["validation", "accuracy"] == round(metrics["validation"]["accuracy"], 4)
    recipe = yaml.safe_load(server.files("kim/checked")["recipe.yaml"])
    assert recipe.pop("save_strategy") == recipe.pop("eval_strategy") == "epoch" and recipe.pop("do_eval")
    assert recipe == {"learning_rate": 0.01, "max_steps": 2, "per_device_train_batch_size": 4, "logging_steps": 1}
    # In the place of Trainer's draft comes the card.
    assert "generated_from_trainer" in server.files("kim/plain")["README.md"].decode()
    assert client("push_to_hub.py", tmp_path / "plain", "--repo_id", "kim/plain")[0] == 0
    assert in_repository(server, "kim/plain") == contents(tmp_path / "plain")
    assert "| train | training_loss |" in server.files("kim/plain")["README.md"].decode()
    uploaded = in_repository(server, "kim/uploaded")
    assert uploaded.keys() == RUN_FILES
    assert "| validation | accuracy |" in uploaded["README.md"].decode()
    # The trained model's folder is now the new run's; `push` changes nothing but the name on the card.
    later = in_repository(server, "kim/later")
    assert "own_trainer" in later["run.json"].decode()
    assert later == contents(tmp_path / "uploaded")
    later["README.md"] = later["README.md"].replace(b"kim/later", b"kim/uploaded")
    assert later == uploaded
    program = "print(json.dumps([answer(*load(name)) for name in sys.argv[2:]]))"
    repositories = {"kim/pushed": folder, "kim/checked": tmp_path / "checked", "kim/plain": tmp_path / "plain"}
    answers = json.loads(as_stranger(program, environment, tmp_path, *repositories))
    assert answers == [logits(place) for place in repositories.values()]
    assert answers[0] != answers[1] != answers[2]


def test_push_refuses_changed_weights(folder, server):
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        model.classifier.weight[0, 0] += 1
    deeper = AutoModelForSequenceClassification.from_pretrained(folder, encoder_layers=2)
    for changed in (model, deeper):
        with pytest.raises(ValueError, match="weights are not those of the folder"):
            push(changed, REPO, token=TOKEN)
    assert not server.requests


def test_push_refuses_a_model_without_a_runs_folder(folder, server, tmp_path):
    new = VanillaTransformerForSequenceClassification(tiny_config())
    with pytest.raises(ValueError, match="not loaded from a run's folder"):
        push(new, REPO, token=TOKEN)
    new.save_pretrained(tmp_path / "only-the-model")
    with pytest.raises(ValueError, match="not complete"):
        push(type(new).from_pretrained(tmp_path / "only-the-model"), REPO, token=TOKEN)
    assert not server.requests


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shards", ["1GB", "10KB"])
@pytest.mark.parametrize("tie", [False, True])
def test_push_compares_the_weights_of_every_saved_form(folder, monkeypatch, shards, dtype, tie):
    (folder / "model.safetensors").unlink()
    fields = {"share_encoder_decoder_embeddings": tie, "tie_word_embeddings": tie}
    VanillaTransformerForConditionalGeneration(tiny_config(**fields)).to(dtype).save_pretrained(
        folder, max_shard_size=shards
    )
    assert (folder / "model.safetensors").exists() == (shards == "1GB")
    monkeypatch.setattr(hub_module, "upload", lambda folder, repo_id, **settings: (folder, repo_id, settings))
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    settings = {"private": True, "revision": "v1", "token": TOKEN}
    assert push(model, REPO, **settings) == (folder, REPO, settings)
    assert push(model.float(), REPO)[0] == folder
    with torch.no_grad():
        model.lm_head.weight[3, 3] += 1
    with pytest.raises(ValueError, match="weights are not those of the folder"):
        push(model, REPO)


MARK = "    mark = 'edited'\n\n"

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


def edited_copy(folder: Path, target: Path) -> Path:
    """A copy of a folder whose code differs."""
    shutil.copytree(folder, target)
    file = target / "modeling_vanilla_transformer.py"
    code = re.sub(r"(class VanillaTransformerForSequenceClassification\(.*\n)", rf"\1{MARK}", file.read_text())
    assert "mark = 'edited'" in code
    file.write_text(code)
    return target


@pytest.mark.slow
def test_two_models_in_one_process_do_not_mix(server, client, folder, environment, tmp_path):
    """Repositories and folders whose codes differ, loaded one after the other, and saved again."""
    edited = edited_copy(folder, tmp_path / "edited")
    assert client("push_to_hub.py", folder, "--repo_id", REPO)[0] == 0
    assert client("push_to_hub.py", edited, "--repo_id", f"{USER}/edited")[0] == 0
    places = [REPO, f"{USER}/edited", folder, edited]
    out = as_stranger(TWO_KINDS, environment, tmp_path, tmp_path / "again", *places)
    marks, again, answers = json.loads(out)
    assert marks == [None, "edited", None, "edited", "edited", None, "edited", None]
    assert again == [mark is not None for mark in marks]
    assert answers == [logits(folder)] * 8


@pytest.mark.slow
def test_folders_of_one_name_do_not_mix(folder, environment, tmp_path):
    edited = edited_copy(folder, tmp_path / "edited" / folder.name)
    marks, *_ = json.loads(as_stranger(TWO_KINDS, environment, tmp_path, tmp_path / "again", folder, edited))
    assert marks == [None, "edited", "edited", None]


PAIRS = [f"{number}편의 영화가 재미있다\t{number} films are fun" for number in range(60)]
OTHER_RUNS = {
    "train_translation.py": [
        *("--data", "pairs.tsv", "--source_column", "ko", "--target_column", "en", "--vocabularies", "separate"),
        *("--vocab_size", "100", "--max_length", "24", "--validation_fraction", "0.2"),
    ],
    "pretrain.py": ["--texts", "pairs.tsv", "--validation", "5", "--vocab_size", "120", "--max_length", "24"],
}


@pytest.mark.slow
@pytest.mark.parametrize("script", OTHER_RUNS)
def test_the_other_training_scripts_push_as_well(server, client, environment, tmp_path, script):
    pairs, folder, repo = tmp_path / "pairs.tsv", tmp_path / "trained", f"{USER}/trained"
    pairs.write_text("\n".join(["ko\ten", *PAIRS]) + "\n", encoding="utf-8")
    status, _, err = client(
        script,
        *(str(pairs) if argument == "pairs.tsv" else argument for argument in OTHER_RUNS[script]),
        *("--output_dir", folder, "--max_steps", "2", "--eval_strategy", "steps", "--eval_steps", "1", *TINY),
        *("--save_strategy", "steps", "--save_steps", "1", "--logging_steps", "1", "--disable_tqdm", "true"),
        *("--report_to", "none", "--push_to_hub", "true", "--hub_model_id", repo, "--hub_token", TOKEN),
        token="",
    )
    assert status == 0, err
    assert in_repository(server, repo) == contents(folder)
    assert server.titles(repo)[0] == "Upload the run's folder"
    for commit in server.repositories[repo].commits.values():
        assert all(TOKEN.encode() not in content for content in commit["files"].values())
    assert all(TOKEN.encode() not in file.read_bytes() for file in folder.rglob("*") if file.is_file())

    program = """
from transformers import AutoModelForSeq2SeqLM
tokenizer = AutoTokenizer.from_pretrained(sys.argv[2], trust_remote_code=True)
model = AutoModelForSeq2SeqLM.from_pretrained(sys.argv[2], trust_remote_code=True).eval()
print(json.dumps(model.generate(**tokenizer("3편의 영화", return_tensors="pt"), max_new_tokens=5).tolist()))
"""
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    ids = model.generate(**tokenizer("3편의 영화", return_tensors="pt"), max_new_tokens=5)
    assert json.loads(as_stranger(program, environment, tmp_path, repo)) == ids.tolist()


# --- Several processes ---


@pytest.mark.slow
def test_two_processes_train_as_one_and_one_of_them_writes(server, environment, tmp_path):
    """The same loss curve with the same global batch; the main process alone writes and pushes.

    `accelerate launch --cpu` starts one process, whatever number is asked for; `--multi_gpu` starts them, and they use
    CPUs where there is no GPU.
    """
    no_dropout = TINY[1].replace("}", ', "dropout": 0.0, "attention_dropout": 0.0}')
    settings = [
        *(
            "--data",
            "sample",
            "--max_steps",
            "20",
            "--logging_steps",
            "1",
            "--eval_strategy",
            "no",
            "--use_cpu",
            "true",
        ),
        *("--save_strategy", "steps", "--save_steps", "20", "--learning_rate", "1e-3", "--vocab_size", "1500"),
        *("--config", no_dropout, "--push_to_hub", "true", "--hub_strategy", "end"),
        *("--disable_tqdm", "true", "--report_to", "none"),
    ]
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text(ONLY_LOOPBACK)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = str(unused.getsockname()[1])
    launch = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", port]
    curves, tests = [], []
    for name, launcher, batch_size in (("alone", [], "8"), ("together", launch, "4")):
        folder = tmp_path / name
        result = subprocess.run(
            [
                *(sys.executable, *launcher, ROOT / "scripts/train_classifier.py", "--output_dir", folder),
                *("--hub_model_id", f"{USER}/{name}", "--per_device_train_batch_size", batch_size, *settings),
            ],
            env={**environment, "PYTHONPATH": str(tmp_path / "path"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout.count("test accuracy") == 1
        # Each of several processes keeps its own state.
        assert (folder / "checkpoint-20/rng_state_1.pth").is_file() == bool(launcher)
        state = json.loads((folder / "checkpoint-20/trainer_state.json").read_text())
        curves.append([entry["loss"] for entry in state["log_history"] if "loss" in entry])
        tests.append(json.loads((folder / "metrics.json").read_text())["test"])
        assert in_repository(server, f"{USER}/{name}") == contents(folder)
        assert len(server.titles(f"{USER}/{name}")) == 2
    assert len(curves[0]) == 20
    assert curves[1] == pytest.approx(curves[0], abs=1e-4)
    assert tests[1]["confusion_matrix"] == tests[0]["confusion_matrix"]
    assert server.requests.count(("POST", "/api/repos/create")) == 4  # Trainer's and ours, once for each run
