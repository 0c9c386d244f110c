"""Runs that are killed, find no room on the disk, or diverge: what is left, and that a resumed run ends the same."""

import contextlib
import json
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import transformers
from datasets import Dataset
from processes import run_program
from shared import QUIET, TINY, TINY_TRANSLATOR, error_line, read_json, tiny_config, train_translator
from transformers import DataCollatorWithPadding, TrainingArguments

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.commands.interruption import one_line_if_interrupted
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training.trainer import CheckedTrainer


# 11 steps of two batches, 4 an epoch; the last is in the middle of one. Nothing falls together with the logging but by
# chance, and the epochs end at steps that are saved. Dropout is on.
CLASSIFIER = ["train-classifier", "--data", "sample", "--vocab_size", "1500", "--max_length", "32", *TINY, *QUIET]
CLASSIFIER += ["--per_device_train_batch_size", "80", "--gradient_accumulation_steps", "2", "--max_steps", "11"]
CLASSIFIER += ["--per_device_eval_batch_size", "15", "--save_steps", "2", "--save_total_limit", "3"]
CLASSIFIER += ["--eval_strategy", "epoch", "--logging_steps", "5", "--learning_rate", "1e-3", "--use_cpu", "true"]
# A command's run that gets a signal, or finds the disk full, before some calls of Trainer's methods.
DISASTER = """
import json, os, resource, signal, subprocess, sys, time
import transformers
from hf_vanilla_transformer.__main__ import main

os.setpgrp()  # all processes of the run get the signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
disaster, calls, *argv = sys.argv[1:]

def disturbed(name, method, numbers):
    made = []

    def call(*args, **kwargs):
        made.append(name)
        if len(made) in numbers:
            if disaster == "full disk":
                resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
            else:
                # Not by itself: processes that load data take a signal of their parent's for the end of the work.
                subprocess.run(["sh", "-c", f"kill -{disaster} 0"])
                time.sleep(0.3)  # they end meanwhile
        return method(*args, **kwargs)

    return call

for name, numbers in json.loads(calls).items():
    setattr(transformers.Trainer, name, disturbed(name, getattr(transformers.Trainer, name), numbers))
main(argv)
"""
STEP = {"training_step": [14]}  # the 7th step's second batch


def run_into(disaster: str | int, calls: dict[str, list[int]], *command) -> CompletedProcess:
    """Run a command up to a full disk or a signal, before some calls of Trainer's methods; they count from 1."""
    disaster = disaster if isinstance(disaster, str) else int(disaster)
    return run_program(DISASTER, disaster, json.dumps(calls), *command)


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


