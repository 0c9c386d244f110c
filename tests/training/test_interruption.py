"""Runs that are killed, find no room on the disk, or diverge: what is left, and that a resumed run ends the same."""

import shutil
import signal
from functools import partial
from pathlib import Path

import pytest
import transformers
from datasets import Dataset
from processes import run_program
from shared import QUIET, TINY, read_json, tiny_config, train_translator
from transformers import DataCollatorWithPadding, TrainingArguments

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training.trainer import CheckedTrainer


# 11 steps of two batches, 4 an epoch; the last is in the middle of one. Nothing falls together with the logging but by
# chance, and the epochs end at steps that are saved. Dropout is on.
CLASSIFIER = [
    *("train-classifier", "--data", "sample", "--vocab_size", "1500", "--max_length", "32", *TINY, *QUIET),
    *("--per_device_train_batch_size", "80", "--gradient_accumulation_steps", "2", "--max_steps", "11"),
    *("--per_device_eval_batch_size", "15", "--save_steps", "2", "--save_total_limit", "3"),
    *("--eval_strategy", "epoch", "--logging_steps", "5", "--learning_rate", "1e-3", "--use_cpu", "true"),
]
# A command's run that comes to a bad end at one point.
DISASTER = """
import os, resource, signal, sys
import transformers
from hf_vanilla_transformer.__main__ import main

point, *argv = sys.argv[1:]

# The call of one of Trainer's methods before which it happens.
name, number = {
    "a step": ("training_step", 14),  # the 7th step's second batch
    "an evaluation": ("prediction_step", 4),  # the second evaluation's second batch
    "the measuring": ("predict", 2),
    "a full disk": ("training_step", 14),
}.get(point, ("train", 0))
method, calls = getattr(transformers.Trainer, name), []

def call(*args, **kwargs):
    calls.append(name)
    if len(calls) == number and point == "a full disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
    elif len(calls) == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return method(*args, **kwargs)

setattr(transformers.Trainer, name, call)
main(argv)
"""


def run_into(point: str, *command) -> int:
    """Run a command up to one of the points that `DISASTER` names; returns its exit status."""
    return run_program(DISASTER, point, *command).returncode


def checkpoints(folder: Path) -> list[str]:
    return sorted((path.name for path in folder.glob("checkpoint-*")), key=lambda name: int(name.split("-")[1]))


def without_times(record):
    """Without what no two runs have in common: seconds, and folders."""
    if isinstance(record, dict):
        return {
            name: without_times(value)
            for name, value in record.items()
            if not name.endswith(("runtime", "per_second", "seconds", "best_model_checkpoint"))
        }
    return [without_times(value) for value in record] if isinstance(record, list) else record


def assert_same_end(resumed: Path, whole: Path) -> None:
    """Weights, the states of optimizer, scheduler and random numbers, the log and the record: bit for bit."""
    assert checkpoints(resumed) == checkpoints(whole)
    for checkpoint in checkpoints(whole):
        for file in ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth"):
            assert (resumed / checkpoint / file).read_bytes() == (whole / checkpoint / file).read_bytes(), file
    assert (resumed / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    for file in ("metrics.json", f"{checkpoints(whole)[-1]}/trainer_state.json"):
        records = [without_times(read_json(folder / file)) for folder in (resumed, whole)]
        assert records[0] == records[1]
    assert not {path.name for path in whole.iterdir()} ^ {path.name for path in resumed.iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run that nothing happened to."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert run_into("no disaster", *CLASSIFIER, "--output_dir", folder) == 0
    assert checkpoints(folder) == ["checkpoint-8", "checkpoint-10", "checkpoint-11"]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "left", "last_whole"),
    [
        ("a step", ["checkpoint-2", "checkpoint-4", "checkpoint-6"], "checkpoint-6"),
        # That of the epoch's last step, which comes before the step's checkpoint.
        ("an evaluation", ["checkpoint-2", "checkpoint-4", "checkpoint-6"], "checkpoint-6"),
        # There is nothing more to train.
        ("the measuring", ["checkpoint-8", "checkpoint-10", "checkpoint-11"], "checkpoint-11"),
        # The limit on a file's length lets the weights pass, and not the optimizer's state.
        ("a full disk", ["checkpoint-2", "checkpoint-4", "checkpoint-6", "checkpoint-8"], "checkpoint-6"),
    ],
)
def test_a_killed_run_goes_on_to_the_same_end(succeed, whole, tmp_path, caplog, point, left, last_whole):
    command = [*CLASSIFIER, "--output_dir", tmp_path / "run"]
    assert run_into(point, *command) == (1 if point == "a full disk" else -signal.SIGKILL)
    assert checkpoints(tmp_path / "run") == left
    if point == "a step":  # in a process that has imported nothing of the package
        assert run_into("no disaster", *command, "--resume_from_checkpoint") == 0
    else:
        succeed(*command, "--resume_from_checkpoint")
    assert read_json(tmp_path / "run" / "run.json")["resumed_from"] == last_whole
    skipped = [line for line in caplog.messages if "not a whole checkpoint" in line]
    damage = "not a whole checkpoint (optimizer.pt is broken off), skipped"
    assert skipped == [f"{tmp_path}/run/{left[-1]}: {damage}"] * (last_whole != left[-1])
    assert_same_end(tmp_path / "run", whole)


