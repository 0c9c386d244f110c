"""Runs that push while they train: a user's Trainer, the commands, several processes."""

import json
import re
import shutil

import numpy as np
import pytest
import yaml
from hub_server import USER, Fault
from huggingface_hub import ModelCard
from processes import run_program
from shared import RUN_FILES, error_line, read_json

from hub.repository import ONLY_LOOPBACK, QUICK, REPO, as_stranger, contents, in_repository, logits


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

    # Its checkpoints carry the code, and so does what comes of going on from one.
    resumed = tmp_path / "resumed"
    resumed.mkdir()
    shutil.copytree(folder / "checkpoint-1", resumed / "checkpoint-1")
    succeed("train-classifier", "--output_dir", resumed, *QUICK, "--resume_from_checkpoint", "auto")
    places = [f"{USER}/trained", folder, folder / "checkpoint-2", folder / "checkpoint-1", resumed]
    program = "print(json.dumps([answer(*load(name)) for name in sys.argv[2:]]))"
    answers = json.loads(as_stranger(program, environment, tmp_path, *places))
    assert answers == [logits(folder), *map(logits, places[1:])]
    assert answers[0] == answers[1] != answers[3]
    # The run's weights are those of its last checkpoint, but for the head's temperature.
    temperature = read_json(folder / "metrics.json")["calibration"]["temperature"]
    assert np.array(answers[2]) / temperature == pytest.approx(np.array(answers[1]), abs=1e-5)


def test_a_run_is_pushed_to_the_branch_that_it_names(server, succeed, tmp_path):
    folder = tmp_path / "trained"
    succeed("train-classifier", "--output_dir", folder, *QUICK, *PUSH, "--hub_revision", "v1")
    assert in_repository(server, revision="v1") == contents(folder)
    assert in_repository(server, revision="main") == {}


def test_a_run_keeps_its_record_if_the_push_fails(server, run, succeed, tmp_path):
    folder = tmp_path / "trained"
    server.faults.append(Fault("POST", "/commit/", 500))
    status, out, err = run("train-classifier", "--output_dir", folder, *QUICK, *PUSH)
    assert status == 2 and "test accuracy" in out
    assert "500" in error_line("train-classifier", err)
    server.faults.clear()
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert in_repository(server) == contents(folder)


def test_a_run_with_a_wrong_token_ends_before_it_trains(refused, tmp_path):
    flags = ["--output_dir", tmp_path / "run", *QUICK, *PUSH]
    assert "401" in refused("train-classifier", *flags, token="hf_" + "x" * 34)
    assert not any((tmp_path / "run").iterdir())


# What people do without our commands.
OWN = """
import sys
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments
from hf_vanilla_transformer.hub import RecordCallback, push, upload_run
from hf_vanilla_transformer.metrics import compute_metrics
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model.push_to_hub("kim/bare")
push(model, "kim/pushed")
data = [{"input_ids": [5, 6, 7], "labels": i % 2} for i in range(4)]
for trainer_class, name, settings in (
    (Trainer, "checked", {"eval_strategy": "epoch", "logging_steps": 1}),
    (Trainer, "plain", {}),
    (Trainer, "uploaded", {}),
):
    arguments = TrainingArguments(
        f"{sys.argv[2]}/{name}", push_to_hub=True, hub_model_id=f"kim/{name}", max_steps=2, report_to=[], use_cpu=True,
        learning_rate=0.01, per_device_train_batch_size=4, save_strategy="epoch", **settings
    )
    trainer = trainer_class(
        model, arguments, train_dataset=data, eval_dataset=data, processing_class=tokenizer,
        compute_metrics=compute_metrics, callbacks=[RecordCallback("reviews.csv")],
    )
    trainer.train()
    if name == "uploaded":
        trainer.evaluate()
    if name == "plain":
        trainer.push_to_hub()
    else:
        upload_run(trainer)
push(model, "kim/later")
"""


