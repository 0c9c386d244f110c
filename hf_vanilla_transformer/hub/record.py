# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The record of a run: what made the model, and what was measured, in files beside it."""

import contextlib
import json
import platform
import re
import reprlib
import subprocess
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from glob import glob, has_magic
from importlib import metadata
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
import yaml
from transformers import GenerationConfig, PreTrainedModel, TrainerState, TrainingArguments
from transformers.utils import cached_file

from ..data.checksums import describe_splits
from ..data.in_memory import name_of
from ..errors import DataError, named_errors
from ..figures import plot_training_curves
from ..inference.engine import EXPORT_FILE, TARGET_TOKENIZER
from ..reading import NOT_IN_RECIPE
from ..recipes import read_yaml, without_folders
from ..tasks import FORMATS


RECIPE_FILE = "recipe.yaml"
RUN_FILE = "run.json"
METRICS_FILE = "metrics.json"
CURVES_FILE = "curves.png"
PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "accelerate", "safetensors")
_VOCABULARIES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "source.spm",
    "target.spm",
    "spiece.model",
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "spm.model",
    "tokenizer.model",
)
_TOKENIZERS = _VOCABULARIES + tuple(f"{TARGET_TOKENIZER}/{name}" for name in _VOCABULARIES)
# What is sent to the Hub of a run, an export and a page, as patterns; keys and data may lie beside it. Weights and
# vocabularies have more than one form.
REQUIRED_FILES = (
    "config.json",
    "configuration_vanilla_transformer.py",
    "modeling_vanilla_transformer.py",
    "generation_config.json",
    "tokenizer_config.json",
    METRICS_FILE,
    RECIPE_FILE,
    RUN_FILE,
    CURVES_FILE,
)
RUN_FILES = (
    *REQUIRED_FILES,
    "README.md",
    "model.safetensors",
    "model.safetensors.index.json",
    f"model-{'[0-9]' * 5}-of-{'[0-9]' * 5}.safetensors",
    *_TOKENIZERS,
    "adapter_config.json",
    "adapter_model.safetensors",
)
REQUIRED_IN_EXPORT = ("README.md", "config.json", EXPORT_FILE, "tokenizer.json")
EXPORT_FILES = (
    *REQUIRED_IN_EXPORT,
    RECIPE_FILE,
    *(file for form in FORMATS.values() for file in form.files),
    *_TOKENIZERS,
)
PAGE_FILES = (
    "README.md",
    "index.html",
    "app.js",
    "attention.js",
    "engine.js",
    "style.css",
    "words.json",
    "model/classifier.onnx",
    "model/encoder.onnx",
    "model/decoder.onnx",
    "model/page.json",
    *(f"model/{name}" for name in _TOKENIZERS),
    "runtime/*.mjs",
    "runtime/*.wasm",
    "runtime/LICENSE*",
    "runtime/NOTICE.txt",
)
# Hidden files, keys, tokens and what describes the machine, in lower case: no wildcard of a user sends them.
SECRETS = (
    ".*",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.kdbx",
    "*api_key*",
    "*api-key*",
    "*apikey*",
    "*access_key*",
    "*private_key*",
    "*.env",
    "*netrc",
    "*passwd*",
    "*token",
    "*token.txt",
    "*secret*",
    "*credential*",
    "*password*",
    "training_args.bin",
)


def exports_in(folder: Path) -> list[Path]:
    """The exports in a run's folder, relative to it; of an export's own folder `.`."""
    return [file.parent.relative_to(folder) for place in (".", "*") for file in folder.glob(f"{place}/{EXPORT_FILE}")]


