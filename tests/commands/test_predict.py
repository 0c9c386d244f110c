"""`vanilla-transformer predict`: answers in order, from files and standard input, and refusals."""

import pytest
from transformers import pipeline


REVIEWS = ["정말 재미있고 감동적인 영화", "", "지루하고 유치했다", "​", "최고 " * 400, "그저 그런 영화"]


def test_answers_are_those_of_transformers(succeed, trained):
    out = succeed("predict", "--model", trained, "--batch_size", 4, stdin="\n".join(REVIEWS) + "\n")
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


def test_standard_input_may_be_empty_or_have_a_byte_order_mark(succeed, trained):
    assert succeed("predict", "--model", trained, stdin="") == ""
    out = succeed("predict", "--model", trained, stdin="\ufeff재미있다".encode())
    assert out.split("\t")[2] == "재미있다\n"


def test_ranked_labels_are_columns(succeed, refused, trained, here):
    flags = ["--model", trained, "--top_k", "2"]
    ranked = succeed("predict", *flags, stdin="\n".join(REVIEWS)).splitlines()
    answers = succeed("predict", "--model", trained, stdin="\n".join(REVIEWS)).splitlines()
    for line, answer in zip(ranked, answers, strict=True):
        label, probability, other, rest, text = line.split("\t")
        assert [label, probability, text] == answer.split("\t")
        if label:
            assert {label, other} == {"negative", "positive"}
            assert float(probability) + float(rest) == pytest.approx(1, abs=2e-4)
    (here / "a.csv").write_text("text\n\n가\n")
    header = succeed("predict", *flags, "--file", "a.csv").splitlines()[0]
    assert header == "text,predicted,probability,predicted 2,probability 2"
    said = refused("predict", *flags, "--threshold", "0.9")
    assert "--threshold" in said and "--top_k" in said
    assert "top_k: a whole number" in refused("predict", "--model", trained, "--top_k", "-1")
