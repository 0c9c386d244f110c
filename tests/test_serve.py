"""The service of docs/serve.md answers as the command does, and refuses what is too much."""

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import free_port
from shared import ROOT

from hf_vanilla_transformer import Classifier, export


for package in ("onnxruntime", "fastapi", "uvicorn"):
    pytest.importorskip(package, reason=f"{package} is not installed")

PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
TEXTS = ["재미있다", "정말 지루했다 " * 90, "", "\u200b", "a\x00b", "😀", "\u202eabc", "x\u2028y", '"\\', "ㅋ" * 2000]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("service")
    export(str(ROOT / "model_cards" / "nsmc-small"), format="onnx", output_dir=str(folder / "model"))
    return folder


@pytest.fixture(scope="module")
def service(folder):
    """The address of the program in a process of its own."""
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len([line for line in program.splitlines() if line]) <= 25
    (folder / "serve.py").write_text(program, encoding="utf-8")
    port = free_port()
    words = [sys.executable, "-m", "uvicorn", "serve:app", "--port", str(port), "--log-level", "warning"]
    with subprocess.Popen(words, cwd=folder) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(300):
                time.sleep(0.1)
                try:
                    assert json.loads(urllib.request.urlopen(f"{address}/health").read())["label"]
                    break
                except urllib.error.URLError:
                    assert process.poll() is None
            yield f"{address}/classify"
        finally:
            process.terminate()


def ask(address: str, body: bytes) -> tuple[int, bytes]:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.mark.slow
def test_every_answer_is_the_commands(service, folder):
    expected = Classifier(folder / "model")(TEXTS)

    def check(number: int) -> None:
        """Some texts, beginning with another one each time; and what must be refused, in between."""
        place = number % len(TEXTS)
        texts, wanted = TEXTS[place:] + TEXTS[:place], expected[place:] + expected[:place]
        count = 1 + number % len(TEXTS)
        status, body = ask(service, json.dumps(texts[:count]).encode())
        assert status == 200
        for found, one in zip(json.loads(body), wanted[:count], strict=True):
            assert (found is None) == (one is None)
            assert found is None or found["label"] == one["label"]
            assert found is None or found["score"] == pytest.approx(one["score"], abs=1e-4)
        bad = [b"[]", b"{", b"null", b"[1]", b'["\\ud800"]', b"\xff", b"[" * 5000, json.dumps(["a"] * 65).encode()]
        bad += [json.dumps(["a" * 2001]).encode(), b""]
        assert ask(service, bad[number % len(bad)])[0] in (400, 422)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(check, range(200)))
