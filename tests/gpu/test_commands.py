"""Commands on the device: each trains and answers, and a run goes on where another kind of device left it."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from processes import COMMAND, run_program
from shared import QUIET, TINY, read_json, train_translator


CLASSIFIER = ["--data", "sample", "--vocab_size", "1500", "--max_length", "32", *TINY, *QUIET]
CLASSIFIER += ["--per_device_train_batch_size", "40", "--learning_rate", "1e-3", "--logging_steps", "1"]
STEPS = ["--max_steps", "6", "--save_steps", "2", "--eval_strategy", "no", "--save_total_limit", "3"]
NO_DROPOUT = ["--config", '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, '
              '"dropout": 0.0, "attention_dropout": 0.0, "embedding_dropout": 0.0}']  # fmt: skip
PRETRAINING = ["--validation", "10", "--vocab_size", "29", "--max_length", "16", "--max_steps", "4", *TINY, *QUIET]
REVIEWS = "정말 재미있고 감동적인 영화\n지루하고 유치해서 시간이 아까웠다\n\n"
PRECISIONS = ["float32", "bfloat16", "auto", "fp16", "tf32"]


def losses(folder: Path) -> list[float]:
    state = read_json(max(folder.glob("checkpoint-*"), key=lambda path: int(path.name[11:])) / "trainer_state.json")
    return [entry["loss"] for entry in state["log_history"] if "loss" in entry]


def assert_the_record_names(device: torch.device, folder: Path) -> None:
    record = read_json(folder / "run.json")
    assert record["device"].split(":")[0] == device.type
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        assert record["accelerator"]["name"] == name and name in (folder / "README.md").read_text()
        assert record["accelerator"]["memory_gib"] > 1


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("task", ["train-classifier", "train-translation", "pretrain"])
def test_a_command_trains(task, precision, device, succeed, corpus, text_file, tmp_path):
    flag = [f"--{precision}", "true"] if precision in ("fp16", "tf32") else ["--precision", precision]
    folder = tmp_path / "run"
    if task == "train-classifier":
        succeed(task, *CLASSIFIER, *STEPS, *flag, "--output_dir", folder)
    elif task == "train-translation":
        train_translator(succeed, corpus, folder, *flag)
    else:
        succeed(task, "--texts", text_file, *PRETRAINING, *flag, "--output_dir", folder)
    assert_the_record_names(device, folder)
    assert all(torch.isfinite(torch.tensor(losses(folder)))) if task == "train-classifier" else True


@pytest.fixture(scope="module")
def classifier(tmp_path_factory, device) -> Path:
    """A run of six steps on the device, without dropout."""
    folder = tmp_path_factory.mktemp("runs") / "classifier"
    words = ["train-classifier", *CLASSIFIER, *NO_DROPOUT, *STEPS, "--output_dir", folder]
    result = run_program(COMMAND, *words)
    assert result.returncode == 0, result.stderr
    return folder


def test_answers_are_the_processors(classifier, device, succeed, monkeypatch, tmp_path):
    """`predict` and `evaluate`, which choose the accelerator by themselves."""
    (tmp_path / "texts.csv").write_text("text,label\n좋아요,positive\n별로예요,negative\n재미있다,positive\n")
    answers, reports = [], []
    for hidden in (False, True):
        if hidden:
            monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
        lines = succeed("predict", "--model", classifier, "--dtype", "float32", stdin=REVIEWS).splitlines()
        answers.append([line.split("\t") for line in lines])
        out = tmp_path / f"evaluation-{hidden}"
        words = ["--model", classifier, "--data", tmp_path / "texts.csv", "--text_column", "text"]
        succeed("evaluate", *words, "--label_column", "label", "--dtype", "float32", "--output_dir", out)
        reports.append(read_json(out / "evaluation.json"))
    assert len(answers[0]) == 3 and answers[0].pop() == answers[1].pop() == ["", "", ""]  # a blank line has no answer
    for there, here in zip(*answers, strict=True):
        assert there[0] == here[0] and float(there[1]) == pytest.approx(float(here[1]), abs=1e-4)
    assert reports[0]["accuracy"] == reports[1]["accuracy"]
    assert reports[0]["log_loss"] == pytest.approx(reports[1]["log_loss"], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("back", [False, True])
def test_a_run_goes_on_on_another_kind_of_device(back, classifier, succeed, tmp_path):
    """A checkpoint of the device on the processor, and one of the processor on the device."""
    first, second = [[], ["--use_cpu", "true"]][:: -1 if back else 1]
    folder, words = tmp_path / "run", ["train-classifier", *CLASSIFIER, *NO_DROPOUT, *STEPS]
    succeed(*words, *first, "--output_dir", folder)
    for path in folder.iterdir():
        if path.name in ("checkpoint-4", "checkpoint-6"):
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()
    succeed(*words, *second, "--output_dir", folder, "--resume_from_checkpoint", "auto")
    assert read_json(folder / "run.json")["resumed_from"] == "checkpoint-2"
    assert len(losses(folder)) == 6 and losses(folder) == pytest.approx(losses(classifier), abs=1e-3)


@pytest.mark.slow
def test_fsdp_wraps_the_layers(device, classifier, tmp_path):
    """FSDP2 through Trainer, in one process: `_no_split_modules` names the layers."""
    words = ["train-classifier", *CLASSIFIER, *NO_DROPOUT, *STEPS, "--fsdp", "full_shard auto_wrap"]
    words += ["--fsdp_config", json.dumps({"fsdp_version": 2}), "--output_dir", tmp_path / "run"]
    one = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}
    result = run_program(COMMAND, *words, environment={**os.environ, **one})
    assert result.returncode == 0, result.stderr
    assert losses(tmp_path / "run") == pytest.approx(losses(classifier), abs=1e-3)
