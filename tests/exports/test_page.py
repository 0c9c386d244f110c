"""The page's folder: what is in it, what is refused. tests/exports/test_page_in_browser.py runs it."""

import contextlib
import functools
import hashlib
import http.client
import json
import os
import re
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from shared import ROOT, read_json, tiny_config

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.commands import page as command
from hf_vanilla_transformer.exports import browser_page as page
from hf_vanilla_transformer.hub import space_files
from hf_vanilla_transformer.tokenizer import train_tokenizer


STATIC = ROOT / "hf_vanilla_transformer" / "exports" / "page"
FILES = {"dist/library.mjs": b"export {};", "LICENSE": b"Anybody may."}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A small package instead of the runtime, and nothing instead of the networks."""
    checksums = {path: hashlib.sha256(content).hexdigest() for path, content in FILES.items()}
    monkeypatch.setattr(page, "RUNTIME", {"@tiny/library": page.NpmPackage("1.2.3", checksums)})
    monkeypatch.setattr(page, "_save_networks", lambda model, folder: folder.mkdir())


@pytest.fixture
def runtime(tmp_path) -> Path:
    folder = tmp_path / "runtime"
    folder.mkdir()
    for path, content in FILES.items():
        (folder / Path(path).name).write_bytes(content)
    return folder


def save_model(folder: Path, model_class=VanillaTransformerForSequenceClassification, **fields) -> Path:
    model = model_class(tiny_config(**fields))
    model.save_pretrained(folder)
    train_tokenizer(["가나다 라마바"], vocab_size=29, max_length=12).save_pretrained(folder)
    if fields.get("decoder_vocab_size"):
        train_tokenizer(["abc"], vocab_size=20).save_pretrained(folder / "target_tokenizer")
    return folder


@pytest.fixture
def classifier(tmp_path) -> Path:
    return save_model(tmp_path / "tiny", id2label={0: "bad", 1: "good", 2: "so-so"})


def test_a_classifiers_page(succeed, classifier, runtime, tmp_path):
    folder = tmp_path / "page"
    arguments = ["--model", classifier, "--output_dir", folder, "--runtime", runtime, "--examples", "가나", "다"]
    assert f"{folder}: a page of " in succeed("page", *arguments)
    settings = read_json(folder / "model" / "page.json")
    assert settings["task"] == "classification" and settings["name"] == "tiny"
    assert settings["labels"] == ["bad", "good", "so-so"] and settings["examples"] == ["가나", "다"]
    assert settings["max_length"] == 12 and settings["target_tokenizer"] is False
    assert settings["attention"]["encoder"] == {"layers": 2, "heads": 4}
    head = yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])
    assert head["sdk"] == "static" and head["title"] == "tiny"
    assert (folder / "runtime" / "library.mjs").read_bytes() == FILES["dist/library.mjs"]
    assert (folder / "model" / "tokenizer.json").is_file()
    there = {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()}
    assert there >= {file.relative_to(STATIC) for file in STATIC.rglob("*") if file.is_file()}
    assert there == set(space_files(folder))  # what `push-to-hub --space` sends


def test_a_translators_page_has_both_vocabularies(succeed, runtime, tmp_path):
    model = save_model(tmp_path / "two", VanillaTransformerForConditionalGeneration, decoder_vocab_size=31)
    succeed("page", "--model", model, "--output_dir", tmp_path / "page", "--runtime", runtime)
    settings = read_json(tmp_path / "page" / "model" / "page.json")
    assert settings["task"] == "translation" and settings["target_tokenizer"] is True
    assert (settings["start"], settings["end"], settings["target_vocab_size"]) == (2, [3], 31)
    assert (settings["max_target_length"], settings["examples"]) == (16, [])
    assert Path("model/target_tokenizer/tokenizer.json") in space_files(tmp_path / "page")


@pytest.mark.parametrize(
    ("name", "languages"),
    [("nsmc-small", ["ko"]), ("multi30k-de-en", ["de", "en"]), ("multi30k-en-de", ["en", "de"])],
)
def test_the_card_names_the_languages_and_they_the_examples(runtime, tmp_path, name, languages):
    settings = page.make_page(str(ROOT / "model_cards" / name), str(tmp_path / "page"), runtime=str(runtime))
    assert settings["languages"] == languages
    of_record = read_json(ROOT / "model_cards" / name / "run.json")["data"]["validation"].get("examples")
    assert settings["examples"] == (of_record or page.EXAMPLES[settings["task"]][languages[0]][-3:])


def test_a_run_of_own_data_brings_its_examples(classifier, runtime, tmp_path):
    (classifier / "run.json").write_text(json.dumps({"data": {"validation": {"examples": ["배송이 빨라요"]}}}))
    settings = page.make_page(str(classifier), str(tmp_path / "page"), runtime=str(runtime))
    assert settings["examples"] == ["배송이 빨라요"]


def test_the_pages_own_files_name_nothing_outside_and_only_what_is_there():
    scripts = sorted(STATIC.glob("*.js"))
    assert sum(len(script.read_text().splitlines()) for script in scripts) <= 430
    of_npm = {f"runtime/{Path(path).name}" for _, files in vars(page)["RUNTIME"].values() for path in files}
    for file in [*scripts, STATIC / "index.html", STATIC / "style.css"]:
        text = file.read_text()
        assert "://" not in text, file
        for name in re.findall(r'(?:from |href=|src=)"(?:\./)?([\w./-]+)"', text):
            assert (STATIC / name).is_file() or name.startswith("runtime/") or name in of_npm, (file, name)


def test_both_languages_say_the_same_things():
    texts = read_json(STATIC / "words.json")

    def places(words):
        return {
            name: places(text) if isinstance(text, dict) else sorted(re.findall(r"\{\w+\}", text))
            for name, text in words.items()
            if name != "labelNames"  # of labels, which are English
        }

    assert places(texts["ko"]) == places(texts["en"])
    asked = re.findall(r'data-(?:say|label)="(\w+)"', (STATIC / "index.html").read_text())
    asked += re.findall(r'words\("(\w+)"', "".join(script.read_text() for script in STATIC.glob("*.js")))
    assert len(asked) > 20
    for name in asked:
        assert any(name in words for words in (texts["en"], texts["en"]["classification"])), name


def test_a_runtime_may_lie_as_npm_installs_it(runtime, tmp_path):
    installed = tmp_path / "node_modules" / "@tiny" / "library"
    (installed / "dist").mkdir(parents=True)
    for path, content in FILES.items():
        (installed / path).write_bytes(content)
    page.copy_runtime(tmp_path / "copy", str(tmp_path / "node_modules"))
    assert {file.name for file in (tmp_path / "copy").iterdir()} == {"library.mjs", "LICENSE"}


NPM = """#!{python}
import io, json, sys, tarfile
assert sys.argv[1:4] == ["pack", "--json", "--pack-destination"] and sys.argv[5:] == ["@tiny/library@1.2.3"], sys.argv
with tarfile.open(sys.argv[4] + "/tiny.tgz", "w:gz") as archive:
    for path, content in {files}.items():
        entry = tarfile.TarInfo("package/" + path)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
