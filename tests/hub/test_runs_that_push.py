"""Runs that push: the commands, and a user's Trainer."""

import json
import re

import pytest
import yaml
from huggingface_hub import ModelCard
from shared import RUN_FILES, error_line
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

from hf_vanilla_transformer.evaluation.metrics import compute_metrics
from hf_vanilla_transformer.hub import RecordCallback, upload
from hub.repository import QUICK, REPO, contents


pytestmark = pytest.mark.slow  # they train and send for seconds
PUSH = ["--push_to_hub", "true", "--hub_model_id", REPO]


def test_a_run_that_pushes_leaves_the_same_repository(hub, succeed, tmp_path):
    """In one commit at its end, of the listed files; Trainer itself would push all that lies in the folder."""
    folder = tmp_path / "trained"
    flags = ["--output_dir", folder, *QUICK, "--save_strategy", "steps", "--save_steps", "1"]
    succeed("train-classifier", *flags, *PUSH)
    pushed = hub.branches[REPO, "main"]
    assert pushed == contents(folder) and pushed.keys() == RUN_FILES and hub.titles == ["Upload the folder"]
    card = pushed["README.md"].decode()
    assert f'model="{REPO}"' in card and "generated_from_trainer" not in card
    # The recipe makes the run again, not the push.
    assert not re.search("hub", (folder / "recipe.yaml").read_text())


def test_a_run_keeps_its_record_if_the_push_fails(hub, run, succeed, tmp_path):
    folder = tmp_path / "trained"
    hub.refuses = True
    status, out, err = run("train-classifier", "--output_dir", folder, *QUICK, *PUSH)
    assert status == 2 and "test accuracy" in out
    assert "500" in error_line("train-classifier", err)
    hub.refuses = False
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert hub.branches[REPO, "main"] == contents(folder)


def test_an_own_trainers_run_is_a_repository(hub, folder, tmp_path):
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    data = [{"input_ids": [5, 6, 7], "labels": number % 2} for number in range(4)]
    settings = {"learning_rate": 0.01, "max_steps": 2, "per_device_train_batch_size": 4, "logging_steps": 1}
    strategies = {"save_strategy": "epoch", "eval_strategy": "epoch"}
    trainer = Trainer(
        model,
        TrainingArguments(str(tmp_path / "mine"), use_cpu=True, report_to=[], **settings, **strategies),
        train_dataset=data,
        eval_dataset=data,
        processing_class=AutoTokenizer.from_pretrained(folder),
        compute_metrics=compute_metrics,
        callbacks=[RecordCallback("reviews.csv")],
    )
    trainer.train()
    upload(tmp_path / "mine", "kim/mine")
    pushed = hub.branches["kim/mine", "main"]
    assert pushed.keys() == RUN_FILES
    metrics = json.loads(pushed["metrics.json"])
    assert [row["step"] for row in metrics["epochs"]] == [1, 2]
    assert metrics["validation"]["accuracy"] == metrics["epochs"][-1]["eval_accuracy"]
    card = ModelCard(pushed["README.md"].decode())
    assert f"| validation | Loss | {metrics['validation']['loss']:.4f} |" in card.text and "reviews.csv" in card.text
    assert 'model="kim/mine"' in card.text and "Its parent is the model in `" in card.text
    recipe = yaml.safe_load(pushed["recipe.yaml"])
    assert recipe == {**settings, **strategies, "do_eval": True}