def assert_same_end(resumed: Path, whole: Path, logged_more: bool = False) -> None:
    """Weights, the states of optimizer, scheduler and random numbers, the log and the record: bit for bit.

    A run that was stopped has logged once more, so that its mean losses are sums in another order.
    """
    assert checkpoints(resumed) == checkpoints(whole)
    for checkpoint in checkpoints(whole):
        for file in ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth"):
            assert (resumed / checkpoint / file).read_bytes() == (whole / checkpoint / file).read_bytes(), file
    assert (resumed / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    for file in ("metrics.json", f"{checkpoints(whole)[-1]}/trainer_state.json"):
        records = [without_times(read_json(folder / file)) for folder in (resumed, whole)]
        if logged_more and file == "metrics.json":
            losses = [[epoch.pop("train_loss") for epoch in record["epochs"]] for record in records]
            assert losses[0] == pytest.approx(losses[1], rel=1e-6)
        elif logged_more:
            for record in records:
                record["log_history"] = [entry for entry in record["log_history"] if "eval_loss" in entry]
        assert records[0] == records[1]
    assert not {path.name for path in whole.iterdir()} ^ {path.name for path in resumed.iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run that nothing happened to."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert run_into("none", {}, *CLASSIFIER, "--output_dir", folder).returncode == 0
    assert checkpoints(folder) == ["checkpoint-8", "checkpoint-10", "checkpoint-11"]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disaster", "calls", "left", "last_whole"),
    [
        (signal.SIGKILL, STEP, ["checkpoint-2", "checkpoint-4", "checkpoint-6"], "checkpoint-6"),
        # In the evaluation of the epoch's last step, which comes before the step's checkpoint.
        (signal.SIGKILL, {"prediction_step": [4]}, ["checkpoint-2", "checkpoint-4", "checkpoint-6"], "checkpoint-6"),
        # In the measuring: there is nothing more to train.
        (signal.SIGKILL, {"predict": [2]}, ["checkpoint-8", "checkpoint-10", "checkpoint-11"], "checkpoint-11"),
        # The limit on a file's length lets the weights pass, and not the optimizer's state.
        ("full disk", STEP, ["checkpoint-2", "checkpoint-4", "checkpoint-6", "checkpoint-8"], "checkpoint-6"),
    ],
)
def test_a_killed_run_goes_on_to_the_same_end(succeed, whole, tmp_path, caplog, disaster, calls, left, last_whole):
    command = [*CLASSIFIER, "--output_dir", tmp_path / "run"]
    result = run_into(disaster, calls, *command)
    assert result.returncode == (2 if disaster == "full disk" else -disaster)
    if disaster == "full disk":
        assert str(tmp_path / "run") in error_line("train-classifier", result.stderr)
    assert checkpoints(tmp_path / "run") == left
    if calls == STEP:  # in a process that has imported nothing of the package
        assert run_into("none", {}, *command, "--resume_from_checkpoint").returncode == 0
    else:
        succeed(*command, "--resume_from_checkpoint")
    assert read_json(tmp_path / "run" / "run.json")["resumed_from"] == last_whole
    skipped = [line for line in caplog.messages if "not a whole checkpoint" in line]
    damage = "not a whole checkpoint (optimizer.pt is broken off), skipped"
    assert skipped == [f"{tmp_path}/run/{left[-1]}: {damage}"] * (last_whole != left[-1] and calls != STEP)
    assert_same_end(tmp_path / "run", whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "calls", "last", "flags"),
    [
        (signal.SIGTERM, {"training_step": [1]}, "stopped-checkpoint-1", []),
        (signal.SIGTERM, STEP, "stopped-checkpoint-7", []),
        (
            signal.SIGTERM,
            {"training_step": [13, 14], "_save_optimizer_and_scheduler": [4]},
            "stopped-checkpoint-7",
            [],
        ),
        (signal.SIGTERM, {"training_step": [16]}, "checkpoint-8", []),  # the epoch is evaluated first
        (signal.SIGTERM, {"prediction_step": [4]}, "checkpoint-8", []),
        (signal.SIGTERM, {"_save_optimizer_and_scheduler": [3]}, "checkpoint-6", []),
        (signal.SIGTERM, {"training_step": [22]}, "checkpoint-11", []),  # the last
        (signal.SIGTERM, {"predict": [2]}, "checkpoint-11", []),
        (signal.SIGTERM, STEP, "stopped-checkpoint-7", ["--dataloader_num_workers", "1"]),
        (signal.SIGINT, STEP, "checkpoint-6", []),
        (signal.SIGINT, {"_save_optimizer_and_scheduler": [4]}, "checkpoint-6", []),
    ],
)
def test_a_run_that_is_stopped_says_how_it_goes_on(succeed, whole, tmp_path, number, calls, last, flags):
    """It goes on to the same end. By SIGTERM, also twice, it saves a checkpoint first."""
    folder, handler = tmp_path / "run", signal.getsignal(signal.SIGTERM)
    flags = [*flags, "--enable_jit_checkpoint", "true"]
    result = run_into(number, calls, *CLASSIFIER, *flags, "--output_dir", folder)
    assert result.returncode == 128 + number and "Traceback" not in result.stderr
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("vanilla-transformer ")]
    assert "--resume_from_checkpoint" in line and line.endswith(f" {folder / last}")
    assert not {file.name for file in folder.iterdir()} & {"README.md", "metrics.json", "run.json", "_run.lock"}
    succeed(*CLASSIFIER, "--output_dir", folder, "--resume_from_checkpoint")
    assert signal.getsignal(signal.SIGTERM) == handler
    assert read_json(folder / "run.json")["resumed_from"] == last
    assert_same_end(folder, whole, logged_more=last.startswith("stopped"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_before_its_first_step_leaves_nothing(tmp_path, number):
    folder = tmp_path / "run"
    result = run_into(number, {"__init__": [1]}, *CLASSIFIER, "--output_dir", folder)
    assert result.returncode == 128 + number and "Traceback" not in result.stderr
    assert "no checkpoint was saved" in result.stderr and not any(folder.iterdir())


@pytest.mark.slow
def test_pretraining_stops_on_sigterm_too(text_file, tmp_path):
    flags = ["--max_length", "12", "--vocab_size", "29", "--validation", "10"]
    words = ["pretrain", "--texts", text_file, *flags, *TINY_TRANSLATOR, *QUIET, "--max_steps", "9"]
    calls = {"training_step": [3]}
    result = run_into(signal.SIGTERM, calls, *words, "--output_dir", tmp_path / "run", "--save_strategy", "no")
    assert result.returncode == 143 and [*(tmp_path / "run").iterdir()] == [tmp_path / "run" / "stopped-checkpoint-3"]


@pytest.mark.slow
@pytest.mark.parametrize("disaster", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_with_a_token_budget_goes_on_to_the_same_mean_of_its_checkpoints(succeed, corpus, tmp_path, disaster):
    settings = ["--max_tokens", "64", "--max_steps", "20", "--save_steps", "4", "--average_last", "2"]
    settings += ["--eval_steps", "4", "--label_smoothing_factor", "0.1", "--logging_steps", "3", "--use_cpu", "true"]
    settings += ["--save_total_limit", "2"]
    train_translator(succeed, corpus, tmp_path / "whole", *settings)
    run = partial(run_into, disaster, {"training_step": [18]})
    stopped = train_translator(run, corpus, tmp_path / "run", *settings)
    assert stopped.returncode == (143 if disaster == signal.SIGTERM else -disaster)
    assert checkpoints(tmp_path / "run")[-1] == "checkpoint-16"
    assert (tmp_path / "run" / "stopped-checkpoint-18").is_dir() == (disaster == signal.SIGTERM)
    train_translator(succeed, corpus, tmp_path / "run", *settings, "--resume_from_checkpoint")
    assert_same_end(tmp_path / "run", tmp_path / "whole", logged_more=disaster == signal.SIGTERM)


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


class Deleted:
    """Gets a SIGTERM while it is deleted, where Python ignores errors."""

    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
        for _ in range(3):
            pass


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_sigterm_where_python_ignores_errors_still_ends_the_command(goes_on, monkeypatch, capsys):
    """Soon afterwards, and at the latest when the command ends."""
    monkeypatch.setattr(sys, "argv", ["vanilla-transformer x"])
    handler, hook, begin = signal.getsignal(signal.SIGTERM), sys.unraisablehook, time.monotonic()
    with pytest.raises(SystemExit) as stop, one_line_if_interrupted():
        Deleted()
        while goes_on and time.monotonic() < begin + 30:
            time.sleep(0.01)
    assert stop.value.code == 143 and time.monotonic() < begin + 20
    assert capsys.readouterr().err == "vanilla-transformer x: interrupted\n"
    assert (signal.getsignal(signal.SIGTERM), sys.unraisablehook) == (handler, hook)
    time.sleep(0.2)  # nothing comes later


def test_a_sigterm_that_a_library_catches_ends_the_command_with_143(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["vanilla-transformer x"])
    with pytest.raises(SystemExit) as stop, one_line_if_interrupted(), contextlib.suppress(BaseException):
        signal.raise_signal(signal.SIGTERM)
    assert stop.value.code == 143 and capsys.readouterr().err == "vanilla-transformer x: interrupted\n"
