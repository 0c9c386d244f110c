"""`vanilla-transformer push-to-hub`: the real client against a server on loopback."""

import json
import re
import shutil

import pytest
import torch
import yaml
from hub_server import TOKEN, USER, Fault
from shared import RUN_FILES, read_json, tiny_config
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.hub import push
from hub.repository import REPO, UNLISTED, contents, edit, in_repository


pytestmark = [pytest.mark.usefixtures("server"), pytest.mark.slow]  # the client starts in a process of its own


def dry_run(succeed, folder, *arguments) -> tuple[dict[str, int], set[str], list[str]]:
    """The sizes of what would be sent, by name; what stays; and all lines after these but the texts of the data."""
    out = succeed("push-to-hub", folder, "--repo_id", REPO, "--dry_run", *arguments, token="")
    *lines, total = out.splitlines()
    listed = re.findall(r"^ *([\d,]+|stays here)  (.*)$", "\n".join(lines), re.MULTILINE)
    left = {name for size, name in listed if size == "stays here"}
    sizes = {name: int(size.replace(",", "")) for size, name in listed if name not in left}
    assert int(total.split()[0].replace(",", "")) == sum(sizes.values())
    other = [line for line in lines[len(listed) :] if not line.startswith("README.md, run.json: a text of the data, ")]
    assert len(lines) == len(listed) + len(other) + 2  # texts, one of each label
    return sizes, left, other


def test_what_is_sent_is_what_a_run_writes_and_what_is_included(server, succeed, folder, tmp_path):
    """`folder` holds strangers, and links that lead out of it."""
    (tmp_path / "elsewhere").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "export.json").write_text("{}")
    (folder / "export").symlink_to(tmp_path / "export")
    (folder / "vocab.txt").symlink_to(folder / "id_rsa")  # a link within
    strangers = {"notes.txt", "x.pkl", "model-key-of-my.safetensors", "int8[1]/id_rsa"}
    for name in (*strangers, "bell\a.txt", "two\r\nlines\u2028.txt", "wandb/debug.log", "runs/today_host/events.out"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("secret")
    exported = {f"int8[1]/{name}" for name in ("export.json", "model.bin", "config.json")}
    for name in exported:
        (folder / name).write_text("{}")
    sizes, left, other = dry_run(succeed, folder)
    assert server.requests == [] and other == []
    assert sizes == {name: len(content) for name, content in contents(folder).items()}
    assert sizes.keys() == RUN_FILES | exported | {"vocab.txt"}
    strangers |= {name for name in UNLISTED if "/" not in name} | {"training_args.bin", "link.txt"}
    assert left == strangers | {"checkpoint-2/", "sub/", "wandb/", "runs/", r"bell\x07.txt", "export/"} | {
        r"two\r\nlines\u2028.txt"
    }
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert in_repository(server).keys() == sizes.keys()
    include = ["--include", "notes.*", "--include", "runs/**/*"]
    more, *_ = dry_run(succeed, folder, *include)
    assert more.keys() == sizes.keys() | {"notes.txt", "runs/today_host/events.out"}
    succeed("push-to-hub", folder, "--repo_id", REPO, *include)
    assert in_repository(server).keys() == more.keys()


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        *((pattern, "nothing to send is called") for pattern in ("typo.*", "link.txt", "/etc/hosts", ".*")),
        *((pattern, "has the part `..`") for pattern in ("../elsewhere", "sub/../.env", "sub/../*", "**/../id_rsa")),
        *((pattern, ".git, which") for pattern in (".git/**", ".git/config", "sub/.git/*")),
    ],
)
def test_what_cannot_be_included_is_refused(server, refused, folder, tmp_path, pattern, message):
    (tmp_path / "elsewhere").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "elsewhere")
    for name in (".git", "sub/.git"):
        (folder / name).mkdir(parents=True)
        (folder / name / "config").write_text("x")
    include = ["--include", "config.json", "--include", pattern]
    for flags in (["--dry_run"], []):
        assert message in refused("push-to-hub", folder, "--repo_id", REPO, *include, *flags)
    assert server.requests == []


