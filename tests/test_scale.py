"""scripts/examples/answer_*: they answer as the command does, in the engines that are installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from shared import ROOT

from hf_vanilla_transformer import Classifier


EXAMPLES = ROOT / "scripts" / "examples"
# Of all lengths, blank ones, and odd ones; two files, as engines like them.
TEXTS = [
    ["재미있다 ", "지루했다 ", "", " ", "\n", "ㅋ", "x\u2028y", "😀 "][n % 8] * (n % 7 + 1) + str(n)[: n % 4]
    for n in range(600)
]


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "model_cards").symlink_to(ROOT / "model_cards")
    (tmp_path / "reviews").mkdir()
    for number, part in enumerate((range(0, 400), range(400, 600))):
        table = pa.table({"id": [*part], "text": [TEXTS[one] for one in part]})
        pq.write_table(table, tmp_path / "reviews" / f"part-{number}.parquet")
    return tmp_path


def run(program: str, place: Path, *command: str, **variables: str) -> None:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable, "HF_HUB_OFFLINE": "1"}
    (place / "program").write_text(program, encoding="utf-8")
    words = [*(command or [sys.executable]), "program"]
    result = subprocess.run(words, cwd=place, env=environment | variables, capture_output=True, text=True, timeout=150)
    assert result.returncode == 0, result.stderr[-3000:]


MODULES = {
    "datasets": "datasets",
    "ray": "ray",
    "spark": "pyspark",
    "spark_column": "pyspark",
    "datatrove": "datatrove",
}


@pytest.mark.slow
@pytest.mark.parametrize("example", MODULES)
def test_a_program_of_an_engine_answers_as_the_command_does(example, place):
    module = MODULES[example]
    pytest.importorskip(module, reason=f"{module} is not installed")
    if module == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    (place / "answers").mkdir() if module == "datasets" else None
    run((EXAMPLES / f"answer_{example}.py").read_text(encoding="utf-8"), place)
    files = [file for file in (place / "answers").rglob("*.parquet") if file.stat().st_size]
    rows = {row["text"]: row for row in pyarrow.dataset.dataset(files).to_table().to_pylist()}
    expected = Classifier(ROOT / "model_cards" / "nsmc-small")(TEXTS)
    for text, one in zip(TEXTS, expected, strict=True):
        if text or module != "datatrove":  # which leaves out empty documents
            assert (rows[text]["predicted"] or None) == (one and one["label"])
            if one and example != "spark_column":
                assert rows[text]["probability"] == pytest.approx(one["score"], abs=1e-4)


@pytest.mark.slow
def test_a_job_array_answers_as_one_command_does(succeed, place):
    """Also if a task is started again."""
    reviews = "".join(f"{' '.join(text.split())}\n" for text in TEXTS)
    (place / "reviews.txt").write_text(reviews, encoding="utf-8")
    job = (EXAMPLES / "answer_slurm.sh").read_text(encoding="utf-8")
    (split,) = re.findall(r"^# +(split --number.*)$", job, re.MULTILINE)
    subprocess.run(["bash", "-c", split], cwd=place, check=True)
    assert "".join((place / f"part-{task}").read_text(encoding="utf-8") for task in range(10)) == reviews
    program = job.replace("vanilla-transformer", f"{sys.executable} -m hf_vanilla_transformer")
    for _ in range(2):
        run(program, place, "bash", SLURM_CPUS_PER_TASK="1", SLURM_ARRAY_TASK_ID="7")
    out = succeed("predict", "--model", ROOT / "model_cards" / "nsmc-small", "--file", place / "part-7")
    assert out and (place / "part-7.tsv").read_text(encoding="utf-8") == out
