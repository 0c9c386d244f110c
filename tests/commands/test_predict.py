"""`vanilla-transformer predict`: answers in order, from files and standard input, and refusals."""

import json
import subprocess
import sys

import pytest
from transformers import pipeline


REVIEWS = ["정말 재미있고 감동적인 영화", "", "지루하고 유치했다", "​", "최고 " * 400, "그저 그런 영화"]


@pytest.mark.parametrize("batch_size", ["1", "4"])
def test_answers_come_in_the_order_of_the_texts(succeed, trained, tmp_path, batch_size):
    (tmp_path / "reviews.txt").write_text("\n".join(REVIEWS) + "\n", encoding="utf-8")
    out = succeed("predict", "--model", trained, "--file", tmp_path / "reviews.txt", "--batch_size", batch_size)
    answers = [line.split("\t") for line in out.split("\n")[:-1]]
    assert [text for _, _, text in answers] == REVIEWS
    classify = pipeline("text-classification", model=str(trained))
    assert answers.pop(1) == ["", "", ""]
    for label, probability, text in answers:
        assert label in ("negative", "positive")
        assert 0.5 <= float(probability) <= 1
        expected = classify(text, truncation=True)[0]
        assert (label, float(probability)) == (expected["label"], pytest.approx(expected["score"], abs=1e-4))


def test_answers_in_half_precision_are_nearly_the_same(succeed, trained):
    answers = []
    for dtype in ("float32", "bfloat16"):
        out = succeed("predict", "--model", trained, "--dtype", dtype, stdin="\n".join(REVIEWS))
        answers.append([line.split("\t")[:2] for line in out.splitlines() if line.strip()])
    for (label, probability), (nearly_label, nearly) in zip(*answers, strict=True):
        assert label == nearly_label and float(nearly) == pytest.approx(float(probability), abs=0.02)
    assert answers[0] != answers[1]


def test_lines_from_standard_input(succeed, refused, trained):
    out = succeed("predict", "--model", trained, stdin="재미있다\n지루하다\n")
    assert [line.split("\t")[2] for line in out.splitlines()] == ["재미있다", "지루하다"]
    assert succeed("predict", "--model", trained, stdin="") == ""
    out = succeed("predict", "--model", trained, stdin="\ufeff재미있다".encode())
    assert out.split("\t")[2] == "재미있다\n"
    said = refused("predict", "--model", trained, stdin="재미있다\n지루하다\n".encode("cp949"))
    assert "standard input, line 1: byte 1 is not UTF-8" in said


# Prints which of some modules are imported at the end. Up to 5.20, transformers imports pandas itself.
SHOW_MODULES = """\
import atexit, json, sys
names = ("datasets", "transformers.trainer", "matplotlib")
atexit.register(lambda: print(json.dumps([name for name in names if name in sys.modules]), file=sys.stderr))
from hf_vanilla_transformer.__main__ import main
main()
"""


def test_one_line_needs_neither_datasets_nor_trainer(trained):
    """Their imports cost as much as half of torch's and transformers'."""
    command = [sys.executable, "-c", SHOW_MODULES, "predict", "--model", str(trained)]
    result = subprocess.run(command, input="재미있다\n", capture_output=True, text=True, encoding="utf-8")
    assert result.returncode == 0 and result.stdout.endswith("\t재미있다\n")
    assert json.loads(result.stderr.splitlines()[-1]) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "./nowhere"], "nowhere"),
        (["--model", "./bart"], "'bart', not 'vanilla_transformer'"),
        (["--model", "./headless"], "not a classifier"),
        (["--model", "./corrupt"], "corrupt: no model can be read here"),
        (["--model", "./misfit"], "misfit: no model can be read here"),
        (["--dtype", "half"], "--dtype: invalid choice: 'half'"),
    ],
)
def test_prediction_refuses_with_one_line(refused, faults, trained, arguments, message):
    assert message in refused("predict", "--model", trained, *arguments)


def test_a_threshold_does_not_go_with_ranked_labels(refused, tiny_models):
    said = refused("predict", "--model", tiny_models["classification"], "--threshold", "0.9", "--top_k", "2")
    assert "--threshold" in said and "--top_k" in said