@pytest.mark.slow
def test_a_killed_run_with_a_token_budget_goes_on_to_the_same_end(succeed, corpus, tmp_path):
    settings = ["--max_tokens", "64", "--max_steps", "20", "--save_steps", "4", "--average_last", "2"]
    settings += ["--eval_steps", "4", "--label_smoothing_factor", "0.1", "--logging_steps", "3", "--use_cpu", "true"]
    train_translator(succeed, corpus, tmp_path / "whole", *settings)
    assert train_translator(partial(run_into, "a step"), corpus, tmp_path / "run", *settings) == -signal.SIGKILL
    assert checkpoints(tmp_path / "run")[-1] == "checkpoint-12"
    train_translator(succeed, corpus, tmp_path / "run", *settings, "--resume_from_checkpoint")
    assert_same_end(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "epoch", "steps"),
    [((), 2, [4, 8, 12]), ((), 3, [4, 8, 12]), (("--eval_on_start", "true"), 1, [0, 4, 8, 12])],
)
def test_a_resumed_run_stops_as_early(succeed, tmp_path, flags, epoch, steps):
    """The second epoch without a better model than the first one's is the last, interrupted or not."""
    arguments = [*CLASSIFIER, "--learning_rate", "0", "--max_steps", "36", "--early_stopping_patience", "2"]
    arguments += ["--save_strategy", "epoch", "--load_best_model_at_end", "true", *flags]
    succeed(*arguments, "--output_dir", tmp_path / "whole")
    for number in range(1, epoch + 1):
        name = f"checkpoint-{4 * number}"
        shutil.copytree(tmp_path / "whole" / name, tmp_path / "run" / name)
    succeed(*arguments, "--output_dir", tmp_path / "run", "--resume_from_checkpoint")
    assert [entry["step"] for entry in read_json(tmp_path / "run" / "metrics.json")["epochs"]] == steps
    assert_same_end(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_the_run_at_its_step(refused, corpus, monkeypatch, tmp_path, value):
    """Of a translator; the trainers of all commands are CheckedTrainer or classes of it."""
    compute_loss, calls = transformers.Trainer.compute_loss, []

    def compute(self, model, *args, **kwargs):
        calls.extend([value] * model.training)
        # The second half of the fourth step's batch.
        return compute_loss(self, model, *args, **kwargs) * (value if model.training and len(calls) == 8 else 1)

    monkeypatch.setattr(transformers.Trainer, "compute_loss", compute)
    settings = ["--gradient_accumulation_steps", "2", "--logging_steps", "9", "--eval_strategy", "no"]
    settings += ["--save_steps", "1", "--max_steps", "6", "--use_cpu", "true"]
    line = train_translator(refused, corpus, tmp_path / "run", *settings)
    assert line.endswith(f"error: the loss of step 4 is {value}")
    assert checkpoints(tmp_path / "run") == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]


def test_weights_that_are_no_numbers_are_not_saved(tmp_path):
    """The loss is finite, its gradient is not."""
    model = VanillaTransformerForSequenceClassification(tiny_config())
    model.classifier.weight.register_hook(lambda gradient: gradient * float("inf"))
    trainer = CheckedTrainer(
        model,
        TrainingArguments(str(tmp_path), max_steps=3, save_steps=1, use_cpu=True, report_to="none", disable_tqdm=True),
        data_collator=DataCollatorWithPadding(train_tokenizer(["가 나 다 라"], vocab_size=20)),
        train_dataset=Dataset.from_dict({"input_ids": [[7, 8, 9]] * 8, "labels": [0, 1] * 4}),
    )
    with pytest.raises(FloatingPointError, match="after step 1"):
        trainer.train()
    assert not any(tmp_path.iterdir())
