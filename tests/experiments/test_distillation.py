"""Soft labels: teachers label texts, and a classifier learns from the labels."""

import numpy as np
import pytest
from datasets import Dataset
from distillation import SOFT_LABELS_FILE, labels_nearby
from shared import ROOT, TWO_STEPS, read_json
from teachers import SHARPNESS, linear_logits

from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.sources import file_checksum
from hf_vanilla_transformer.inference import Classifier
from hf_vanilla_transformer.training.baseline import linear_model


SMALL = str(ROOT / "model_cards/nsmc-small")


@pytest.fixture(scope="module")
def data():
    return load_labelled_text("sample")


@pytest.fixture(scope="module")
def linear(data):
    """The linear teacher of the data's training texts."""
    return linear_model(len(data["train"])).fit(data["train"]["text"][:], data["train"]["label"][:])


def test_the_linear_baseline_reads_no_spaces(succeed, data, tmp_path):
    flags = ["--robustness", "no_spaces", "typing_slip", "--split", "test", "--output_dir", tmp_path / "run"]
    succeed("experiments/linear_baseline.py", *flags)
    changes = read_json(tmp_path / "run" / "evaluation.json")["robustness"]["changes"]
    texts = {split: ["".join(text.split()) for text in data[split]["text"]] for split in ("train", "test")}
    classifier = linear_model(len(data["train"])).fit(texts["train"], data["train"]["label"][:])
    as_written, no_spaces, slips = (one["accuracy"] for one in changes)
    assert as_written == no_spaces == pytest.approx(classifier.score(texts["test"], data["test"]["label"][:])) != slips


@pytest.mark.slow
def test_teachers_label_texts_and_a_classifier_learns_from_them(succeed, data, linear, tmp_path):
    known = [data[split]["text"][0] for split in ("train", "validation", "test")]
    new = ["정말 좋은 영화였다", "지루하고 유치했다"]
    lines = [new[0], *known, "", new[0], new[1]]
    texts, soft = tmp_path / "texts.txt", tmp_path / "soft"
    texts.write_text("".join(f"{line}\n" for line in lines))
    flags = ["--data", "sample", "--linear", "true", "--models", SMALL, "--texts", texts, "--neighbours", "10"]
    succeed("experiments/soft_labels.py", *flags, "--output_dir", soft)
    metrics = read_json(soft / "metrics.json")
    assert list(metrics["validation"]) == ["linear", SMALL, "together", "neighbours"]
    rows = Dataset.from_parquet(str(soft / SOFT_LABELS_FILE))
    assert rows["text"][:] == new  # each once, and none of the data's own
    expected = (linear.predict_proba(new) + Classifier(SMALL).probabilities(new)) / 2
    factor = labels_nearby([lines], data["train"]["text"][:], data["train"]["label"][:], 10)[new[1]]
    expected[1] *= factor / (expected[1] @ factor)  # new[0] is there twice
    np.testing.assert_allclose(rows["label"][:], expected, atol=1e-5)

    flags = ["--data", "sample", "--model", SMALL, "--soft_labels", soft, "--max_length", "64"]
    succeed("experiments/train_classifier.py", *flags, *TWO_STEPS, "--output_dir", tmp_path / "student")
    record = read_json(tmp_path / "student/run.json")
    assert record["data"]["train"]["rows"] == len(data["train"])
    assert record["data"]["soft_labels"]["rows"] == len(new)
    assert record["data"]["soft_labels"]["sha256"] == file_checksum(soft / SOFT_LABELS_FILE)


@pytest.mark.slow
def test_teachers_together_label_texts_and_a_student_reads_them_spaced_anew(succeed, data, tmp_path):
    new = ["정말 좋은 영화였다", "지루하고 유치했다"]
    texts, labels, student = tmp_path / "texts.txt", tmp_path / "labels", tmp_path / "student"
    texts.write_text("".join(f"{line}\n" for line in [*new, data["validation"]["text"][0], new[0]]))
    flags = ["--data", "sample", "--models", SMALL, "--texts", texts, "--dtype", "float32"]
    succeed("experiments/teachers.py", *flags, "--output_dir", labels)
    rows = Dataset.from_parquet(str(labels / SOFT_LABELS_FILE))
    train, classes = data["train"]["text"][:], np.array(data["train"]["label"][:])
    assert rows["text"][:] == [*new, *train]
    positive = np.array(rows["label"][:])[:, 1]
    linear, _ = linear_logits(train, classes, new)
    odds = Classifier(SMALL).probabilities(new)
    logits = np.log(odds[:, 1] / odds[:, 0])
    np.testing.assert_allclose(positive[:2], 1 / (1 + np.exp(-SHARPNESS * (logits + linear) / 2)), rtol=1e-4)
    # A training text's own label has half of the weight.
    assert ((positive[2:] > 0.5) == classes).all() and positive[2:].min() > 0 and positive[2:].max() < 1

    sizes = ["--updates", "4", "--decay", "2", "--warmup", "2", "--rows", "8"]
    succeed("experiments/distil.py", "--model", SMALL, "--soft_labels", labels, *sizes, "--output_dir", student)
    before, after = (Classifier(folder).probabilities(new) for folder in (SMALL, str(student)))
    assert 1e-4 < np.abs(before - after).max() < 0.5
    assert Classifier(str(student)).engine.model.config.dropout == 0.1
    assert read_json(student / "run.json")["data"]["train"] == {
        "rows": len(rows),
        "sha256": file_checksum(labels / SOFT_LABELS_FILE),
    }