def listed_files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """The sorted files of a folder that match a pattern, relative to it; a DataError of a link that leads out."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    found = sorted({file for pattern in patterns for file in matching(folder, pattern)})
    for file in found:
        if not leads_inside(folder, folder / file):
            raise DataError(f"{folder / file}: a link that leads out of the folder; put the file itself there")
    return found


def included_files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """The files that a user's patterns name, relative to the folder. What is secret must be named without a wildcard.

    Raises:
        DataError: a pattern matches nothing, or what cannot be sent.
    """
    found: set[Path] = set()
    for pattern in patterns:
        if ".." in Path(pattern).parts:
            raise DataError(f"{folder}: {pattern} has the part `..`, which may lead out of the folder")
        files = [
            file for file in matching(folder, pattern, include_hidden=False) if leads_inside(folder, folder / file)
        ]
        if any(".git" in file.parts for file in files):
            raise DataError(f"{folder}: {pattern} is in .git, which the Hub does not take")
        if has_magic(pattern):
            parts = {file: [part.lower() for part in file.parts] for file in files}
            files = [one for one in files if not any(fnmatchcase(part, key) for part in parts[one] for key in SECRETS)]
        if not files:
            raise DataError(f"{folder}: nothing to send is called {pattern}")
        found.update(files)
    return sorted(found)


def matching(folder: Path, pattern: str, **options: Any) -> list[Path]:
    """The files that match a pattern, relative to the folder, hidden ones, too."""
    names = glob(pattern, root_dir=folder, recursive=True, **{"include_hidden": True, **options})
    return [Path(name) for name in names if (folder / name).is_file() and not Path(name).is_absolute()]


def leads_inside(folder: Path, file: Path) -> bool:
    """Whether a file of a folder is not a link that leads out of it."""
    return file.resolve().is_relative_to(folder.resolve())


def save_record(
    folder: str,
    model: PreTrainedModel,
    *,
    metrics: dict[str, Any],
    settings: dict[str, Any],
    seed: int,
    precision: str,
    data: dict[str, Any],
    resumed_from: str | None,
    base_model: str | None = None,
    own_trainer: bool = False,
    script: str | None = None,
    license: str | None = None,
) -> None:
    """Write a run's record: `metrics.json`, `curves.png`, `recipe.yaml`, `run.json` and `generation_config.json`.

    Args:
        metrics: The metrics of each split. If they include the result of `epochs()`, the curves are drawn.
        settings: The settings that reproduce the run: `recipe.yaml`.
        data: As from `data_record`, with further entries about the data, by name.
        resumed_from: The checkpoint that the run resumed from; the seconds of training are those since.
        base_model: The model that was trained further: `run.json` includes the record in its folder, or its Hub name.
        own_trainer: Whether the user's own Trainer trained the model, not a command; `settings` are its arguments.
        script: The script of a checkout that takes `settings`, if the package's command does not.
        license: The licence of the weights, by its name on the Hub.
    """
    save_json(Path(folder, METRICS_FILE), metrics)
    if "epochs" in metrics:
        plot_training_curves(metrics["epochs"], own_file(Path(folder, CURVES_FILE)))
    own_file(Path(folder, RECIPE_FILE)).write_text(recipe_text(without_folders(settings)), encoding="utf-8")
    generation_config = getattr(model, "generation_config", None) or GenerationConfig.from_model_config(model.config)
    generation_config.save_pretrained(folder)
    run = {
        "parameters": model.num_parameters(),
        "seed": seed,
        "precision": precision,
        "resumed_from": None if resumed_from is None else Path(resumed_from).name,
        "own_trainer": own_trainer,
        "data": data,
        **describe_environment(model.device),
    }
    optional: dict[str, Any] = {"script": script, "license": license}
    if base_model is not None and Path(base_model).is_dir():
        files = {"recipe": RECIPE_FILE, "run": RUN_FILE, "metrics": METRICS_FILE}
        with contextlib.suppress(OSError, ValueError):  # no record can be read there
            before = {name: read_file(Path(base_model, file)) for name, file in files.items()}
            before["metrics"].pop("epochs", None)
            optional["began_as"] = before
    else:
        optional["base_model"] = base_model  # on the Hub, with a card of its own
    run |= {name: value for name, value in optional.items() if value}
    save_json(Path(folder, RUN_FILE), without_folders(run))


def read_file(file: Path) -> dict[str, Any]:
    """A file of a record. Not all as YAML: it reads a number like 1e-05 as a string.

    Raises:
        OSError, ValueError: the file cannot be read, or holds no mapping.
    """
    with named_errors(str(file), "content"):
        content = json.loads(file.read_bytes()) if file.suffix == ".json" else read_yaml(file)
        text = json.dumps(content, ensure_ascii=False, indent=1)  # it is plain JSON, and without half characters,
        json.loads(text.encode(), parse_int=lambda digits: int(digits) / 1)  # and floats can hold its numbers
        if re.search("^ {100}", text, re.MULTILINE):
            raise ValueError("more than 100 levels")
    if not isinstance(content, dict):
        raise DataError(f"{file}: holds no mapping of names to values")
    return content


def recipe_of(model: str, group: type, *names: str) -> dict[str, Any]:
    """A dataclass's settings, or some, in the recipe of a model or an export.

    Raises:
        DataError: one has another type.
    """
    recipe, kinds = record_of(model, RECIPE_FILE), get_type_hints(group)
    found = {name: recipe[name] for name in names or kinds if name in recipe}
    for name, value in found.items():
        if not isinstance(value, (kinds[name], int if kinds[name] in (float, float | None) else kinds[name])):
            raise DataError(f"{model}: {name} in the recipe is {reprlib.repr(value)}, of another type")
    return found


def record_of(model: str, name: str) -> dict[str, Any]:
    """A file of the record of a model or an export; nothing where there is none."""
    file = None
    with contextlib.suppress(OSError):  # no such folder
        file = cached_file(model, name, _raise_exceptions_for_missing_entries=False)
    return read_file(Path(file)) if file else {}


def example_texts(folder: str) -> list[str]:
    """Texts of the run's own data, where its record has some."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return list(map(str, read_file(Path(folder, RUN_FILE))["data"]["validation"]["examples"]))
    return []


