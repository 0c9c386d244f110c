"""The table that a training prints."""

import pytest
from transformers import TrainerControl, TrainerState, TrainingArguments

from hf_vanilla_transformer.training.table import TableCallback


@pytest.mark.parametrize("strategy", ["epoch", "no"])
def test_a_training_prints_a_row_for_each_evaluation_and_nothing_else(strategy, tmp_path, capsys):
    """Without evaluations, for each logged loss; after the training, for none. Standard error is no terminal."""
    args = TrainingArguments(str(tmp_path), eval_strategy=strategy, use_cpu=True, report_to="none")
    callback, state, control = TableCallback(), TrainerState(max_steps=2000), TrainerControl()
    callback.on_train_begin(args, state, control)
    for step, loss in ((1000, 0.75), (2000, 0.5)):
        state.global_step = step
        callback.on_step_end(args, state, control)
        logs = [{"loss": loss}, {"eval_loss": loss / 2, "eval_macro_f1": 0.5, "eval_runtime": 9.0}]
        for one in logs[: 2 if strategy == "epoch" else 1]:
            state.log_history.append({**one, "epoch": step / 1000, "step": step})
            callback.on_log(args, state, control, logs=one)
    callback.on_train_end(args, state, control)
    callback.on_log(args, state, control, logs={"loss": 0.1, "eval_loss": 0.1})
    out, err = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    titles, rows = ["epoch", "step", "training", "loss"], [["1", "1,000", "0.7500"], ["2", "2,000", "0.5000"]]
    if strategy == "epoch":
        titles += ["validation", "loss", "macro", "f1"]
        rows = [[*row, figure, "0.5000"] for row, figure in zip(rows, ("0.3750", "0.2500"), strict=True)]
    assert lines == [titles, *rows] and err == ""
    assert len({len(line) for line in out.splitlines()}) == 1
