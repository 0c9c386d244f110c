"""Soft labels: what is labelled, by whom, and the loss that learns from it."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from distillation import (
    SOFT_LABELS_FILE,
    compose_texts,
    cross_fit,
    labels_nearby,
    linear_classifier,
    load_soft_labels,
    soft_label_loss,
)
from shared import ROOT, read_json
from transformers.modeling_outputs import Seq2SeqSequenceClassifierOutput

from hf_vanilla_transformer.data.checksums import file_checksum
from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.inference import Classifier


SMALL = str(ROOT / "model_cards/nsmc-small")


@pytest.fixture(scope="module")
def data():
    return load_labelled_text("sample")


@pytest.fixture(scope="module")
def teacher(data):
    """The linear teacher of the data's training texts."""
    return linear_classifier().fit(data["train"]["text"][:], data["train"]["label"][:])


@pytest.fixture
def label(succeed):
    """Label texts, by the linear teacher alone unless there are --models, too."""

    def label(folder, *flags, data="sample"):
        flags = ["--data", data, "--linear", "true", *flags, "--output_dir", folder]
        return succeed("experiments/soft_labels.py", *flags)

    return label


def loss_of(logits, labels, **kwargs):
    return soft_label_loss(Seq2SeqSequenceClassifierOutput(logits=logits), labels, **kwargs)


def test_the_loss_is_the_cross_entropy_with_the_teachers_probabilities():
    logits = torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]])
    labels = torch.tensor([[0.2, 0.8], [0.5, 0.5]])
    # By hand: the model says 1/2, 1/2 and 3/4, 1/4.
    expected = (math.log(2) + 0.5 * math.log(4 / 3) + 0.5 * math.log(4)) / 2
    torch.testing.assert_close(loss_of(logits, labels).item(), expected)
    # Trainer counts every number of the labels.
    torch.testing.assert_close(loss_of(logits, labels, num_items_in_batch=labels.numel()).item(), expected)
    # In an evaluation, labels are classes.
    torch.testing.assert_close(loss_of(logits, torch.tensor([1, 0])), loss_of(logits, torch.eye(2).flip(0)))


def test_composed_texts_are_pieces_of_one_text_or_of_two():
    texts = ["가 나 다 라", "마 바", "", "사"]
    composed = compose_texts(texts, 50, seed=1)
    assert len(composed) == 150  # of the texts that have words
    assert composed == compose_texts(texts, 50, seed=1) != compose_texts(texts, 50, seed=2)
    pieces = {" ".join(t.split()[i:j]) for t in texts for i in range(4) for j in range(i + 1, 5)} - {""}
    begins = {" ".join(t.split()[:i]) for t in texts for i in range(1, 5)} - {""}
    ends = {" ".join(t.split()[i:]) for t in texts for i in range(4)} - {""}
    spliced = {f"{begin} {end}" for begin in begins for end in ends}
    assert set(composed) <= pieces | spliced
    assert len(set(composed) & pieces) > 5 and len(set(composed) - pieces) > 5


def test_a_cross_fitted_teacher_has_not_seen_the_text(data):
    """Labels without any rhyme are learned by heart, and cannot be told where they were not seen."""
    texts = data["train"]["text"][:]
    labels = np.random.default_rng(0).integers(0, 2, len(texts))
    by_heart = linear_classifier().fit(texts, labels).predict(texts)
    unseen = cross_fit(texts, labels, seed=1)
    assert unseen.shape == (len(texts), 2)
    assert (by_heart == labels).mean() > 0.95
    assert (unseen.argmax(axis=1) == labels).mean() < 0.6


def test_the_linear_teacher_is_measured_with_changed_texts(succeed, data, teacher, tmp_path):
    flags = ["--robustness", "no_spaces", "typing_slip", "--split", "test", "--output_dir", tmp_path / "run"]
    out = succeed("experiments/linear_baseline.py", *flags)
    changes = read_json(tmp_path / "run" / "evaluation.json")["robustness"]["changes"]
    spaceless = ["".join(text.split()) for text in data["test"]["text"]]
    figures = [teacher.score(texts, data["test"]["label"][:]) for texts in (data["test"]["text"][:], spaceless)]
    assert [one["accuracy"] for one in changes][:2] == pytest.approx(figures)
    assert [one["change"] for one in changes] == ["as_written", "no_spaces", "typing_slip"]
    assert f"{figures[0]:.4f}" in out