def test_a_wildcard_finds_no_hidden_file_and_no_key(server, succeed, folder):
    secret = {".env", "id_ed25519", "my.pem", "token", "sub/server.key", ".ssh/config", "aws_credentials.json"}
    secret |= {
        "PASSWORDS.txt",
        "server.KEY",
        "API_KEY.txt",
        "wandb_api_key",
        ".netrc",
        "_netrc",
        "Prod.env",
        "Secrets/a",
    }
    for name in (*secret, "notes.txt", "sub/more.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
    flags = ["--include", "*", "--include", "**/*", "--include", "[!x]*"]
    sizes, *_ = dry_run(succeed, folder, *flags)
    assert sizes.keys() >= {"notes.txt", "sub/more.csv", "my.csv"}
    assert not sizes.keys() & (secret | {".secret", "id_rsa", "training_args.bin"})
    succeed("push-to-hub", folder, "--repo_id", REPO, *flags)
    assert in_repository(server).keys() == sizes.keys()
    named, *_ = dry_run(succeed, folder, "--include", ".env", "--include", "my.pem")
    assert named.keys() >= {".env", "my.pem"}


@pytest.mark.parametrize(
    "name", ["model.safetensors", "tokenizer.json", "config.json", "curves.png", "int8/model.bin"]
)
def test_a_file_of_the_run_that_is_a_link_out_of_the_folder_is_refused(server, refused, folder, tmp_path, name):
    """It would not be sent, and the card would tell to load it."""
    (folder / "int8").mkdir()
    for file in ("export.json", "model.bin"):
        (folder / "int8" / file).write_text("{}")
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    for flags in (["--dry_run"], []):
        said = refused("push-to-hub", folder, "--repo_id", REPO, *flags)
        assert f"{name}: a link that leads out of the folder" in said
    assert server.requests == []


def test_nothing_is_written_through_a_link(server, succeed, refused, folder, tmp_path):
    """Of a card that leads out of the folder, of one that leads nowhere, and of one within."""
    (folder / "README.md").rename(tmp_path / "card.md")
    before = (tmp_path / "card.md").read_bytes()
    for target in (tmp_path / "card.md", tmp_path / "made.md"):
        (folder / "README.md").unlink(missing_ok=True)
        (folder / "README.md").symlink_to(target)
        for flags in (["--dry_run"], []):
            said = refused("push-to-hub", folder, "--repo_id", REPO, *flags)
            assert "README.md: a link that leads out of the folder" in said
    assert server.requests == [] and not (tmp_path / "made.md").exists()
    assert (tmp_path / "card.md").read_bytes() == before
    (folder / "README.md").unlink()
    (folder / "card.md").write_bytes(before)
    (folder / "README.md").symlink_to("card.md")
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert (folder / "card.md").read_bytes() == before and not (folder / "README.md").is_symlink()


@pytest.mark.parametrize("place", ["/home/kim/my reviews.csv", "C:\\Users\\kim\\x", "../kim/old.txt.gz"])
@pytest.mark.parametrize("file", ["recipe.yaml", "run.json", "int8/export.json"])
def test_a_record_that_names_a_folder_of_a_machine_is_not_sent(server, refused, folder, file, place):
    """A run's own has none: somebody has edited it."""
    (folder / "int8").mkdir()
    (folder / "int8" / "export.json").write_text("{}")
    content = yaml.safe_load((folder / file).read_text()) | {"began_as": {"data": [{place: "sha"}]}}
    (folder / file).write_text(json.dumps(content))
    for flags in ([], ["--dry_run"]):
        line = refused("push-to-hub", folder, "--repo_id", REPO, *flags)
        assert f"{file}: names a folder of a machine" in line
    assert server.requests == []


@pytest.mark.parametrize("place", ["", "native/"])
@pytest.mark.parametrize("shard", ["../x.safetensors", "/etc/passwd", "link.safetensors"])
def test_a_weights_index_that_leads_out_of_the_folder_is_refused(server, refused, folder, tmp_path, place, shard):
    """Also that of an export, of which a push reads no weights."""
    (folder / "native").mkdir()
    (folder / "native" / "export.json").write_text("{}")
    (folder / place / "link.safetensors").symlink_to(tmp_path / "x.safetensors")
    (folder / place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": shard}}))
    for arguments in ([], ["--dry_run"]):
        line = refused("push-to-hub", folder, "--repo_id", REPO, "--include", "native/*.json", *arguments)
        assert f"{place}model.safetensors.index.json: {shard} is outside of the folder" in line
    assert server.requests == []


def test_an_export_alone_is_a_repository(server, succeed, refused, tmp_path):
    """Its card is its own."""
    files = {
        "README.md": "---\ntags: [vanilla-transformer]\n---\n`model`, exported.",
        "config.json": '{"model_type": "bart"}',
        "export.json": '{"source": "model"}',
        **{"tokenizer.json": "{}", "model.bin": "weights", "id_rsa": "private"},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    for _ in range(2):  # the second meets the first one's kind of model
        succeed("push-to-hub", tmp_path, "--repo_id", REPO)
    sent = in_repository(server)
    assert {name: content.decode() for name, content in sent.items()} == {
        name: content for name, content in files.items() if name != "id_rsa"
    }
    (tmp_path / "config.json").write_text("")
    assert "config.json missing or empty" in refused("push-to-hub", tmp_path, "--repo_id", REPO, "--dry_run")


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


@pytest.mark.parametrize("dry_run", [[], ["--dry_run"]])
@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        *((name, None, name.split(".")[0]) for name in sorted(RUN_FILES - {"README.md"})),
        ("model.safetensors", b"cut off", "header"),
        ("tokenizer.json", b"{", "tokenizer"),
        ("config.json", b'{"model_type": "vanilla_transformer"}', "None"),
        ("config.json", b"{", "config.json"),
        ("recipe.yaml", b"", "recipe.yaml missing or empty"),
        ("recipe.yaml", b"data: sample\nmax_st", "recipe.yaml: no content can be read"),
        ("tokenizer.json", b"[]", "no tokenizer can be read"),
        ("generation_config.json", b"[]", "generation_config.json: no content can be read"),
        ("modeling_vanilla_transformer.py", b"def (", "modeling_vanilla_transformer.py: no content can be read"),
        ("modeling_vanilla_transformer.py", b"", "not complete, modeling_vanilla_transformer.py missing or empty"),
        ("README.md", b"---\na: [\n---\n", "README.md"),
        ("README.md", b"\xff\xfe", "README.md: no content can be read"),
        ("README.md", b"# No metadata\n", "library_name, pipeline_tag, tags, model-index"),
    ],
)
def test_a_damaged_folder_is_refused(server, refused, folder, file, content, message, dry_run):
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    assert message in refused("push-to-hub", folder, "--repo_id", REPO, *dry_run)
    assert not server.requests


def test_a_folder_whose_code_the_hub_would_not_find_is_refused(refused, folder):
    config = read_json(folder / "config.json")
    del config["auto_map"]
    (folder / "config.json").write_text(json.dumps(config))
    assert "auto_map" in refused("push-to-hub", folder, "--repo_id", REPO)


@pytest.mark.parametrize("name", ["tiny", "a/b/c", "kim/", "/tiny", "kim/a--b", "kim/-tiny", "kim/ä", "kim/a b", ""])
@pytest.mark.parametrize("dry_run", [[], ["--dry_run"]])
def test_a_malformed_name_is_refused(server, refused, run_folder, name, dry_run):
    assert repr(name) in refused("push-to-hub", run_folder, "--repo_id", name, *dry_run)
    assert not server.requests


def test_wrong_command_lines_are_refused(refused, run_folder, tmp_path):
    assert "no such folder" in refused("push-to-hub", tmp_path / "nowhere", "--repo_id", REPO, "--dry_run")
    assert "~" not in refused("push-to-hub", "~/nowhere", "--repo_id", REPO)
    assert "--repo_id" in refused("push-to-hub", run_folder)
    assert "--privat" in refused("push-to-hub", run_folder, "--repo_id", REPO, "--privat")


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


@pytest.mark.parametrize(("step", "status"), [*((step, 500) for step in STEPS), ("put", None), ("commit", None)])
def test_whatever_the_server_does_a_second_run_completes_the_upload(server, succeed, refused, folder, step, status):
    """It answers 500 at each step in turn, or hangs up in the middle of a request."""
    server.faults.append(Fault(*STEPS[step], status))
    line = refused("push-to-hub", folder, "--repo_id", REPO)
    assert status is None or str(status) in line
    assert len(server.titles(REPO)) == 1 if REPO in server.repositories else step == "create"
    server.faults.clear()
    server.requests.clear()
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert in_repository(server) == contents(folder)
    # Weights that have arrived are not sent again.
    sent = sum(method == "PUT" for method, _ in server.requests)
    assert sent == (step not in ("verify", "commit"))


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
