"""Temperatures: fitted on validation, folded into the head, no label changed."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from shared import TINY_RUN, read_json
from sklearn.metrics import brier_score_loss, log_loss

import hf_vanilla_transformer as vt
from hf_vanilla_transformer.data.problem_types import MULTI, SINGLE
from hf_vanilla_transformer.evaluation.metrics import calibration_scores, selective_report, wilson_interval
from hf_vanilla_transformer.training.calibration import BOUNDS, calibrate, fit_temperature


def drawn(rows: int, labels: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and labels that are drawn from their softmax: calibrated."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, labels, generator=generator)
    return logits, torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(-1)


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_the_temperature_is_found_again(temperature):
    logits, labels = drawn(20_000, 3)
    assert fit_temperature(temperature * logits, labels, SINGLE).item() == pytest.approx(temperature, rel=0.03)


def test_each_of_several_labels_has_its_own():
    logits, _ = drawn(20_000, 3)
    labels = torch.bernoulli(logits.sigmoid(), generator=torch.Generator().manual_seed(1))
    labels[:, 2] = 0  # no text has it
    found = fit_temperature(logits * torch.tensor([0.5, 2.0, 2.0]), labels, MULTI)
    assert found.tolist() == pytest.approx([0.5, 2.0, 1.0], rel=0.05)


def test_a_split_that_cannot_tell_is_named():
    for rows, reason in (([0, 1, 0], "3 rows"), ([1] * 50, "single label")):
        logits, labels = torch.zeros(len(rows), 2), torch.tensor(rows)
        assert reason in calibrate(Answering(logits, labels), None, SINGLE)["skipped"]
    logits, labels = torch.eye(2)[[0, 1] * 20], torch.tensor([0, 1] * 20)  # always right: the surer the better
    assert fit_temperature(logits, labels, SINGLE).item() == pytest.approx(BOUNDS[0])


class Answering:
    """What `calibrate` takes of a Trainer: a model with a head, and its logits."""

    def __init__(self, logits: torch.Tensor, labels: torch.Tensor):
        self.args = SimpleNamespace(bf16_full_eval=False, fp16_full_eval=False)
        self.model = SimpleNamespace(classifier=torch.nn.Linear(4, logits.shape[-1], bias=False))
        self.prediction = SimpleNamespace(predictions=logits.numpy(), label_ids=labels.numpy())

    def predict(self, split):
        return self.prediction


def test_few_wrong_answers_make_no_model_surer():
    """Of texts that are nearly all right; more doubt is taken from as few. Of several labels, each for itself."""
    labels = torch.tensor([0, 1] * 50)
    sure = 4.0 * torch.eye(2)[labels]
    for wrong, expected in ((0, 1.0), (9, 1.0), (20, None)):
        logits = (0.2 * sure).clone()
        logits[:wrong] = -logits[:wrong]
        found = calibrate(Answering(logits, labels), None, SINGLE)["temperature"]
        assert found == expected if expected else found < 1
    logits = sure.clone()
    logits[:5] = -logits[:5] * 3
    assert calibrate(Answering(logits, labels), None, SINGLE)["temperature"] > 1
    several = torch.stack([labels, labels], dim=1).float()
    logits = 0.6 * (2 * several - 1)
    logits[:20, 1] = -logits[:20, 1]
    first, second = calibrate(Answering(logits, several), None, MULTI)["temperature"]
    assert first == 1.0 > second


def test_scores_are_those_of_scikit_learn():
    logits, labels = (one.numpy() for one in drawn(500, 2))
    scores = calibration_scores(logits, labels, SINGLE)
    probabilities = torch.from_numpy(logits).double().softmax(-1).numpy()
    assert scores["log_loss"] == pytest.approx(log_loss(labels, probabilities))
    assert scores["brier"] == pytest.approx(2 * brier_score_loss(labels, probabilities[:, 1]))  # summed over both
    several = calibration_scores(logits[:, :1], labels[:, None], MULTI)
    assert several["log_loss"] == pytest.approx(log_loss(labels, 1 / (1 + np.exp(-logits[:, 0].astype(float)))))


def test_a_threshold_leaves_out_what_is_not_sure():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.45, 0.55], [0.6, 0.4]])
    labels = np.array([0, 1, 0, 1])
    rows = {one["threshold"]: (one["answered"], one["accuracy"]) for one in selective_report(probabilities, labels)}
    assert rows[0.5] == (1.0, 0.5) and rows[0.6] == (0.75, pytest.approx(2 / 3)) and rows[0.7] == (0.5, 1.0)
    assert rows[0.95] == (0.0, None)


def test_the_interval_is_wilsons():
    """Newcombe 1998, Table I: 81 of 263, and none of 20."""
    assert wilson_interval(81 / 263, 263) == pytest.approx([0.2553, 0.3662], abs=5e-5)
    assert wilson_interval(0.0, 20) == pytest.approx([0.0, 0.1611], abs=5e-5)


QUICK = {**TINY_RUN, "text_column": "text", "validation_fraction": 0.3, "learning_rate": 1e-2}


@pytest.mark.parametrize("kind", ["single_label_classification", "multi_label_classification"])
def test_a_run_is_calibrated_unless_it_is_told_not_to_be(kind, tmp_path):
    random = np.random.default_rng(0)
    labels = ["a", "a|b", "b"] if kind.startswith("multi") else ["a", "b", "b"]
    rows = pd.DataFrame({"text": random.choice(["가 나", "다 라", "마 바"], 150), "label": random.choice(labels, 150)})
    runs = []
    for name in ("true", "false"):
        settings = {"problem_type": kind, "calibrate": name == "true", "output_dir": tmp_path / name, **QUICK}
        runs.append(vt.train_classifier("few-rows", data=rows, **settings))
    calibrated, plain = (vt.Classifier(run.folder) for run in runs)
    found = runs[0].metrics["calibration"]
    temperature = np.array(found["temperature"])
    on_validation = [run.metrics["validation"]["log_loss"] for run in runs]
    assert on_validation[0] <= on_validation[1] and "calibration" not in runs[1].metrics
    one, other = (run.model.classifier.weight.detach().numpy() for run in runs)
    np.testing.assert_allclose(one * temperature[..., None], other, rtol=1e-5)
    texts = ["가 나", "다 라", "마 바", "가 라", ""]
    one, other = (classify.probabilities(texts) for classify in (calibrated, plain))
    assert ((one > 0.5) == (other > 0.5)).all()
    test = read_json(tmp_path / "true" / "metrics.json")["test"]
    assert test["uncalibrated"]["brier"] == pytest.approx(runs[1].metrics["test"]["brier"])
    card = (tmp_path / "true" / "README.md").read_text()
    assert "| before calibration | after calibration |" in card and "not calibrated" not in card
