"""`vanilla-transformer push-to-hub --space`: a page's folder, against a server on loopback."""

import pytest
from hub_server import TOKEN, USER

from hub.repository import in_repository


pytestmark = [pytest.mark.usefixtures("server"), pytest.mark.slow]  # the client starts in a process of its own
SPACE = f"{USER}/page"
README = "---\ntitle: tiny\nsdk: static\n---\n\n# tiny\n"


@pytest.fixture
def page(tmp_path):
    """What matters of a page's folder."""
    folder = tmp_path / "page"
    for name, content in {
        "id_rsa": "private",
        "model/my.csv": "private",
        "README.md": README,
        "index.html": "<!doctype html>",
        "model/classifier.onnx": "weights",
        "runtime/ort.mjs": "code",
        ".git/config": "private",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_the_space_is_the_page(server, client, page):
    status, out, err = client("push-to-hub", page, "--space", SPACE)
    assert status == 0, err
    space = server.repositories[f"spaces/{SPACE}"]
    assert (space.sdk, space.private) == ("static", False)
    sent = in_repository(server, f"spaces/{SPACE}")
    assert sent.keys() == {"README.md", "index.html", "model/classifier.onnx", "runtime/ort.mjs"}
    assert all((page / name).read_bytes() == content for name, content in sent.items())
    assert out.strip().endswith(f"/commit/{space.branches['main']}")


def test_a_dry_run_lists_the_files_and_sends_nothing(server, client, page):
    status, out, err = client("push-to-hub", page, "--space", SPACE, "--dry_run", token="")
    assert (status, server.requests) == (0, []), err
    names = [line.split()[-1] for line in out.splitlines()[:-1]]
    assert names[:4] == ["README.md", "index.html", "model/classifier.onnx", "runtime/ort.mjs"]
    assert names[4:] == [".git/", "id_rsa", "model/my.csv"] and out.count("stays here") == 3


def test_files_of_an_older_page_disappear(server, client, page):
    assert client("push-to-hub", page, "--space", SPACE, "--private")[0] == 0
    (page / "model" / "classifier.onnx").rename(page / "model" / "encoder.onnx")
    assert client("push-to-hub", page, "--space", SPACE)[0] == 0
    assert {name for name in in_repository(server, f"spaces/{SPACE}") if "onnx" in name} == {"model/encoder.onnx"}
    assert server.repositories[f"spaces/{SPACE}"].private


def test_a_branch(server, client, page):
    assert client("push-to-hub", page, "--space", SPACE, "--revision", "v1")[0] == 0
    assert "index.html" in in_repository(server, f"spaces/{SPACE}", "v1")
    assert in_repository(server, f"spaces/{SPACE}") == {}


def refused(answer: tuple[int, str, str]) -> str:
    status, out, err = answer
    (line,) = err.splitlines()
    assert (status, out) == (2, "") and line.startswith("vanilla-transformer push-to-hub: error:"), err
    return line


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
def test_what_is_no_page_is_refused(server, client, page, name, content, dry_run):
    (page / name).unlink()
    if content is not None:
        (page / name).write_text(content)
    assert str(page) in refused(client("push-to-hub", page, "--space", SPACE, *dry_run))
    assert not server.requests


def test_other_mistakes_are_refused(server, client, page):
    assert "no such folder" in refused(client("push-to-hub", page / "none", "--space", SPACE))
    assert "USER/NAME" in refused(client("push-to-hub", page, "--space", "page"))
    assert "--repo_id" in refused(client("push-to-hub", page))
    assert "not allowed with" in refused(client("push-to-hub", page, "--space", SPACE, "--repo_id", SPACE))
    assert "`hf auth login`" in refused(client("push-to-hub", page, "--space", SPACE, token=""))
    assert "401" in refused(client("push-to-hub", page, "--space", SPACE, token=TOKEN[:-1] + "x"))


def test_a_space_with_a_server_and_a_public_one_stay_as_they_are(server, client, page):
    server.create(f"spaces/{SPACE}", files={"app.py": b""}).sdk = "gradio"
    assert "taken, by gradio" in refused(client("push-to-hub", page, "--space", SPACE))
    server.repositories[f"spaces/{SPACE}"].sdk = "static"
    assert "is public" in refused(client("push-to-hub", page, "--space", SPACE, "--private"))
    assert in_repository(server, f"spaces/{SPACE}") == {"app.py": b""}
