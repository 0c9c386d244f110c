"""Threads that load models at once: each gets its whole model."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from shared import LINES

from hf_vanilla_transformer.inference import Classifier, Translator


@pytest.fixture(autouse=True)
def busy_threads():
    """Let threads change often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def test_threads_load_at_once(tiny_models):
    """transformers' loader changes functions of the whole process while it runs."""
    functions = [
        lambda: Classifier(tiny_models["classification"]).probabilities(LINES[:3])[0],
        lambda: Translator(tiny_models["translation"])(LINES[:3]),
    ]
    expected = [function() for function in functions] * 8
    with ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(lambda function: function(), functions * 8)]
    assert all(map(np.array_equal, answers, expected))
