# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Make a web page that runs a model in the browser and shows its attention; any host of static files can serve it."""

import contextlib
import functools
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ..errors import DataError
from ..finished_folder import finished_folder
from ..hub.card_text import markdown
from ..hub.model_card import load_model_card
from ..hub.record import example_texts, save_json
from ..inference.engine import ModelFacts, import_extra, labels_of
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel
from ..tasks import CLASSIFICATION, EXAMPLES, SINGLE, Task
from .exporting import load_exportable, save_tokenizers, task_of_model


class NpmPackage(NamedTuple):
    version: str
    files: dict[str, str]  # that the page needs, and the SHA-256 of each


RUNTIME = {
    "onnxruntime-web": NpmPackage(
        "1.30.0",
        {
            "dist/ort.wasm.bundle.min.mjs": "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
            "dist/ort-wasm-simd-threaded.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
        },
    ),
    "@huggingface/tokenizers": NpmPackage(
        "0.2.0",
        {
            "dist/tokenizers.min.mjs": "258e46332101335ce8d95aed7745b19ac3b46d37f3e159a89cf894c2ea9b1d3a",
            "LICENSE": "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4",
        },
    ),
}
README = """
# {name}

웹 브라우저 안에서 실행되는 인코더-디코더 Transformer입니다. 서버가 필요 없으며, 입력한 글은 기기 밖으로 나가지
않습니다.

An encoder-decoder Transformer that runs in the browser and shows its attention, made by `vanilla-transformer page`.
Any host of static files serves this folder; on this machine, `python -m http.server --bind 127.0.0.1` in it does.

`runtime/` holds files of the npm packages {packages}, with their licences.
"""


def make_page(
    model_folder: str, output_dir: str, *, runtime: str | None = None, examples: list[str] | None = None
) -> dict[str, Any]:
    """Make the page's folder; returns the page's settings, as in its `model/page.json`.

    Args:
        model_folder: The folder or Hub name of a classifier or a translator.
        output_dir: The page's folder. It must be empty or missing, and is left so if anything fails.
        runtime: A folder with the files of `RUNTIME`, such as another page's `runtime` or a `node_modules`; by default
            npm downloads them.
        examples: Texts that the page offers to try; by default those of the model's record, which has some of the
            validation split, or `EXAMPLES` of the model's language.

    Raises:
        ValueError: the folder is not empty, the model cannot be loaded or is neither classifier nor translator, its
            tokenizer is not fast, or the runtime cannot be downloaded or copied.
        ImportError: the extra `onnx` is not installed.
        OSError: a file cannot be written.
    """
    import_extra("onnxscript", "onnxscript", "onnx")  # by which torch writes ONNX files
    with finished_folder(output_dir) as folder:
        model, tokenizers = load_exportable(model_folder)
        if model.config.problem_type not in (None, SINGLE):
            raise DataError(f"{model_folder}: trained for {model.config.problem_type}, which gives no single label")
        with resources.as_file(resources.files(__package__) / "page") as static:
            shutil.copytree(static, folder, dirs_exist_ok=True)
        copy_runtime(folder / "runtime", runtime)
        _save_networks(model, folder / "model")
        save_tokenizers(tokenizers, folder / "model")
        settings = _settings(model, model_folder, examples)
        # transformers' number for "no limit" is beyond what JavaScript counts to.
        settings["max_length"] = min(tokenizers[0].model_max_length, model.config.max_position_embeddings)
        settings["max_characters"] = 64 * settings["max_length"]
        settings["target_tokenizer"] = tokenizers[1] is not tokenizers[0]
        settings["bytes"] = sum(file.stat().st_size for file in folder.rglob("*") if file.suffix in (".onnx", ".wasm"))
        save_json(folder / "model" / "page.json", settings)
        _save_readme(folder, settings["name"])
    return settings


def _save_networks(model: VanillaTransformerPreTrainedModel, folder: Path) -> None:
    from .graphs import save_classifier, save_decoder, save_encoder

    folder.mkdir()
    if task_of_model(model) is CLASSIFICATION:
        save_classifier(model, folder / "classifier.onnx", for_page=True)
    else:
        save_encoder(model, folder / "encoder.onnx")
        save_decoder(model, folder / "decoder.onnx")


