"""The service of docs/serve.md answers as the command does, and refuses what is too much."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from shared import ROOT

from hf_vanilla_transformer import Classifier, export


for package in ("onnxruntime", "httpx", "fastapi"):
    pytest.importorskip(package, reason=f"{package} is not installed")

from fastapi.testclient import TestClient  # noqa: E402


PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
TEXTS = ["재미있다", "정말 지루했다 " * 90, "", "\u200b", "a\x00b", "😀", "\u202eabc", "x\u2028y", '"\\', "ㅋ" * 2000]
BAD = [b"[]", b"{", b"null", b"[1]", b'["\\ud800"]', b"\xff", b"[" * 5000, b""]
BAD += [json.dumps(texts).encode() for texts in (["a"] * 65, ["a" * 2001])]


@pytest.mark.slow
def test_every_answer_is_the_commands(tmp_path, monkeypatch):
    export(str(ROOT / "model_cards" / "nsmc-small"), format="onnx", output_dir=str(tmp_path / "model"))
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict = {}
    exec(compile(program, "serve.md", "exec"), names)
    expected = Classifier(tmp_path / "model")(TEXTS)
    with TestClient(names["app"]) as service:
        assert service.get("/health").json()["label"]

        def check(number: int) -> None:
            """Some texts, beginning with another one each time; and what must be refused, in between."""
            place, count = number % len(TEXTS), 1 + number % len(TEXTS)
            answer = service.post("/classify", json=[*TEXTS[place:], *TEXTS[:place]][:count])
            for found, one in zip(answer.json(), [*expected[place:], *expected[:place]][:count], strict=True):
                assert (found is None) == (one is None)
                assert found is None or found["label"] == one["label"]
                assert found is None or found["score"] == pytest.approx(one["score"], abs=1e-4)
            assert service.post("/classify", content=BAD[number % len(BAD)]).status_code in (400, 422)

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(check, range(50)))