def test_without_our_commands_the_repository_is_the_same(server, succeed, folder, environment, tmp_path):
    """`push`, after `model.push_to_hub`, which sends the model alone; a user's Trainer with and without our class."""
    (tmp_path / "own.py").write_text(OWN)
    succeed(tmp_path / "own.py", folder, tmp_path)
    code = {"configuration_vanilla_transformer.py", "modeling_vanilla_transformer.py"}
    assert in_repository(server, "kim/bare").keys() == {"README.md", "config.json", "model.safetensors"} | code
    assert in_repository(server, "kim/pushed") == contents(folder)
    assert 'model="kim/pushed"' in server.files("kim/pushed")["README.md"].decode()

    assert in_repository(server, "kim/checked").keys() == RUN_FILES
    assert in_repository(server, "kim/plain").keys() == RUN_FILES | {"training_args.bin"}
    metrics = json.loads(server.files("kim/checked")["metrics.json"])
    assert [row["step"] for row in metrics["epochs"]] == [1, 2]
    assert metrics["validation"]["accuracy"] == metrics["epochs"][-1]["eval_accuracy"]
    card = ModelCard(server.files("kim/checked")["README.md"].decode())
    assert f"| validation | Loss | {metrics['validation']['loss']:.4f} |" in card.text and "reviews.csv" in card.text
    assert 'model="kim/checked"' in card.text and "It began as `" in card.text
    results = {(r.dataset_split, r.metric_type): r.metric_value for r in card.data.eval_results}
    assert results["validation", "accuracy"] == round(metrics["validation"]["accuracy"], 4)
    recipe = yaml.safe_load(server.files("kim/checked")["recipe.yaml"])
    assert recipe.pop("save_strategy") == recipe.pop("eval_strategy") == "epoch" and recipe.pop("do_eval")
    assert recipe == {"learning_rate": 0.01, "max_steps": 2, "per_device_train_batch_size": 4, "logging_steps": 1}
    # In the place of Trainer's draft comes the card.
    assert "generated_from_trainer" in server.files("kim/plain")["README.md"].decode()
    succeed("push-to-hub", tmp_path / "plain", "--repo_id", "kim/plain")
    assert in_repository(server, "kim/plain") == contents(tmp_path / "plain")
    assert "| train | Training loss |" in server.files("kim/plain")["README.md"].decode()
    uploaded = in_repository(server, "kim/uploaded")
    assert uploaded.keys() == RUN_FILES
    assert "| validation | Accuracy |" in uploaded["README.md"].decode()
    # The trained model's folder is now the new run's; `push` changes nothing but the name on the card.
    later = in_repository(server, "kim/later")
    assert "own_trainer" in later["run.json"].decode()
    assert later == contents(tmp_path / "uploaded")
    later["README.md"] = later["README.md"].replace(b"kim/later", b"kim/uploaded")
    assert later == uploaded
    program = "print(json.dumps([answer(*load(name)) for name in sys.argv[2:]]))"
    repositories = {"kim/pushed": folder, "kim/checked": tmp_path / "checked", "kim/plain": tmp_path / "plain"}
    answers = json.loads(as_stranger(program, environment, tmp_path, *repositories))
    assert answers == [logits(place) for place in repositories.values()]
    assert answers[0] != answers[1] != answers[2]


def test_of_two_processes_one_writes_and_pushes(server, environment, tmp_path):
    """As `accelerate launch` starts them: `--multi_gpu` starts several, and they use CPUs where there is no GPU."""
    (tmp_path / "sitecustomize.py").write_text(ONLY_LOOPBACK)
    environment = {**environment, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    words = ["--multi_gpu", "--num_processes", "2", "--main_process_port", "0", "--module", "hf_vanilla_transformer"]
    words += ["train-classifier", "--output_dir", tmp_path / "run", *QUICK, "--use_cpu", "true", *PUSH]
    launch = "from accelerate.commands.launch import main; main()"
    result = run_program(launch, *words, environment=environment)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("test accuracy") == 1
    assert json.loads((tmp_path / "run/run.json").read_text())["processes"] == 2
    assert in_repository(server) == contents(tmp_path / "run")
    assert len(server.titles(REPO)) == 2
    assert server.requests.count(("POST", "/api/repos/create")) == 2  # Trainer's and ours