def recipe_text(settings: dict[str, Any]) -> str:
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)


def json_text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def data_record(source: Any, data: Mapping[str, Any], dropped: Mapping[str, int] | None = None) -> dict[str, Any]:
    """What a record says about data: their source, each split's rows and checksum, rows left out by reason.

    Also `examples` for card and page: short texts of the validation split, of up to three labels one each.
    """
    described: dict[str, Any] = {"source": name_of(source), **describe_splits(data)}
    if dropped:
        described["dropped"] = dict(dropped)
    head = data["validation"][:1000] if "validation" in data else {}
    texts = head.get("text") or head.get("source") or []
    examples: dict[str, str] = {}
    for text, label in zip(texts, head.get("label") or [0] * len(texts), strict=True):
        if isinstance(text, str) and len(text) <= 80:
            examples.setdefault(str(label), text)
    if examples:
        described["validation"]["examples"] = list(examples.values())[:3]
    return described


def world_size() -> int:
    """The number of processes that train together."""
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def describe_environment(device: torch.device | None = None) -> dict[str, Any]:
    """Commit (None outside a checkout), versions, device, processes and threads of this run.

    Args:
        device: By default this machine's accelerator, or the processor. Of an accelerator, `accelerator` holds the
            name, the memory in GiB and the driver, as far as torch and nvidia-smi tell them.
    """
    if device is None:
        device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    return {
        "git_commit": _git_commit(),
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}},
        "device": str(device),
        **({} if device.type == "cpu" else {"accelerator": _describe_accelerator(device)}),
        "processes": world_size(),
        "threads": torch.get_num_threads(),
    }


def _describe_accelerator(device: torch.device) -> dict[str, Any]:
    described: dict[str, Any] = {}
    with contextlib.suppress(AttributeError):  # Apple's tells nothing
        properties = torch.get_device_module(device).get_device_properties(device)
        described |= {"name": properties.name, "memory_gib": round(properties.total_memory / 2**30, 1)}
    if device.type == "cuda":
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
            printed = subprocess.run(query, capture_output=True, encoding="utf-8", check=True).stdout
            described["driver"] = printed.splitlines()[0] if printed else None
    return described


