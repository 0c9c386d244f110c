"""The record of a run: what made it, what was measured."""

import subprocess

import pytest
from datasets import Dataset, DatasetDict
from shared import read_json, tiny_config

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.hub import record
from hf_vanilla_transformer.hub.curves import plot_training_curves
from hf_vanilla_transformer.hub.record import epochs, save_json, save_record
from hf_vanilla_transformer.settings.recipes import without_folders


def test_a_record_names_the_parent_and_leaves_out_what_there_is_none_of(tmp_path):
    model = VanillaTransformerForConditionalGeneration(tiny_config())
    local, of_hub = {"parent_model": {"name": tmp_path.name}}, {"base_model": "kim/x"}
    for base, parent in ((str(tmp_path), local), ("kim/x", of_hub)):
        run = {"seed": 0, "data": {"source": "a.csv"}, "resumed_from": None}
        save_record(str(tmp_path), model, metrics={}, settings={}, run=run, base_model=base)
        written = read_json(tmp_path / "run.json")
        assert written["seed"] == 0 and "resumed_from" not in written
        assert {name: one for name, one in written.items() if name in ("parent_model", "base_model")} == parent


def test_a_record_is_read_as_it_was_written(tmp_path):
    """`yaml.safe_dump` writes 1e-5 as a number; JSON is not read as YAML, which takes it for a text."""
    save_json(tmp_path / "run.json", {"rate": 1e-5})
    (tmp_path / "recipe.yaml").write_text(record.recipe_text({"rate": 1e-5}))
    assert record.read_file(tmp_path / "run.json") == record.read_file(tmp_path / "recipe.yaml") == {"rate": 1e-5}
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(ValueError, match="run.json: holds no mapping"):
        record.read_file(tmp_path / "run.json")


@pytest.mark.parametrize(
    ("path", "last"),
    [("/home/kim/a b.csv", "a b.csv"), ("C:\\kim\\x", "x"), ("~/runs/", "runs"), ("kim/reviews", "kim/reviews")],
)
def test_a_record_names_no_folder_of_this_machine(path, last):
    assert without_folders({"data": [{path: "sha"}], "source": path}) == {"data": [{last: "sha"}], "source": last}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"text": ["x" * 81, "가", "나", "다"], "label": [0, 1, 1, 0]}, ["가", "다"]),
        ({"source": ["a", "b"], "target": ["c", "d"]}, ["a"]),
        ({"text": ["a", "b", "c", "d"], "label": [0.5, 1.0, 1.5, 2.0]}, ["a", "b", "c"]),
        ({"text": ["x" * 81, "y" * 81], "label": [1, 0]}, None),
    ],
)
def test_a_records_examples_are_short_texts_of_the_validation_split(rows, expected):
    split = Dataset.from_dict(rows)
    data = record.data_record("mine.csv", DatasetDict({"train": split, "validation": split}))
    assert data["validation"].get("examples") == expected and "examples" not in data["train"]


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


def test_an_evaluations_training_loss_is_the_mean_over_its_steps():
    """The last logging before an evaluation may cover fewer steps than the others."""
    log = [
        {"loss": 4.0, "epoch": 0.5, "step": 10},
        {"loss": 1.0, "epoch": 0.6, "step": 12},
        {"eval_loss": 3.0, "epoch": 0.6, "step": 12},
        {"loss": 2.0, "epoch": 0.8, "step": 16},
        {"eval_loss": 2.5, "epoch": 0.8, "step": 16},
    ]
    assert [row["train_loss"] for row in epochs(log)] == [(10 * 4.0 + 2 * 1.0) / 12, 2.0]


def test_a_record_needs_no_extra(monkeypatch):
    """An export records its versions without `datasets` and `accelerate`, which come with [train]."""
    monkeypatch.setattr(record, "PACKAGES", ("torch", "no-such-package"))
    assert record.describe_environment()["versions"].keys() == {"python", "hf-vanilla-transformer", "torch"}


def test_the_curves_show_what_was_measured(tmp_path):
    entries = [{"epoch": e, "train_loss": 1.0, "eval_loss": 1.1, "eval_bleu": 10.0 * e} for e in (1, 2)]
    loss, bleu = plot_training_curves(entries, tmp_path / "a.png").axes
    assert len(loss.lines) == 2 and bleu.lines[0].get_ydata().tolist() == [10.0, 20.0]
