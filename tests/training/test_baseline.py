# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The linear model beside a classifier."""

from random import Random

import numpy as np
import pytest
from datasets import Dataset, DatasetDict
from scipy.stats import binomtest
from shared import TINY_RUN

import hf_vanilla_transformer as vt
from hf_vanilla_transformer.data.problem_types import MULTI, REGRESSION, SINGLE
from hf_vanilla_transformer.training import baseline
from hf_vanilla_transformer.training.baseline import measure_baseline


ROWS = {"train": 120, "validation": 40, "test": 60}


def splits(make_row, rows=ROWS):
    """The splits' texts and labels; `make_row` makes a text and its label from a `random.Random`."""
    drawn = {split: [make_row(Random(f"{split} {row}")) for row in range(number)] for split, number in rows.items()}
    data = DatasetDict({split: Dataset.from_dict({"text": [text for text, _ in one]}) for split, one in drawn.items()})
    labels = {split: Dataset.from_dict({"labels": [label for _, label in one]}) for split, one in drawn.items()}
    return data, DatasetDict(labels)


def review(random):
    label = random.randrange(2)
    words = random.choices(["가나", "다라", "마바", "사아"], k=3) + [["최고", "별로"][label]]
    return " ".join(random.sample(words, 4)), label


def labels_of(tokenized):
    return np.array(tokenized["test"]["labels"][:])


def test_it_is_measured_on_test_beside_the_model():
    data, tokenized = splits(review)
    truth = labels_of(tokenized)
    wrong = np.arange(60) < 20
    outputs = np.eye(2)[np.where(wrong, 1 - truth, truth)]
    measured = measure_baseline(data, tokenized, outputs, SINGLE)
    assert measured["accuracy"] == 1.0 and measured["train_rows"] == 120
    # Twenty rows that the other model alone has wrong: the sign test.
    assert measured["p_value"] == pytest.approx(binomtest(0, 20).pvalue, abs=1e-5)
    assert measure_baseline(data, tokenized, np.eye(2)[truth], SINGLE)["p_value"] == 1.0


def test_validation_says_whether_spaces_count():
    def spaced(random):
        label = random.randrange(2)
        letters = [*random.choices("다라마바", k=4), *["가나", "나가"][label], *random.choices("다라마바", k=4)]
        return "".join(letter + random.choice(["", " ", " "]) for letter in letters), label

    def told_by_spaces(random):
        label = random.randrange(2)
        return " ".join(random.choices("가나다라", k=6)) if label else "".join(random.choices("가나다라", k=6)), label

    for make_row, spaces in [(spaced, "left out"), (told_by_spaces, "kept")]:
        assert measure_baseline(*splits(make_row), np.zeros((60, 2)), SINGLE)["spaces"] == spaces


def test_several_labels_and_an_empty_set():
    names = 3

    def row(random):
        chosen = [float(random.random() < 0.3) for _ in range(names)]
        return " ".join("가나다라마"[place] * 2 for place in range(names) if chosen[place]) or "없음", chosen

    measured = measure_baseline(*splits(row), np.zeros((60, names)), MULTI)
    assert measured["micro_f1"] > 0.95 and measured["exact_match"] > 0.9
    # A label that no text of train has.
    data, tokenized = splits(row)
    tokenized = tokenized.map(lambda one: {"labels": [*one["labels"], 0.0]})
    assert measure_baseline(data, tokenized, np.zeros((60, names + 1)), MULTI)["micro_f1"] > 0.95


def test_numbers_with_an_outlier():
    def row(random):
        number = random.randrange(5)
        return "점수 " + "가나다라마"[number] * 2, 1e6 if random.random() < 0.02 else float(number)

    data, tokenized = splits(row)
    measured = measure_baseline(data, tokenized, np.zeros((60, 1)), REGRESSION)
    assert np.isfinite([measured[name] for name in ("mae", "rmse", "r2", "pearson", "p_value")]).all()


def test_where_nothing_can_be_learned_the_reason_is_told():
    measured = measure_baseline(*splits(lambda random: ("  ", random.randrange(2))), np.zeros((60, 2)), SINGLE)
    assert measured.keys() == {"skipped"} and "\n" not in measured["skipped"]


@pytest.mark.parametrize(
    ("row", "rows"),
    [
        (lambda random: (review(random)[0], 1), ROWS),
        (lambda random: (review(random)[0], int(random.random() < 0.03)), ROWS),
        (review, {"train": 12, "validation": 2, "test": 2}),
    ],
    ids=["one label", "three rows of a label", "twelve rows"],
)
def test_poor_data_stop_nothing(row, rows):
    measured = measure_baseline(*splits(row, rows), np.zeros((rows["test"], 2)), SINGLE)
    assert 0 <= measured["accuracy"] <= 1 and 0 <= measured["p_value"] <= 1


def test_of_many_rows_a_sample(monkeypatch):
    monkeypatch.setattr(baseline, "MAX_ROWS", 50)
    data, tokenized = splits(review)
    first, second = (measure_baseline(data, tokenized, np.zeros((60, 2)), SINGLE) for _ in range(2))
    assert first["train_rows"] == 50 and first == second


def test_a_run_prints_and_records_it(tmp_path, capsys):
    data, tokenized = splits(review)
    (tmp_path / "data").mkdir()
    for split, rows in data.items():
        labels = [["나쁨", "좋음"][label] for label in tokenized[split]["labels"]]
        rows.add_column("label", labels).to_csv(tmp_path / "data" / f"{split}.csv")
    settings = {"data": tmp_path / "data", "text_column": "text", **TINY_RUN}
    run = vt.train_classifier("few-rows", output_dir=tmp_path / "run", **settings)
    record = run.metrics["test"]["baseline"]
    line = f"; a linear model of character n-grams, fit to 120 texts: {record['accuracy']:.4f} (p = "
    printed = capsys.readouterr().out
    assert line in printed and record["accuracy"] == 1.0
    doubt = ", which may be chance" if record["p_value"] >= 0.05 else ""
    assert (f"The linear model is better{doubt}." in printed) == (run.metrics["test"]["accuracy"] < 1.0)

    # evaluate knows it for the run's own test split alone.
    report = vt.evaluate(run.folder, data=tmp_path / "data", output_dir=tmp_path / "report")
    assert report["baseline"] == record and line in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "baseline" not in vt.evaluate(run.folder, data=tmp_path / "data" / "train.csv")

    capsys.readouterr()
    run = vt.train_classifier("few-rows", output_dir=tmp_path / "without", baseline=False, **settings)
    assert "baseline" not in run.metrics["test"] and "linear model" not in capsys.readouterr().out
