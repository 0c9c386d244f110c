"""scripts/examples/answer_*: they answer as the command does, in the engines that are installed."""

import importlib.util
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
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "PYSPARK_PYTHON": sys.executable,
        "HF_HUB_OFFLINE": "1",
        **variables,
    }
    (place / "program").write_text(program, encoding="utf-8")
    words = [*(command or [sys.executable]), "program"]
    result = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, timeout=150)
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "module"),
    [
        ("datasets", "datasets"),
        ("ray", "ray"),
        ("spark", "pyspark"),
        ("spark_column", "pyspark"),
        ("datatrove", "datatrove"),
    ],
)
def test_a_program_of_an_engine_answers_as_the_command_does(example, module, place):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    if module == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    program = (EXAMPLES / f"answer_{example}.py").read_text(encoding="utf-8")
    (place / "answers").mkdir() if module == "datasets" else None
    run(program, place)
    files = [file for file in (place / "answers").rglob("*.parquet") if file.stat().st_size]
    rows = pyarrow.dataset.dataset(files).to_table().to_pylist()
    by_text = {row["text"]: row for row in rows}
    expected = Classifier(ROOT / "model_cards" / "nsmc-small")(TEXTS)
    if module != "datatrove":  # which leaves out empty documents
        assert sorted(row["id"] for row in rows) == [*range(600)]
    for text, one in zip(TEXTS, expected, strict=True):
        if text or module != "datatrove":
            assert (by_text[text]["predicted"] or None) == (one and one["label"])
            if one and example != "spark_column":
                assert by_text[text]["probability"] == pytest.approx(one["score"], abs=1e-4)


@pytest.mark.slow
def test_a_job_array_answers_as_one_command_does(succeed, place):
    """Also if a task is started again."""
    texts = [" ".join(text.split()) for text in TEXTS]
    (place / "reviews.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    job = (EXAMPLES / "answer_slurm.sh").read_text(encoding="utf-8")
    (split,) = re.findall(r"^# +(split --number.*)$", job, re.MULTILINE)
    subprocess.run(["bash", "-c", split], cwd=place, check=True)
    command = f"{sys.executable} -m hf_vanilla_transformer"
    program = job.replace("vanilla-transformer", command)
    for task in (0, 7, 7):
        run(program, place, "bash", SLURM_CPUS_PER_TASK="1", SLURM_ARRAY_TASK_ID=str(task))
    model = ROOT / "model_cards" / "nsmc-small"
    for task in (0, 7):
        out = succeed("predict", "--model", model, "--file", place / f"part-{task}")
        assert out and (place / f"part-{task}.tsv").read_text(encoding="utf-8") == out
    parts = [(place / f"part-{task}").read_text(encoding="utf-8") for task in range(10)]
    assert "".join(parts) == (place / "reviews.txt").read_text(encoding="utf-8")