def _settings(
    model: VanillaTransformerPreTrainedModel, model_folder: str, examples: list[str] | None
) -> dict[str, Any]:
    config = model.config
    task: Task = task_of_model(model)
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
        return settings | {"labels": labels_of(config)}
    return settings | {
        "start": config.decoder_start_token_id,
        "end": ModelFacts.of(config).end_token_ids,
        "max_target_length": config.max_target_positions,
        "target_vocab_size": config.target_vocab_size,
    }


def _save_readme(folder: Path, name: str) -> None:
    # The head makes the folder a static Space on the Hub.
    head = {"title": name, "emoji": "🔎", "colorFrom": "blue", "colorTo": "indigo", "sdk": "static", "pinned": False}
    packages = " and ".join(f"{package} {version}" for package, (version, _) in RUNTIME.items())
    text = f"---\n{yaml.safe_dump(head, allow_unicode=True, sort_keys=False)}---\n"
    (folder / "README.md").write_text(text + README.format(name=markdown(name), packages=packages), encoding="utf-8")


def copy_runtime(folder: Path, source: str | None = None) -> None:
    """Copy the files of `RUNTIME` from a folder that has them side by side or as npm installs them, or from npm."""
    folder.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        if source is None:
            source = stack.enter_context(tempfile.TemporaryDirectory())
            _download_runtime(Path(source))
        for package, (version, files) in RUNTIME.items():
            for path, checksum in files.items():
                places = (Path(source, package, path), Path(source, Path(path).name))
                place = next((place for place in places if place.is_file()), None)
                if place is None:
                    raise DataError(f"{source}: lacks {places[1].name}, of the npm package {package} {version}")
                content = place.read_bytes()
                if hashlib.sha256(content).hexdigest() != checksum:
                    raise DataError(f"{place}: not the file of the npm package {package} {version}")
                (folder / place.name).write_bytes(content)


def _download_runtime(folder: Path) -> None:
    npm = shutil.which("npm")
    hint = "or give the files by --runtime FOLDER"
    if npm is None:
        raise DataError(f"npm, which downloads the page's runtime, is not installed: install Node.js, {hint}")
    names = [f"{package}@{version}" for package, (version, _) in RUNTIME.items()]
    command = [npm, "pack", "--json", "--pack-destination", str(folder), *names]
    # Beside the folder: a project's own settings of npm are not for this.
    result = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        reason = " ".join(line.removeprefix("npm error").strip() for line in result.stderr.splitlines()[:3])
        raise DataError(f"npm could not download {' and '.join(names)}: try again, {hint} ({reason})")
    for packed in json.loads(result.stdout):
        with tarfile.open(folder / packed["filename"]) as archive:
            for path in RUNTIME[packed["name"]].files:
                target = folder / packed["name"] / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.extractfile(f"package/{path}").read())


class _Handler(SimpleHTTPRequestHandler):
    # Windows may have other ideas of what a script is, and browsers insist.
    extensions_map = SimpleHTTPRequestHandler.extensions_map | dict.fromkeys((".js", ".mjs"), "text/javascript")
    extensions_map |= {".wasm": "application/wasm"}
    timeout = 30  # seconds in which a client may be silent

    def send_head(self):
        """As in the base class, but no link out of the folder is followed, and no folder is listed.

        Only who asks for this machine is answered: any site can let its own name point here (DNS rebinding).
        """
        if not re.fullmatch(r"(127\.0\.0\.1|localhost)(:\d+)?", self.headers.get("Host", ""), re.IGNORECASE):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        file, root = Path(self.translate_path(self.path)), Path(self.directory).resolve()
        file = file / "index.html" if file.is_dir() else file
        if file.is_file() and file.resolve().is_relative_to(root):
            return super().send_head()
        self.send_error(HTTPStatus.NOT_FOUND)
        return None

    def log_message(self, *_):
        """Requests are not printed."""


def page_server(folder: str, port: int = 8000) -> ThreadingHTTPServer:
    """A web server for a page's folder that only this machine reaches; port 0 means any free one.

    Raises:
        OSError: the port is taken, or is no port.
    """
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), functools.partial(_Handler, directory=folder))
    except (OSError, OverflowError) as error:
        raise OSError(f"port {port}: {getattr(error, 'strerror', error)}") from error
