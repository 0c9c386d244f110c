"""Ask the page's JavaScript in Node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest


NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


def run_node(program: Path, *arguments) -> str:
    words = [NODE, program, *arguments]
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, encoding="utf-8").stdout


def ask_page(jobs: list[dict[str, Any]], scratch: Path) -> list[dict[str, Any]]:
    """Run tests/page/run.mjs. In its answers, tensors are arrays."""
    file, numbers = scratch / "jobs.json", scratch / "numbers.bin"
    file.write_text(json.dumps(jobs))
    answers = run_node(Path(__file__).with_name("run.mjs"), file, numbers)
    values = np.fromfile(numbers, dtype=np.float32)

    def with_numbers(found: dict[str, Any]) -> Any:
        if found.keys() == {"length", "begin"}:
            return values[found["begin"] :][: found["length"]]
        if "data" in found and "shape" in found:
            found["data"] = found["data"].reshape(found["shape"])
        return found

    return json.loads(answers, object_hook=with_numbers)