print(json.dumps([{{"name": "@tiny/library", "filename": "tiny.tgz"}}]))
"""


def put_npm(folder: Path, program: str, monkeypatch):
    """Make a program the only npm there is."""
    folder.mkdir()
    (folder / "npm").write_text(program)
    (folder / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for npm is a script of Unix")
def test_npm_downloads_the_runtime(monkeypatch, tmp_path):
    put_npm(tmp_path / "bin", NPM.format(python=sys.executable, files=FILES), monkeypatch)
    page.copy_runtime(tmp_path / "copy")
    assert (tmp_path / "copy" / "library.mjs").read_bytes() == FILES["dist/library.mjs"]


@pytest.fixture
def refuse(refused, classifier, runtime, tmp_path):
    """Run the command with something wrong; returns its one line. Nothing may be left behind."""

    def refuse(**changed) -> str:
        flags = {"model": classifier, "output_dir": tmp_path / "page", "runtime": runtime, **changed}
        before = sorted(tmp_path.rglob("*"))
        words = [word for name, value in flags.items() if value is not None for word in (f"--{name}", value)]
        line = refused("page", *words)
        assert sorted(tmp_path.rglob("*")) == before
        return line

    return refuse


def test_a_wrong_folder_is_refused(refuse, tmp_path):
    assert f"no folder {str(tmp_path / 'none')!r}" in refuse(model=tmp_path / "none")
    other = tmp_path / "headless"
    VanillaTransformerModel(tiny_config()).save_pretrained(other)
    assert "headless: neither classifier nor translator" in refuse(model=other)
    several = save_model(tmp_path / "several", problem_type="multi_label_classification")
    assert "several: trained for multi_label_classification" in refuse(model=several)
    assert "is not empty" in refuse(output_dir=other)
    assert "model.safetensors is not empty" in refuse(output_dir=other / "model.safetensors")


def test_a_runtime_that_is_not_the_one_is_refused(refuse, runtime, tmp_path):
    assert "lacks library.mjs, of the npm package @tiny/library 1.2.3" in refuse(runtime=tmp_path / "none")
    (runtime / "library.mjs").write_text("another version")
    assert "library.mjs: not the file of the npm package @tiny/library 1.2.3" in refuse(runtime=runtime)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for npm is a script of Unix")
def test_without_npm_one_line_says_what_to_do(refuse, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "npm, which downloads the page's runtime, is not installed" in refuse(runtime=None)
    put_npm(
        tmp_path / "bin",
        f"#!{sys.executable}\nimport sys\nsys.exit('npm error code ENOTFOUND\\nnpm error no network')\n",
        monkeypatch,
    )
    said = refuse(runtime=None)
    assert "@tiny/library@1.2.3" in said and "--runtime FOLDER (code ENOTFOUND no network)" in said


def test_without_the_extra_one_line_says_what_to_install(refuse, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert "pip install 'hf-vanilla-transformer[onnx]'" in refuse()


def test_a_taken_port_is_reported_before_the_work(refused, classifier, runtime, tmp_path):
    arguments = ["--model", classifier, "--output_dir", tmp_path / "page", "--runtime", runtime, "--serve", "--port"]
    with page.page_server(str(tmp_path), port=0) as server:
        assert f"port {server.server_port}" in refused("page", *arguments, server.server_port)
    assert "port must be 0-65535" in refused("page", *arguments, "99999")
    assert not (tmp_path / "page").exists()


def test_serve_serves_until_ctrl_c(succeed, classifier, runtime, tmp_path, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    server = SimpleNamespace(server_port=4321, serve_forever=interrupted)
    monkeypatch.setattr(command, "page_server", lambda folder, port: contextlib.nullcontext(server))
    arguments = ["--model", classifier, "--output_dir", tmp_path / "page", "--runtime", runtime, "--serve"]
    assert "http://127.0.0.1:4321/" in succeed("page", *arguments)


def test_the_server_gives_the_pages_files_alone_and_on_loopback(tmp_path, capsys):
    """With the types that browsers insist on; no list of a folder, no link out of the page."""
    folder = tmp_path / "page"
    (folder / "model").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    (folder / "model" / "index.html").symlink_to(tmp_path / "secret")
    types = {"a.js": "text/javascript", "b.mjs": "text/javascript", "c.wasm": "application/wasm"}
    for name in types:
        (folder / name).write_text("")
    answers = [(f"/{name}", 200, type_) for name, type_ in types.items()]
    hidden = ("/", "/link", "/out/secret", "/model/", "/model", "/../secret", "/none")
    with page.page_server(str(folder), port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert server.server_address[0] == "127.0.0.1"
        for path, status, type_ in [*answers, *((path, 404, "text/html;charset=utf-8") for path in hidden)]:
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
            connection.request("GET", path)
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("Content-Type")) == (status, type_), path
            assert b"secret" not in answer.read()
            connection.close()
        server.shutdown()
    assert capsys.readouterr() == ("", "")


def served_answer(server, request: bytes) -> bytes:
    """What the server sends until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        connection.sendall(request)
        return b"".join(iter(functools.partial(connection.recv, 9999), b""))


