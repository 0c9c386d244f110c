"""What a training prints: the facts about the data at its top, and a table."""

import pytest
from data.files import write_table
from transformers import TrainerControl, TrainerState, TrainingArguments

from hf_vanilla_transformer.data.labelled_text import load_labelled_text, tokenize
from hf_vanilla_transformer.data.problem_types import MULTI, REGRESSION
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.training.report import TableCallback, describe_data


@pytest.mark.parametrize(
    ("labels", "options", "lines"),
    [
        (["good", "bad"], {}, ["rows: train 32, validation 4, test 4", "of train: bad 16 (50%), good 16 (50%)"]),
        (["a|b", "b"], {"problem_type": MULTI}, ["labels of train: b ", " (100%), a "]),
        ([1, 2, 3, 5], {"problem_type": REGRESSION}, ["labels: numbers from 1 to 5, mean 2."]),
        ([f"label {number}" for number in range(25)], {}, ["label 4 1 (4%), 5 more"]),
    ],
)
def test_labels(tmp_path, labels, options, lines):
    repeats = 40 // len(labels) if len(labels) < 25 else 3
    rows = [{"document": f"감상 {number}", "label": label} for number, label in enumerate(labels * repeats)]
    data = load_labelled_text(write_table(tmp_path / "t.csv", rows), validation_fraction=0.1, **options)
    tokenizer = train_tokenizer(["감상"], vocab_size=29, max_length=1)
    described = "\n".join(describe_data(data, tokenize(data, tokenizer), 1))
    assert all(line in described for line in lines)
    assert "length: median 1 tokens, longest 1; 100.0% reach the limit, 1" in described


def test_a_training_prints_a_row_for_each_evaluation_and_nothing_else(tmp_path, capsys):
    """After the training, for none. Standard error is no terminal."""
    args = TrainingArguments(str(tmp_path), eval_strategy="epoch", use_cpu=True, report_to="none")
    callback, state, control = TableCallback(), TrainerState(max_steps=2000), TrainerControl()
    callback.on_train_begin(args, state, control)
    for step, loss in ((1000, 0.75), (2000, 0.5)):
        state.global_step = step
        callback.on_step_end(args, state, control)
        for one in ({"loss": loss}, {"eval_loss": loss / 2, "eval_macro_f1": 0.5, "eval_runtime": 9.0}):
            state.log_history.append({**one, "epoch": step / 1000, "step": step})
            callback.on_log(args, state, control, logs=one)
    callback.on_train_end(args, state, control)
    callback.on_log(args, state, control, logs={"loss": 0.1, "eval_loss": 0.1})
    out, err = capsys.readouterr()
    rows = [["1", "1,000", "0.7500", "0.3750", "0.5000"], ["2", "2,000", "0.5000", "0.2500", "0.5000"]]
    assert [line.split() for line in out.splitlines()[1:]] == rows and err == ""
    assert len({len(line) for line in out.splitlines()}) == 1
