"""`upload` and `vanilla-transformer push-to-hub`: which files arrive, and what is refused."""

import re
import shutil

import pytest
from shared import RUN_FILES

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
