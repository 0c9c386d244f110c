"""Threads that load models at once: each gets its whole model, and the process is as before."""

import importlib.util
import sys
import warnings
from functools import partial
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest
import torch
from exports.models import TWIN, random_model, save
from shared import LINES, VARIANTS, tiny_config
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel
from transformers.initialization import no_tie_weights

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    modeling_vanilla_transformer,
)
from hf_vanilla_transformer.inference import Classifier, Translator
from hf_vanilla_transformer.inference.folder import load_to_train


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


def is_tied(model: PreTrainedModel) -> bool:
    weights = dict(model.named_parameters(remove_duplicate=False))
    assert model.all_tied_weights_keys
    return all(weights[name] is weights[source] for name, source in model.all_tied_weights_keys.items())


@torch.no_grad()
def logits_of_transformers(folder: str) -> np.ndarray:
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    assert is_tied(model)
    return model(torch.tensor([[5, 6]]), decoder_input_ids=torch.tensor([[2]])).logits.numpy()


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


@pytest.mark.filterwarnings("ignore:another thread:RuntimeWarning")
def test_they_do_beside_threads_that_load_by_transformers(folders):
    functions = [*answers(folders), partial(logits_of_transformers, folders["translation"])]
    expected = [function() for function in functions] * 8
    assert all(map(np.array_equal, call_from_threads(functions * 8), expected))
    assert is_tied(VanillaTransformerForConditionalGeneration(tiny_config(**TWIN)))


@pytest.mark.filterwarnings("ignore:another thread:RuntimeWarning")
@pytest.mark.parametrize("variant", ["shared", "tied", "shared-and-tied"])
def test_a_model_is_tied_while_another_thread_keeps_transformers_from_it(tmp_path, variant):
    config = tiny_config(**VARIANTS[variant])
    save(random_model(config), tmp_path)
    folder = str(tmp_path)
    expected, texts = logits_of_transformers(folder), Translator(folder)(LINES[:3])
    model_class = VanillaTransformerForConditionalGeneration
    with no_tie_weights():
        assert is_tied(model_class(config)) and is_tied(load_to_train(model_class, folder, config))
        assert np.array_equal(logits_of_transformers(folder), expected)
        assert Translator(folder)(LINES[:3]) == texts


def test_the_model_file_may_be_imported_just_then():
    file = modeling_vanilla_transformer.__file__
    spec = importlib.util.spec_from_file_location("hf_vanilla_transformer.imported_again", file)
    module = importlib.util.module_from_spec(spec)
    with no_tie_weights():
        spec.loader.exec_module(module)
    assert is_tied(module.VanillaTransformerForConditionalGeneration(tiny_config(**TWIN)))


def test_a_model_in_which_another_threads_dtype_got_is_refused(folders, monkeypatch):
    """torch has one default dtype for all threads, and transformers sets it while it makes a model."""
    make = VanillaTransformerForSequenceClassification.__init__

    def make_beside_another_thread(self, config):
        torch.set_default_dtype(torch.bfloat16)
        make(self, config)

    with monkeypatch.context() as patch:
        patch.setattr(VanillaTransformerForSequenceClassification, "__init__", make_beside_another_thread)
        with pytest.raises(RuntimeError, match="another thread"):
            Classifier(folders["classification"]).probabilities(LINES[:3])
    Classifier(folders["classification"]).probabilities(LINES[:3])
