"""`vanilla-transformer push-to-hub`: the real client against a server on loopback."""

import re
import shutil

import pytest
import torch
from hub_server import TOKEN, USER, Fault
from shared import RUN_FILES, tiny_config
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.hub import push
from hub.repository import REPO, UNLISTED, contents, edit, in_repository


pytestmark = [pytest.mark.usefixtures("server"), pytest.mark.slow]  # the client starts in a process of its own


def dry_run(succeed, folder) -> tuple[dict[str, int], set[str]]:
    """The sizes of what would be sent, by name; and what stays."""
    *lines, total = succeed("push-to-hub", folder, "--repo_id", REPO, "--dry_run", token="").splitlines()
    listed = re.findall(r"^ *([\d,]+|stays here)  (.*)$", "\n".join(lines), re.MULTILINE)
    left = {name for size, name in listed if size == "stays here"}
    sizes = {name: int(size.replace(",", "")) for size, name in listed if name not in left}
    assert int(total.split()[0].replace(",", "")) == sum(sizes.values())
    texts = [line for line in lines if line.startswith("README.md, run.json: a text of the data, ")]
    assert len(texts) == 2 and len(lines) == len(listed) + len(texts)  # one of each label
    return sizes, left


def test_what_is_sent_is_what_a_run_writes(server, succeed, folder):
    """`folder` holds strangers."""
    strangers = {"notes.txt", "x.pkl", "int8[1]/id_rsa", "wandb/debug.log", "runs/today_host/events.out"}
    for name in (*strangers, "vocab.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("secret")
    sizes, left = dry_run(succeed, folder)
    assert server.requests == []
    assert sizes == {name: len(content) for name, content in contents(folder).items()}
    assert sizes.keys() == RUN_FILES | {"vocab.txt"}
    unlisted = {name for name in UNLISTED if "/" not in name} | {"training_args.bin", "notes.txt", "x.pkl"}
    assert left == unlisted | {"checkpoint-2/", "sub/", "wandb/", "runs/", "int8[1]/"}
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert in_repository(server).keys() == sizes.keys()


def test_an_export_alone_is_a_repository(server, succeed, refused, tmp_path):
    """Its card is its own."""
    files = {
        "README.md": "---\ntags: [vanilla-transformer]\n---\n`model`, exported.",
        "config.json": '{"model_type": "bart"}',
        **{"export.json": "{}", "recipe.yaml": "{}", "tokenizer.json": "{}", "model.bin": "weights"},
    }
    for name, content in (files | {"id_rsa": "private"}).items():
        (tmp_path / name).write_text(content)
    for _ in range(2):  # the second meets the first one's kind of model
        succeed("push-to-hub", tmp_path, "--repo_id", REPO)
    assert {name: content.decode() for name, content in in_repository(server).items()} == files
    (tmp_path / "config.json").unlink()
    assert "config.json missing" in refused("push-to-hub", tmp_path, "--repo_id", REPO, "--dry_run")


def test_the_repository_is_the_folder(server, succeed, folder):
    """Whose card comes to name the repository where it loads the model."""
    before = (folder / "README.md").read_text()
    out = succeed("push-to-hub", folder, "--repo_id", REPO)
    assert in_repository(server) == contents(folder)
    card = (folder / "README.md").read_text()
    assert f'model="{REPO}"' in card and card.replace(REPO, "tiny") == before
    repository = server.repositories[REPO]
    assert out.strip().endswith(f"/{REPO}/commit/{repository.branches['main']}")
    assert not repository.private
    assert len(server.titles(REPO)) == 2
    assert [*server.objects.values()] == [(folder / "model.safetensors").read_bytes()]


def test_a_missing_card_is_made_from_the_record(server, succeed, folder):
    card = (folder / "README.md").read_bytes()
    (folder / "README.md").unlink()
    out = succeed("push-to-hub", folder, "--repo_id", REPO, "--dry_run")
    assert "README.md (made from the record)" in out
    assert not (folder / "README.md").exists()
    succeed("push-to-hub", folder, "--repo_id", REPO)
    text = server.files(REPO)["README.md"].decode()
    assert text.replace(f'"{REPO}"', '"tiny"').replace(f"name: {REPO}", "name: tiny") == card.decode()


def test_a_second_push_sends_what_has_changed(server, succeed, folder):
    def push() -> list[tuple[str, str]]:
        server.requests.clear()
        succeed("push-to-hub", folder, "--repo_id", REPO)
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
    before, after = server.repositories[REPO].commits[first][2], server.files(REPO)
    assert {name for name in after if after[name] != before.get(name)} == {"README.md"}
    assert after["README.md"].decode().endswith("A remark by hand.\n")


def test_a_second_vocabulary_is_uploaded(server, succeed, refused, folder):
    edit(folder / "config.json", decoder_vocab_size=1500)
    assert "no tokenizer can be read here" in refused("push-to-hub", folder, "--repo_id", REPO, "--dry_run")
    (folder / "target_tokenizer").mkdir()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / file, folder / "target_tokenizer" / file)
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert in_repository(server).keys() >= {"target_tokenizer/tokenizer.json"}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        *((name, None, name.split(".")[0]) for name in sorted(RUN_FILES - {"README.md"})),
        ("model.safetensors", b"cut off", "header"),
        ("tokenizer.json", b"{", "no tokenizer can be read"),
        ("config.json", b"{", "config.json"),
        ("recipe.yaml", b"", "recipe.yaml: holds no mapping"),
        ("run.json", b"{", "run.json: no content can be read"),
        ("README.md", b"---\na: [\n---\n", "README.md"),
    ],
)
def test_a_folder_that_is_not_complete_is_refused(server, refused, folder, file, content, message):
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    for flags in ([], ["--dry_run"]):
        assert message in refused("push-to-hub", folder, "--repo_id", REPO, *flags)
    assert not server.requests