def _git_commit() -> str | None:
    def git(*words: str) -> str:
        answer = subprocess.run(["git", *words], cwd=package, capture_output=True, encoding="utf-8", check=True)
        return answer.stdout.strip()

    package = Path(__file__).parents[1]
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        # The package may be installed inside another project's checkout, where git does not track this file.
        git("ls-files", "--error-unmatch", "__init__.py")
        changed = git("status", "--porcelain", "--untracked-files=no", ".")
        return git("rev-parse", "HEAD") + (" with local changes" if changed else "")
    return None


def epochs(log_history: list[dict[str, float]]) -> list[dict[str, float]]:
    """The evaluations during training, from Trainer's log, `trainer.state.log_history`.

    Returns:
        For each evaluation `epoch`, `step`, `train_loss` (the mean since the last evaluation, None if nothing was
        logged) and its metrics. Without evaluations, the first three for each logged loss.
    """
    rows: list[dict[str, Any]] = []
    losses, steps, last_step = [], [], 0
    for entry in log_history:
        if "loss" in entry:
            losses.append(entry["loss"])
            steps.append(entry["step"] - last_step)
            last_step = entry["step"]
        elif "eval_loss" in entry:
            row = {
                "epoch": round(entry["epoch"], 3),
                "step": entry["step"],
                "train_loss": float(np.average(losses, weights=steps)) if losses else None,
                **{name: entry[name] for name in entry if name.startswith("eval_") and "per_second" not in name},
            }
            rows.append(row)
            losses, steps = [], []
    return rows or [
        {"epoch": entry["epoch"], "step": entry["step"], "train_loss": entry["loss"]}
        for entry in log_history
        if "loss" in entry
    ]


def metrics_of_log(arguments: TrainingArguments, state: TrainerState) -> dict[str, Any]:
    """A record's metrics, from the log of a Trainer that has trained.

    Returns:
        `best_step`, `training_seconds`, `epochs`; `train` with the mean loss, `training_loss`; and `validation` with
        the evaluation of the final model, during training or after it. Evaluations of several data sets are left out.
    """
    step, log = best_step(arguments, state), state.log_history
    end = max(place for place, entry in enumerate(log) if "train_runtime" in entry)
    ended = log[end]
    if any("eval_loss" in entry and entry["step"] == step for entry in log[:end]):
        log = log[:end]  # what is evaluated afterwards may be other data, such as the test split
    metrics: dict[str, Any] = {
        "best_step": step,
        "training_seconds": round(ended["train_runtime"], 1),
        "epochs": epochs(log),
        "train": {"training_loss": ended["train_loss"]},
    }
    left_out = ("eval_runtime", "eval_model_preparation_time")
    for row in metrics["epochs"]:
        if row["step"] == step and "eval_loss" in row:
            names = [name for name in row if name.startswith("eval_") and name not in left_out]
            metrics["validation"] = {name.removeprefix("eval_"): row[name] for name in names}
    return metrics


def own_file(file: str | Path) -> Path:
    """The path of a file to write; a link of that name is removed, so that nothing is written elsewhere."""
    file = Path(file)
    if file.is_symlink():
        file.unlink()
    return file


def save_json(file: str | Path, content: Any) -> None:
    own_file(file).write_text(json_text(content), encoding="utf-8")


def best_step(arguments: TrainingArguments, state: TrainerState) -> int:
    """The step whose weights a Trainer holds after `train`: the best one if it loaded that, else the last."""
    if arguments.load_best_model_at_end and state.best_model_checkpoint:
        return int(Path(state.best_model_checkpoint).name.rsplit("-", 1)[1])
    return state.global_step


def changed_arguments(arguments: TrainingArguments) -> dict[str, Any]:
    """The arguments that differ from their defaults, by name, without those that belong to one machine or one call."""
    # Without use_configured_state, new arguments would reset accelerate's state under the Trainer.
    state = {"use_configured_state": True}
    defaults = type(arguments)(arguments.output_dir, use_cpu=arguments.use_cpu, accelerator_config=state).to_dict()
    return {
        name: value
        for name, value in arguments.to_dict().items()
        if value != defaults[name] and name not in NOT_IN_RECIPE
    }
