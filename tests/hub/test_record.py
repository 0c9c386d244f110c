"""The record of a run: what made it, what was measured."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from datasets import Dataset, DatasetDict
from shared import tiny_config
from transformers import TrainerState, TrainingArguments

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.hub import record
from hf_vanilla_transformer.hub.record import epochs, save_record
from hf_vanilla_transformer.recipes import without_folders


def save_record_of_a_run_from(base: Path) -> Path:
    """Save the record of a run that began as the model in a folder; returns its file."""
    model = VanillaTransformerForConditionalGeneration(tiny_config())
    (base / "new").mkdir()
    settings = {"metrics": {}, "settings": {}, "seed": 0, "precision": "float32", "data": {}, "resumed_from": None}
    save_record(str(base / "new"), model, base_model=str(base), **settings)
    return base / "new" / "run.json"


def test_a_record_takes_in_that_of_the_model_it_began_as(tmp_path):
    before = {"recipe": {"rate": 1e-5}, "run": {"config": {"layer_norm_eps": 1e-5}}, "metrics": {"loss": 5e-5}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(before["recipe"]))
    (tmp_path / "run.json").write_text(json.dumps(before["run"]))
    (tmp_path / "metrics.json").write_text(json.dumps({**before["metrics"], "epochs": []}))
    assert json.loads(save_record_of_a_run_from(tmp_path).read_text())["began_as"] == before


@pytest.mark.parametrize(
    ("file", "content"),
    [
        *(("recipe.yaml", text) for text in ("model: 2020-01-01", "x: !!binary aGVsbG8=", "x: !!set {a}", "[a]: b")),
        ("recipe.yaml", "a: " + "[" * 150 + "]" * 150),
        *(
            ("run.json", text)
            for text in ('{"device": "x\\ud800y"}', '{"\\udfff": 1}', '{"a":' * 150 + "1" + "}" * 150)
        ),
        *(("run.json", text) for text in ("[]", "{")),
        ("metrics.json", '{"training_seconds": 1' + "0" * 400 + "}"),
    ],
)
def test_a_record_that_is_no_plain_json_is_none(tmp_path, file, content):
    """Of the model that a run began as: what was trained has its own record, which can be read."""
    for name in ("recipe.yaml", "run.json", "metrics.json"):
        (tmp_path / name).write_text(content if name == file else "{}")
    assert "began_as" not in record.read_file(save_record_of_a_run_from(tmp_path))


@pytest.mark.parametrize(
    ("path", "last"),
    [
        *(
            ("/home/kim/my reviews.csv", "my reviews.csv"),
            ("C:\\Users\\kim\\x", "x"),
            ("../kim/old.txt.gz", "old.txt.gz"),
        ),
        *(("~/runs/", "runs"), ("runs/mine", "runs/mine"), ("kim/reviews", "kim/reviews"), ("/", "/")),
    ],
)
def test_a_record_names_no_folder_of_this_machine(path, last):
    assert without_folders({"data": [{path: "sha"}], "source": path}) == {"data": [{last: "sha"}], "source": last}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"text": ["x" * 81, "가", "나", "다"], "label": [0, 1, 1, 0]}, ["가", "다"]),
        ({"source": ["a", "b"], "target": ["c", "d"]}, ["a"]),
        ({"text": ["a", "b", "c", "d"], "label": [0.5, 1.0, 1.5, 2.0]}, ["a", "b", "c"]),
        ({"input_ids": [[1]]}, None),
        ({"text": [None, None], "label": [1, 0]}, None),
    ],
)
def test_a_records_examples_are_short_texts_of_the_validation_split(rows, expected):
    split = Dataset.from_dict(rows)
    data = record.data_record("mine.csv", DatasetDict({"train": split, "validation": split}))
    assert data["validation"].get("examples") == expected and "examples" not in data["train"]
    assert record.data_record("mine.csv", DatasetDict()) == {"source": "mine.csv"}


def test_the_commit_is_of_this_code_not_of_a_project_that_uses_it(tmp_path, monkeypatch):
    def git(*arguments) -> str:
        command = ["git", "-c", "user.name=kim", "-c", "user.email=kim@example.org", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    for file in ("hub/record.py", "training/trainer.py", "__init__.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    monkeypatch.setattr(record, "__file__", str(tmp_path / "hub/record.py"))
    git("init")
    git("commit", "--allow-empty", "-m", "theirs")
    assert record.describe_environment()["git_commit"] is None
    git("add", ".")
    git("commit", "-m", "ours")
    assert record.describe_environment()["git_commit"] == git("rev-parse", "HEAD") != ""
    (tmp_path / "training/trainer.py").write_text("changed = True\n")
    assert record.describe_environment()["git_commit"] == f"{git('rev-parse', 'HEAD')} with local changes"


def test_what_is_evaluated_after_the_training_is_not_taken_for_validation(tmp_path):
    """It may be the test split; only where the model was not evaluated in training it is all there is."""
    log = [
        {"epoch": 1.0, "step": 3, "loss": 2.5},
        {"epoch": 1.0, "step": 3, "eval_loss": 2.25},
        {"epoch": 1.0, "step": 3, "train_runtime": 60.0, "train_loss": 2.5},
        {"epoch": 1.0, "step": 3, "eval_loss": 1.5},
    ]
    arguments = TrainingArguments(str(tmp_path), use_cpu=True)
    for entries, loss, rows in ((log, 2.25, 1), (log[:1] + log[2:], 1.5, 1)):
        metrics = record.metrics_of_log(arguments, TrainerState(global_step=3, log_history=entries))
        assert metrics["validation"] == {"loss": loss} and len(metrics["epochs"]) == rows


def test_an_evaluations_training_loss_is_the_mean_over_its_steps():
    """The last logging before an evaluation may be of fewer steps than the others."""
    log = [
        {"loss": 4.0, "epoch": 0.5, "step": 10},
        {"loss": 1.0, "epoch": 0.6, "step": 12},
        {"eval_loss": 3.0, "epoch": 0.6, "step": 12},
        {"loss": 2.0, "epoch": 0.8, "step": 16},
        {"eval_loss": 2.5, "epoch": 0.8, "step": 16},
    ]
    assert [row["train_loss"] for row in epochs(log)] == [(10 * 4.0 + 2 * 1.0) / 12, 2.0]