def test_labels_nearby_are_bayes_factors():
    """Against the definition, term by term; a file's neighbours are in that file."""
    files = [["a", "x", "b", "twice", "y", "c"], ["twice", "z", "d"], []]
    texts, labels = ["a", "b", "c", "d", "twice", "elsewhere", "again", "again"], [0, 1, 2, 0, 1, 2, 2, 2]
    factors = labels_nearby(files, texts, labels, scale=2)
    prior = np.bincount(labels) / len(labels)
    assert set(factors) == {"a", "x", "b", "y", "c", "z", "d"}
    for lines in files:
        for place, line in enumerate(lines):
            near = 3 * prior
            for other, neighbour in enumerate(lines):
                if neighbour in ("a", "b", "c", "d") and other != place:
                    near[labels[texts.index(neighbour)]] += math.exp(-abs(other - place) / 2)
            if line != "twice":
                np.testing.assert_allclose(factors[line], near / near.sum() / prior)


@pytest.mark.slow
def test_teachers_label_texts_and_a_classifier_learns_from_them(succeed, label, data, teacher, tmp_path):
    known = [data[split]["text"][0] for split in ("train", "validation", "test")]
    texts = tmp_path / "texts.txt"
    new = ["정말 좋은 영화였다", "지루하고 유치했다"]
    texts.write_text("\n".join([new[0], *known, "", f" {new[0]} ", new[1]]) + "\n")
    out = label(tmp_path / "soft", "--models", SMALL, "--texts", texts, "--pieces", "1")
    rows = load_soft_labels(tmp_path / "soft", 2)
    assert rows["text"][:2] == new  # each once, and none of the data's own
    assert rows["text"][2:] == compose_texts(data["train"]["text"][:], 1, seed=42)
    assert out.strip().splitlines()[-1] == f"{len(rows)} texts labelled"

    probabilities = [teacher.predict_proba(rows["text"][:]), Classifier(SMALL).probabilities(rows["text"][:])]
    np.testing.assert_allclose(rows["label"][:], np.mean(probabilities, axis=0), atol=1e-5)
    metrics = read_json(tmp_path / "soft/metrics.json")
    assert list(metrics["validation"]) == ["linear", SMALL, "together"]
    assert metrics["rows"] == len(rows)
    assert metrics["texts"] == {str(texts): file_checksum(texts)}

    flags = ["--data", "sample", "--model", SMALL, "--soft_labels", tmp_path / "soft", "--max_length", "64"]
    flags += ["--max_steps", "2", "--eval_strategy", "epoch", "--output_dir", tmp_path / "student"]
    succeed("experiments/train_classifier.py", *flags)
    state = read_json(tmp_path / "student/checkpoint-2/trainer_state.json")
    assert state["epoch"] == pytest.approx(2 / math.ceil((len(data["train"]) + len(rows)) / 8))
    record = read_json(tmp_path / "student/run.json")
    assert record["data"]["train"]["rows"] == len(data["train"])
    recorded = record["data"]["soft_labels"]
    recipe = yaml.safe_load((tmp_path / "soft/recipe.yaml").read_text())
    files = {name: [Path(file).name for file in recipe[name]] for name in ("models", "texts")}
    assert recorded["recipe"] == recipe | files
    named = {SMALL: Path(SMALL).name}  # a record holds no path
    assert recorded["validation"] == {named.get(name, name): report for name, report in metrics["validation"].items()}
    assert recorded["sha256"] == file_checksum(tmp_path / "soft" / SOFT_LABELS_FILE)
    card = (tmp_path / "student/README.md").read_text()
    assert f"further data, `soft_labels`: {len(rows)} rows (SHA-256 `{recorded['sha256']}`)" in card
    assert "scripts/experiments/train_classifier.py recipe.yaml" in card