def test_wrong_command_lines_are_refused(server, refused, run_folder, tmp_path):
    assert "no such folder" in refused("push-to-hub", tmp_path / "nowhere", "--repo_id", REPO, "--dry_run")
    for name, flags in (("tiny", []), ("a/b/c", ["--dry_run"]), ("kim/a b", [])):
        assert repr(name) in refused("push-to-hub", run_folder, "--repo_id", name, *flags)
    assert not server.requests


def test_without_a_token_nothing_is_asked_and_with_a_wrong_one_nothing_made(server, refused, run_folder):
    assert "`hf auth login`" in refused("push-to-hub", run_folder, "--repo_id", REPO, token="")
    assert not server.requests
    assert "401" in refused("push-to-hub", run_folder, "--repo_id", REPO, token="hf_" + "x" * 34)
    assert not server.repositories


def test_a_taken_name_is_refused(server, refused, folder):
    server.create(REPO, files={"config.json": b'{"model_type": "bert"}'})
    assert "bert" in refused("push-to-hub", folder, "--repo_id", REPO)
    server.create(f"{USER}/public")
    assert "public" in refused("push-to-hub", folder, "--repo_id", f"{USER}/public", "--private")
    server.create("lee/theirs")
    for name in ("lee/theirs", "lee/new"):
        assert "403" in refused("push-to-hub", folder, "--repo_id", name)
    assert all(len(server.titles(repo)) == 1 for repo in server.repositories)


@pytest.mark.parametrize(("method", "path"), [("PUT", "/lfs/"), ("POST", "/commit/")])
def test_a_second_push_completes_the_upload(server, run, succeed, folder, method, path):
    """The server hangs up in the middle of a request."""
    server.faults.append(Fault(method, path))
    status, *_ = run("push-to-hub", folder, "--repo_id", REPO)
    assert status != 0 and len(server.titles(REPO)) == 1
    server.faults.clear()
    server.requests.clear()
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert in_repository(server) == contents(folder)
    # Weights that have arrived are not sent again.
    assert sum(method == "PUT" for method, _ in server.requests) == (path == "/lfs/")


def test_push_refuses_a_model_that_is_not_the_folders(folder, tmp_path):
    weights = "weights are not those of the folder"
    changed = AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        changed.classifier.weight[0, 0] += 1
    deeper = AutoModelForSequenceClassification.from_pretrained(folder, encoder_layers=2)
    new = VanillaTransformerForSequenceClassification(tiny_config())
    new.save_pretrained(tmp_path / "only-the-model")
    alone = type(new).from_pretrained(tmp_path / "only-the-model")
    problems = {changed: weights, deeper: weights, new: "not loaded from a run's folder", alone: "not complete"}
    for model, problem in problems.items():
        with pytest.raises(ValueError, match=problem):
            push(model, REPO, token=TOKEN)


def test_push_compares_the_weights_whatever_form_they_are_saved_in(folder, monkeypatch):
    """In several files, in half precision, with tied weights once."""
    (folder / "model.safetensors").unlink()
    fields = {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True}
    new = VanillaTransformerForConditionalGeneration(tiny_config(**fields))
    new.to(torch.bfloat16).save_pretrained(folder, max_shard_size="10KB")
    monkeypatch.setitem(push.__globals__, "upload", lambda *place, **settings: (*place, settings))
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    settings = {"private": True, "revision": "v1", "token": TOKEN}
    assert push(model, REPO, **settings) == (str(folder), REPO, settings)
    assert push(model.float(), REPO)[0] == str(folder)
    with torch.no_grad():
        model.lm_head.weight[3, 3] += 1
    with pytest.raises(ValueError, match="weights are not those of the folder"):
        push(model, REPO)
