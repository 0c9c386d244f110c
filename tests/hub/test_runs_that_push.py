"""Runs that push: the commands, and a user's Trainer."""

import json
import re

import pytest
import yaml
from hub_server import USER, Fault
from huggingface_hub import ModelCard
from shared import RUN_FILES, error_line

from hub.repository import QUICK, REPO, as_stranger, contents, in_repository, logits


pytestmark = [pytest.mark.usefixtures("server"), pytest.mark.slow]  # the client starts in a process of its own
PUSH = ["--push_to_hub", "true", "--hub_model_id", REPO]


def test_a_run_that_pushes_leaves_the_same_repository(server, succeed, environment, tmp_path):
    """At its end alone, and only what is listed, though Trainer pushes whatever lies in the folder."""
    folder = tmp_path / "trained"
    flags = ["--output_dir", folder, *QUICK, "--save_strategy", "steps", "--save_steps", "1"]
    succeed("train-classifier", *flags, "--push_to_hub", "true", "--hub_model_id", f"{USER}/trained")
    assert in_repository(server, f"{USER}/trained") == contents(folder)
    assert in_repository(server, f"{USER}/trained").keys() == RUN_FILES
    assert server.titles(f"{USER}/trained")[0] == "Upload the folder" and len(server.titles(f"{USER}/trained")) == 2
    card = server.files(f"{USER}/trained")["README.md"].decode()
    assert f'model="{USER}/trained"' in card and "generated_from_trainer" not in card
    # The recipe makes the run again, not the push.
    assert not re.search("hub", (folder / "recipe.yaml").read_text())


def test_a_run_keeps_its_record_if_the_push_fails(server, run, succeed, tmp_path):
    folder = tmp_path / "trained"
    server.faults.append(Fault("POST", "/commit/", 500))
    status, out, err = run("train-classifier", "--output_dir", folder, *QUICK, *PUSH)
    assert status == 2 and "test accuracy" in out
    assert "500" in error_line("train-classifier", err)
    server.faults.clear()
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert in_repository(server) == contents(folder)


# What people do without our commands.
OWN = """
import sys
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments
from hf_vanilla_transformer.hub import RecordCallback, push, upload_run
from hf_vanilla_transformer.metrics import compute_metrics
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
push(model, "kim/pushed")
data = [{"input_ids": [5, 6, 7], "labels": i % 2} for i in range(4)]
for name, settings in {"mine": {"eval_strategy": "epoch", "logging_steps": 1}, "plain": {}}.items():
    arguments = TrainingArguments(
        f"{sys.argv[2]}/{name}", push_to_hub=True, hub_model_id=f"kim/{name}", max_steps=2, report_to=[], use_cpu=True,
        learning_rate=0.01, per_device_train_batch_size=4, save_strategy="epoch", **settings
    )
    trainer = Trainer(
        model, arguments, train_dataset=data, eval_dataset=data, processing_class=tokenizer,
        compute_metrics=compute_metrics, callbacks=[RecordCallback("reviews.csv")],
    )
    trainer.train()
    upload_run(trainer) if name == "mine" else trainer.push_to_hub()
"""


def test_without_our_commands_the_repository_is_the_same(server, succeed, folder, environment, tmp_path):
    """`push`; a user's Trainer with `upload_run`, and with Trainer's own push."""
    (tmp_path / "own.py").write_text(OWN)
    succeed(tmp_path / "own.py", folder, tmp_path)
    assert in_repository(server, "kim/pushed") == contents(folder)
    assert 'model="kim/pushed"' in server.files("kim/pushed")["README.md"].decode()

    assert in_repository(server, "kim/mine").keys() == RUN_FILES
    metrics = json.loads(server.files("kim/mine")["metrics.json"])
    assert [row["step"] for row in metrics["epochs"]] == [1, 2]
    assert metrics["validation"]["accuracy"] == metrics["epochs"][-1]["eval_accuracy"]
    card = ModelCard(server.files("kim/mine")["README.md"].decode())
    assert f"| validation | Loss | {metrics['validation']['loss']:.4f} |" in card.text and "reviews.csv" in card.text
    assert 'model="kim/mine"' in card.text and "It began as `" in card.text
    recipe = yaml.safe_load(server.files("kim/mine")["recipe.yaml"])
    assert recipe.pop("save_strategy") == recipe.pop("eval_strategy") == "epoch" and recipe.pop("do_eval")
    assert recipe == {"learning_rate": 0.01, "max_steps": 2, "per_device_train_batch_size": 4, "logging_steps": 1}
    # In the place of Trainer's draft comes the card, and what only Trainer needs goes.
    assert "generated_from_trainer" in server.files("kim/plain")["README.md"].decode()
    assert "training_args.bin" in in_repository(server, "kim/plain")
    succeed("push-to-hub", tmp_path / "plain", "--repo_id", "kim/plain")
    assert in_repository(server, "kim/plain") == contents(tmp_path / "plain")
    program = "print(json.dumps([answer(*load(name)) for name in sys.argv[2:]]))"
    repositories = {"kim/pushed": folder, "kim/mine": tmp_path / "mine"}
    answers = json.loads(as_stranger(program, environment, tmp_path, *repositories))
    assert answers == [logits(place) for place in repositories.values()] and answers[0] != answers[1]
