"""`vanilla-transformer push-to-hub --space`: a page's folder, against a server on loopback."""

import pytest
from hub_server import USER

from hub.repository import in_repository


pytestmark = [pytest.mark.usefixtures("server"), pytest.mark.slow]  # the client starts in a process of its own
SPACE = f"{USER}/page"
SENT = {
    "README.md": "---\ntitle: tiny\nsdk: static\n---\n\n# tiny\n",
    **{"index.html": "<!doctype html>", "model/classifier.onnx": "weights", "runtime/ort.mjs": "code"},
}


@pytest.fixture
def page(tmp_path):
    """What matters of a page's folder, and strangers."""
    folder = tmp_path / "page"
    for name, content in {**SENT, "id_rsa": "private", "model/my.csv": "private", ".git/config": "private"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_the_space_is_the_page(server, succeed, page):
    out = succeed("push-to-hub", page, "--space", SPACE)
    space = server.repositories[f"spaces/{SPACE}"]
    assert (space.sdk, space.private) == ("static", False)
    assert in_repository(server, f"spaces/{SPACE}") == {name: content.encode() for name, content in SENT.items()}
    assert out.strip().endswith(f"/commit/{space.branches['main']}")


def test_a_dry_run_lists_the_files_and_sends_nothing(server, succeed, page):
    out = succeed("push-to-hub", page, "--space", SPACE, "--dry_run", token="")
    assert not server.requests
    names = [line.split()[-1] for line in out.splitlines()[:-1]]
    assert names == [*SENT, ".git/", "id_rsa", "model/my.csv"] and out.count("stays here") == 3


def test_files_of_an_older_page_disappear(server, succeed, page):
    succeed("push-to-hub", page, "--space", SPACE, "--private")
    (page / "model" / "classifier.onnx").rename(page / "model" / "encoder.onnx")
    succeed("push-to-hub", page, "--space", SPACE)
    assert {name for name in in_repository(server, f"spaces/{SPACE}") if "onnx" in name} == {"model/encoder.onnx"}
    assert server.repositories[f"spaces/{SPACE}"].private


@pytest.mark.parametrize("dry_run", [[], ["--dry_run"]])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("README.md", None),
        ("index.html", None),
        ("README.md", "# no metadata\n"),
        ("README.md", "---\nsdk: gradio\n---\n"),
        ("README.md", "---\nsdk: [\n---\n"),
    ],
)
def test_what_is_no_page_is_refused(server, refused, page, name, content, dry_run):
    (page / name).unlink()
    if content is not None:
        (page / name).write_text(content)
    assert str(page) in refused("push-to-hub", page, "--space", SPACE, *dry_run)
    assert not server.requests


def test_other_mistakes_are_refused(server, refused, page):
    assert "no such folder" in refused("push-to-hub", page / "none", "--space", SPACE)
    assert "USER/NAME" in refused("push-to-hub", page, "--space", "page")
    assert "not allowed with" in refused("push-to-hub", page, "--space", SPACE, "--repo_id", SPACE)
    assert not server.requests


def test_a_space_with_a_server_and_a_public_one_stay_as_they_are(server, refused, page):
    server.create(f"spaces/{SPACE}", files={"app.py": b""}, sdk="gradio")
    assert "taken, by gradio" in refused("push-to-hub", page, "--space", SPACE)
    server.repositories[f"spaces/{SPACE}"].sdk = "static"
    assert "is public" in refused("push-to-hub", page, "--space", SPACE, "--private")
    assert in_repository(server, f"spaces/{SPACE}") == {"app.py": b""}
