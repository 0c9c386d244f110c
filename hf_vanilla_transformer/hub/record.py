# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The record of a run: what made the model, and what was measured, in files beside it."""

import contextlib
import json
import platform
import subprocess
from collections.abc import Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from transformers import GenerationConfig, PreTrainedModel
from transformers.utils import cached_file

from ..data.sources import describe_splits, name_of
from ..settings.recipes import read_file, without_folders
from .curves import plot_training_curves


CARD_FILE = "README.md"
RECIPE_FILE = "recipe.yaml"
RUN_FILE = "run.json"
METRICS_FILE = "metrics.json"
CURVES_FILE = "curves.png"
PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "accelerate", "safetensors")


def save_record(
    folder: str,
    model: PreTrainedModel,
    *,
    metrics: dict[str, Any],
    settings: dict[str, Any],
    run: dict[str, Any],
    base_model: str | None = None,
) -> None:
    """Write a run's record: `metrics.json`, `curves.png`, `recipe.yaml`, `run.json` and `generation_config.json`.

    Args:
        metrics: The metrics of each split, and `epochs` of the function of that name, from which the curves are drawn.
        settings: The settings that reproduce the run: `recipe.yaml`.
        run: Entries of `run.json`; those that are None are left out:
            `seed` and `precision`;
            `data`, the result of `data_record`, and further entries about data, by name;
            `resumed_from`, the checkpoint that the run resumed from; the seconds of training are those since;
            `script`, that of a checkout which takes `settings`, if the package's command does not;
            `license`, of the weights, by its name on the Hub.
        base_model: The folder or Hub name of the model that was trained further.
    """
    save_json(Path(folder, METRICS_FILE), metrics)
    if "epochs" in metrics:
        plot_training_curves(metrics["epochs"], Path(folder, CURVES_FILE))
    Path(folder, RECIPE_FILE).write_text(recipe_text(without_folders(settings)), encoding="utf-8")
    generation_config = getattr(model, "generation_config", None) or GenerationConfig.from_model_config(model.config)
    generation_config.save_pretrained(folder)
    run = {name: value for name, value in run.items() if value is not None}
    content = {"parameters": model.num_parameters(), **run, **describe_environment(model.device)}
    if base_model:
        content |= {"parent_model": {"name": base_model}} if Path(base_model).is_dir() else {"base_model": base_model}
    save_json(Path(folder, RUN_FILE), without_folders(content))


def record_of(model: str, name: str) -> dict[str, Any]:
    """Read a file of the record in a folder or Hub repository; return an empty mapping if it has none."""
    file = None
    with contextlib.suppress(OSError):  # no such folder
        file = cached_file(model, name, _raise_exceptions_for_missing_entries=False)
    return read_file(Path(file)) if file else {}


def example_texts(folder: str) -> list[str]:
    """Return the texts of the data that a run's record shows; an empty list if the folder has none."""
    return record_of(folder, RUN_FILE).get("data", {}).get("validation", {}).get("examples", [])


def recipe_text(settings: dict[str, Any]) -> str:
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)


def save_json(file: str | Path, content: Any) -> None:
    Path(file).write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def data_record(source: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a run's data: their source, and each split's rows and checksum.

    The validation split gets `examples` for card and page: up to three short texts, each with a label of its own.
    """
    described: dict[str, Any] = {"source": name_of(source), **describe_splits(data)}
    head = data["validation"][:1000]
    texts = head["text" if "text" in head else "source"]
    examples: dict[str, str] = {}
    for text, label in zip(texts, head.get("label", [0] * len(texts)), strict=True):
        if len(text) <= 80:
            examples.setdefault(str(label), text)
    if examples:
        described["validation"]["examples"] = list(examples.values())[:3]
    return described


def world_size() -> int:
    """Return the number of processes that train together."""
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def describe_environment(device: torch.device | None = None) -> dict[str, Any]:
    """Describe where this process runs: commit (None outside a checkout), versions, device, processes, threads."""
    if device is None:
        device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    versions = {"python": platform.python_version()}
    for name in ("hf-vanilla-transformer", *PACKAGES):
        with contextlib.suppress(metadata.PackageNotFoundError):  # an export needs no [train]
            versions[name] = metadata.version(name)
    described = {"git_commit": git_commit(), "versions": versions, "device": str(device)}
    with contextlib.suppress(AttributeError):  # torch knows no properties of the CPU and of Apple's accelerator
        properties = torch.get_device_module(device).get_device_properties(device)
        described["accelerator"] = {"name": properties.name, "memory_gib": round(properties.total_memory / 2**30, 1)}
    return described | {"processes": world_size(), "threads": torch.get_num_threads()}


def git_commit() -> str | None:
    """Return the checkout's commit, and whether it has local changes; None outside a checkout."""
    package = Path(__file__).parents[1]
    git = partial(subprocess.run, cwd=package, capture_output=True, encoding="utf-8", check=True)
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        # The package may be installed inside another project's checkout, where git does not track this file.
        git(["git", "ls-files", "--error-unmatch", "__init__.py"])
        describe = ["git", "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty= with local changes"]
        return git(describe).stdout.strip()
    return None


def epochs(log_history: list[dict[str, float]]) -> list[dict[str, float]]:
    """List the evaluations in Trainer's log, `trainer.state.log_history`.

    Returns:
        For each evaluation `epoch`, `step`, `train_loss` (the mean since the last evaluation, None if nothing was
        logged) and its metrics. Without evaluations, the first three for each logged loss.
    """
    rows: list[dict[str, Any]] = []
    losses, steps, last_step = [], [], 0  # since the last evaluation; the last logging's step
    for entry in log_history:
        if "loss" in entry:
            losses.append(entry["loss"])
            steps.append(entry["step"] - last_step)
            last_step = entry["step"]
        elif "eval_loss" in entry:
            mean_loss = float(np.average(losses, weights=steps)) if losses else None
            names = [name for name in entry if name.startswith("eval_") and not name.endswith(("time", "per_second"))]
            values = {name: entry[name] for name in names}
            rows.append({"epoch": round(entry["epoch"], 3), "step": entry["step"], "train_loss": mean_loss, **values})
            losses, steps = [], []
    logged = [entry for entry in log_history if "loss" in entry]
    return rows or [{"epoch": one["epoch"], "step": one["step"], "train_loss": one["loss"]} for one in logged]
