"""Precision follows the machine: what is faster there, measured once."""

import pytest
import torch
from shared import QUIET, TINY, read_json

from hf_vanilla_transformer.inference import load_engine
from hf_vanilla_transformer.settings import precision
from hf_vanilla_transformer.settings.precision import bfloat16_speedup, choose_precision


@pytest.fixture(params=[4.0, 0.08], ids=["in hardware", "emulated"])
def speedup(request, monkeypatch) -> float:
    """How bfloat16 compares on this CPU, which has no accelerator beside it."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(precision, "bfloat16_speedup", lambda: request.param)
    return request.param


def test_a_cpu_is_measured_once():
    bfloat16_speedup.cache_clear()
    threads = torch.get_num_threads()
    assert 0 < bfloat16_speedup() == bfloat16_speedup() < 100
    assert torch.get_num_threads() == threads and bfloat16_speedup.cache_info().misses == 1


@pytest.mark.parametrize("supported", [True, False])
def test_an_accelerator_computes_in_bfloat16_if_it_has_it(supported, speedup, monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(precision, "is_torch_bf16_gpu_available", lambda: supported)
    assert [choose_precision(name) for name in ("float32", "bfloat16")] == ["float32", "bfloat16"]
    assert choose_precision("auto") == ("bfloat16" if supported else "float32")
    assert choose_precision("auto", use_cpu=True) == ("bfloat16" if speedup > 1 else "float32")


def test_a_model_for_inference_says_what_auto_chose(speedup, caplog, tiny_models):
    folder = str(tiny_models["classification"])
    assert [load_engine(folder, name).precision for name in ("float32", "bfloat16")] == ["float32", "bfloat16"]
    assert "Computing in" not in caplog.text
    chosen = "bfloat16" if speedup > 1 else "float32"
    assert load_engine(folder, "auto").precision == chosen and f"Computing in {chosen}" in caplog.messages


@pytest.mark.parametrize("speedup", [4.0], indirect=True)
def test_a_run_follows_the_machine_and_records_it(succeed, tmp_path, speedup):
    flags = [*TINY, *QUIET, "--max_steps", "2", "--eval_strategy", "no", "--precision", "auto"]
    out = succeed("train-classifier", "--data", "sample", "--output_dir", tmp_path, *flags)
    assert read_json(tmp_path / "run.json")["precision"] == "bfloat16"
    assert "Computing in bfloat16" in out.splitlines()
