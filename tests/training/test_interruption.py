"""Runs that are killed, stopped, or diverge: what is left, and that a resumed run ends the same."""

import signal
from pathlib import Path

import pytest
from datasets import Dataset
from filelock import FileLock
from processes import DISASTER, run_program
from shared import QUIET, TINY, read_json, tiny_config, train_translator
from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.commands import train_classifier
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.training.trainer import ResumableTrainer


# 11 steps of two batches, 4 an epoch; the last is in the middle of one. Nothing falls together with the logging but by
# chance, and the epochs end at steps that are saved. Dropout is on.
CLASSIFIER = ["--data", "sample", "--vocab_size", "1500", "--max_length", "32", *TINY, *QUIET]
CLASSIFIER += ["--per_device_train_batch_size", "80", "--gradient_accumulation_steps", "2", "--max_steps", "11"]
CLASSIFIER += ["--per_device_eval_batch_size", "15", "--save_steps", "2", "--save_total_limit", "3"]
CLASSIFIER += ["--eval_strategy", "epoch", "--logging_steps", "5", "--learning_rate", "1e-3", "--use_cpu", "true"]
CLASSIFIER += ["--eval_on_start", "true"]
AUTO = ["--resume_from_checkpoint", "auto"]
STEP = ("training_step", 14)  # the 7th step's second batch


@pytest.fixture
def before(monkeypatch):
    """Have something called in this process before a call of one of Trainer's methods; they count from 1."""

    def before(name: str, call: int, action) -> None:
        method, made = getattr(Trainer, name), []

        def disturbed(*args, **kwargs):
            made.append(name)
            if len(made) == call:
                action()
            return method(*args, **kwargs)

        monkeypatch.setattr(Trainer, name, disturbed)

    return before


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
            # None at the start.
            losses = [[epoch.pop("train_loss") or 0 for epoch in record["epochs"]] for record in records]
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
    train_classifier.main([*CLASSIFIER, "--output_dir", str(folder)])
    assert checkpoints(folder) == ["checkpoint-8", "checkpoint-10", "checkpoint-11"]
    return folder


@pytest.mark.slow
def test_a_run_that_is_killed_while_it_saves_goes_on_to_the_same_end(succeed, whole, tmp_path):
    words = ["train-classifier", *CLASSIFIER, "--output_dir", tmp_path / "run", *AUTO]
    killed = run_program(DISASTER, int(signal.SIGKILL), "_save_optimizer_and_scheduler", '{"0": 4}', *words)
    assert killed.returncode == -signal.SIGKILL and checkpoints(tmp_path / "run")[-1] == "checkpoint-8"
    succeed(*words)
    assert read_json(tmp_path / "run" / "run.json")["resumed_from"] == "checkpoint-6"
    assert_same_end(tmp_path / "run", whole)


@pytest.mark.parametrize(
    ("name", "call", "number", "last"),
    [
        (*STEP, signal.SIGTERM, "_stopped-checkpoint-7"),
        ("_finalize_training", 1, signal.SIGTERM, "checkpoint-11"),
        (*STEP, signal.SIGINT, "checkpoint-6"),
    ],
)
def test_a_run_that_is_stopped_says_how_it_goes_on(run, succeed, before, whole, tmp_path, name, call, number, last):
    """It goes on to the same end. By SIGTERM it saves a checkpoint first."""
    folder, handler = tmp_path / "run", signal.getsignal(signal.SIGTERM)
    before(name, call, lambda: signal.raise_signal(number))
    status, _, err = run("train-classifier", *CLASSIFIER, "--output_dir", folder)
    assert status == 128 + number and "Traceback" not in err
    (line,) = [line for line in err.splitlines() if line.startswith("vanilla-transformer ")]
    assert "--resume_from_checkpoint auto" in line and line.endswith(f" {folder / last}")
    assert not {file.name for file in folder.iterdir()} & {"README.md", "metrics.json", "run.json", "_run.lock"}
    out = succeed("train-classifier", *CLASSIFIER, "--output_dir", folder, *AUTO)
    assert out.startswith(f"Going on from {folder / last}\n")
    assert signal.getsignal(signal.SIGTERM) == handler
    assert read_json(folder / "run.json")["resumed_from"] == last
    assert_same_end(folder, whole, logged_more=last.startswith("_stopped"))


@pytest.mark.slow
def test_processes_that_load_data_may_get_the_signal_too(tmp_path):
    """As those of a Slurm job do."""
    words = ["train-classifier", *CLASSIFIER, "--dataloader_num_workers", "1", "--output_dir", tmp_path / "run"]
    result = run_program(DISASTER, int(signal.SIGTERM), "training_step", '{"0": 14}', *words)
    assert result.returncode == 143 and result.stderr.rstrip().endswith("/_stopped-checkpoint-7")


def test_a_run_that_is_interrupted_before_its_first_step_leaves_nothing(run, before, tmp_path):
    before("__init__", 1, lambda: signal.raise_signal(signal.SIGINT))
    status, _, err = run("train-classifier", *CLASSIFIER, "--output_dir", tmp_path / "run")
    assert status == 130 and "no checkpoint was saved" in err and not (tmp_path / "run").exists()


def test_auto_leaves_a_finished_run_alone(refused, whole):
    files = {file: file.read_bytes() for file in whole.rglob("*") if file.is_file()}
    assert "this run is finished" in refused("train-classifier", *CLASSIFIER, "--output_dir", whole, *AUTO)
    assert files == {file: file.read_bytes() for file in whole.rglob("*") if file.is_file()}


def test_a_folder_has_one_run_at_a_time(refused, tmp_path):
    with FileLock(tmp_path / "_run.lock"):
        assert "a run is going on there" in refused("train-classifier", *CLASSIFIER, "--output_dir", tmp_path)


def test_a_loss_that_is_no_number_stops_the_run_at_its_step(refused, corpus, monkeypatch, tmp_path):
    compute_loss, calls = Trainer.compute_loss, []

    def compute(self, model, *args, **kwargs):
        calls.extend([model] * model.training)
        # The second half of the fourth step's batch.
        return compute_loss(self, model, *args, **kwargs) * (float("nan") if len(calls) == 8 else 1)

    monkeypatch.setattr(Trainer, "compute_loss", compute)
    settings = ["--gradient_accumulation_steps", "2", "--logging_steps", "9", "--eval_strategy", "no"]
    settings += ["--save_steps", "1", "--max_steps", "6", "--use_cpu", "true"]
    line = train_translator(refused, corpus, tmp_path / "run", *settings)
    assert line.endswith("error: the loss of step 4 is nan")
    assert checkpoints(tmp_path / "run") == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]


def test_weights_that_are_no_numbers_are_not_saved(tmp_path):
    """The loss is finite, its gradient is not."""
    model = VanillaTransformerForSequenceClassification(tiny_config())
    model.classifier.weight.register_hook(lambda gradient: gradient * float("inf"))
    trainer = ResumableTrainer(
        model,
        TrainingArguments(str(tmp_path), max_steps=3, save_steps=1, use_cpu=True, report_to="none", disable_tqdm=True),
        data_collator=DataCollatorWithPadding(train_tokenizer(["가 나 다 라"], vocab_size=20)),
        train_dataset=Dataset.from_dict({"input_ids": [[7, 8, 9]] * 8, "labels": [0, 1] * 4}),
    )
    with pytest.raises(FloatingPointError, match="after step 1"):
        trainer.train()
    assert not any(tmp_path.iterdir())