@pytest.fixture
def server(tmp_path):
    (tmp_path / "index.html").write_text("the page")
    with page.page_server(str(tmp_path), port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_the_server_answers_who_asks_for_this_machine_alone(server):
    """A site whose name points to this machine for a moment, by DNS, cannot read the page."""
    port = server.server_port
    for host in ("127.0.0.1", "localhost", f"127.0.0.1:{port}", f"LOCALHOST:{port}", "localhost:9000"):
        for method, content in (("GET", b"the page"), ("HEAD", b"")):
            answer = served_answer(server, f"{method} / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert b" 200 " in answer.splitlines()[0] and answer.endswith(b"\r\n\r\n" + content), host
    for host in (
        f"evil.example:{port}",
        "localhost.evil.example",
        "evil-localhost",
        "127.0.0.1.nip.io",
        "",
        "[::1",
        "a@b",
    ):
        answer = served_answer(server, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert b" 421 " in answer.splitlines()[0] and b"the page" not in answer, host
    for request in (b"GET /\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"):  # without a host
        assert b"the page" not in served_answer(server, request)


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_the_server_leaves_a_client_that_is_silent(server, begun, monkeypatch):
    assert 0 < server.RequestHandlerClass.func.timeout <= 60
    monkeypatch.setattr(server.RequestHandlerClass.func, "timeout", 0.2)
    assert served_answer(server, begun) == b""
