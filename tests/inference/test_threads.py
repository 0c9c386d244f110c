"""Threads that load models at once: each gets its whole model, and the process is as before."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from shared import LINES
from transformers import PreTrainedModel

from hf_vanilla_transformer.inference import Classifier, Translator


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """Let threads change often; put back afterwards what they leave behind in other libraries."""
    monkeypatch.setattr(PreTrainedModel, "tie_weights", PreTrainedModel.tie_weights)
    monkeypatch.setattr(torch, "linspace", torch.linspace)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def test_functions_of_the_package_load_from_threads(tiny_models):
    functions = [
        lambda: Classifier(tiny_models["classification"]).probabilities(LINES[:3])[0],
        lambda: Translator(tiny_models["translation"])(LINES[:3]),
    ]
    expected = [function() for function in functions] * 8
    tie_weights, linspace = PreTrainedModel.tie_weights, torch.linspace
    with warnings.catch_warnings(action="error", category=RuntimeWarning), ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(lambda function: function(), functions * 8)]
    assert all(map(np.array_equal, answers, expected))
    assert PreTrainedModel.tie_weights is tie_weights and torch.linspace is linspace
