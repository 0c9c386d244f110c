"""Threads that load models at once: each gets its whole model, and the process is as before."""

import sys
import warnings
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest
import torch
from shared import LINES
from transformers import PreTrainedModel

from hf_vanilla_transformer.inference import Classifier, Translator


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """Threads change often; what they leave behind in other libraries is put back after the test."""
    monkeypatch.setattr(PreTrainedModel, "tie_weights", PreTrainedModel.tie_weights)
    monkeypatch.setattr(torch, "linspace", torch.linspace)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(scope="module")
def folders(tiny_models) -> dict[str, str]:
    return {task: str(folder) for task, folder in tiny_models.items()}


def answers(folders: dict[str, str]) -> list:
    """Functions that load a model of the package, and answer."""
    return [
        lambda: Classifier(folders["classification"]).probabilities(LINES[:3])[0],
        lambda: Translator(folders["translation"])(LINES[:3]),
    ]


def call_from_threads(functions: list) -> list:
    with ThreadPool(8) as threads:
        jobs = [threads.apply_async(function) for function in functions]
        return [job.get() for job in jobs]


def test_functions_of_the_package_load_from_threads(folders):
    functions = answers(folders)
    expected = [function() for function in functions] * 8
    tie_weights, linspace = PreTrainedModel.tie_weights, torch.linspace
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        found = call_from_threads(functions * 8)
    assert all(map(np.array_equal, found, expected))
    assert PreTrainedModel.tie_weights is tie_weights and torch.linspace is linspace
