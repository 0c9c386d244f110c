# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Export a model: convert it, compare it with torch, and only then give it its folder."""

import importlib
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError
from ..finished_folder import finished_folder
from ..hub.record import describe_environment, save_json
from ..inference.engine import ENGINES, EXPORT_FILE, NOUNS, TASKS, load_engine
from ..inference.folder import TARGET_TOKENIZER, Tokenizers, load_model, load_tokenizers
from ..inference.pytorch import TorchEngine
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel
from . import native
from .card import save_card
from .proof import prove


class Format(NamedTuple):
    """A format that models can be written in.

    `module` has the function `write(model, tokenizers, folder, quantize)`. It takes a classifier or a translator in
    float32, on the CPU, in evaluation mode; its fast tokenizers of source and target, the same one twice where there
    is one vocabulary; an empty folder, which tokenizers and record are added to; and one of `quantizations`, or None
    for float32. Its ValueError begins with the configuration's field that the format cannot express. With
    quantizations, the module has `rounded(model)`, a copy of the model in torch that rounds as the engine does.
    """

    module: str
    quantizations: tuple[str, ...] = ()
    # Packages besides torch and transformers whose versions the record has.
    packages: tuple[str, ...] = ()


FORMATS = {
    "ctranslate2": Format("ctranslate2", ("int8",), ("ctranslate2",)),
    "onnx": Format("onnx", ("int8",), ("onnx", "onnxruntime")),
    "transformers": Format("native"),
}


def export(
    model_folder: str, output_dir: str, format: str, quantize: str | None = None, texts: list[str] | None = None
) -> dict[str, Any]:
    """Export a model, prove that the export agrees with it, and write both into a folder.

    Args:
        model_folder: A model's folder or Hub name.
        output_dir: The folder for the export. It must be empty or missing, and is left so if anything fails.
        format: One of `FORMATS`.
        quantize: The precision of the weights, `"int8"`; by default float32.
        texts: Texts for the proof besides random ids, such as those of the validation split.

    Returns:
        The export's record, as in `export.json`.

    Raises:
        ValueError: there is no such format, the folder is not empty, the model cannot be loaded or expressed in this
            format, or the export does not agree with it.
        ImportError: an extra is not installed.
        OSError: a file cannot be written.
    """
    if format not in FORMATS:
        raise DataError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    form = FORMATS[format]
    if quantize is not None and quantize not in form.quantizations:
        raise DataError(f"quantize: {quantize!r} is not for {format} ({', '.join(form.quantizations) or 'none is'})")
    with finished_folder(output_dir) as folder:
        writer = importlib.import_module(f".{form.module}", __package__)
        model, tokenizers = load_exportable(model_folder)
        check(model, format)
        writer.write(model, tokenizers, folder, quantize)
        save_tokenizers(tokenizers, folder)
        record = make_record(model_folder, model, format, quantize)
        save_json(folder / EXPORT_FILE, record)
        record["proof"] = prove(
            TorchEngine(model),
            load_engine(str(folder)),
            rounded=None if quantize is None else TorchEngine(writer.rounded(model)),
            tokenizer=tokenizers[0],
            folder=folder,
            texts=texts or [],
        )
        save_json(folder / EXPORT_FILE, record)
        save_card(folder, record, tokenizers[0], Path(output_dir).name)
    return record


def restore(folder: str, output_dir: str) -> None:
    """Make a folder of this package's model from its native twin, which may have been trained further.

    Args:
        folder: An export in the format `transformers`; else a ValueError.
        output_dir: The folder for the model. It must be empty or missing, and is left so if anything fails.
    """
    with finished_folder(output_dir) as made:
        model = native.restore(folder)
        model.save_pretrained(made)
        save_tokenizers(load_fast_tokenizers(folder, model), made)


def check(model: VanillaTransformerPreTrainedModel, format: str) -> None:
    """Check what every engine of a format needs; `write` checks the rest."""
    task = TASKS[type(model).__name__]
    if (format, task) not in ENGINES:
        formats = " or ".join(name for name, other in ENGINES if other == task)
        raise DataError(f"architectures: a {NOUNS[task]} is exported to {formats}, not to {format}")
    for name in ("decoder_start_token_id", *(["eos_token_id"] if task == "translation" else [])):
        if getattr(model.config, name) is None:
            raise DataError(f"{name}: none, and other engines need one")


def load_exportable(folder: str) -> tuple[VanillaTransformerPreTrainedModel, Tokenizers]:
    model = load_model(folder, dtype="float32").eval()
    if type(model).__name__ not in TASKS:
        raise DataError(f"{folder}: neither classifier nor translator but a {type(model).__name__}")
    return model, load_fast_tokenizers(folder, model)


def load_fast_tokenizers(folder: str, model: VanillaTransformerPreTrainedModel) -> Tokenizers:
    tokenizers = load_tokenizers(folder, model.config)
    if not all(one.is_fast for one in tokenizers):
        raise DataError(f"{folder}: its tokenizer is not a fast one, which other engines could read")
    return tokenizers


def save_tokenizers(tokenizers: Tokenizers, folder: Path) -> None:
    tokenizers[0].save_pretrained(folder)
    if tokenizers[1] is not tokenizers[0]:
        tokenizers[1].save_pretrained(folder / TARGET_TOKENIZER)


def make_record(
    model_folder: str, model: VanillaTransformerPreTrainedModel, format: str, quantize: str | None
) -> dict[str, Any]:
    """An export's record without its proof; `load_engine` needs `format`, `quantize`, `config` and `generation`."""
    environment = describe_environment()
    environment["versions"] |= {name: metadata.version(name) for name in FORMATS[format].packages}
    generation = getattr(model, "generation_config", None)
    config = model.config.to_dict()
    config.pop("_name_or_path", None)
    answer = {}
    if TASKS[type(model).__name__] == "classification":
        answer["logits_without_tokens"] = TorchEngine(model).logits([[]], 1)[0].tolist()
    return {
        "format": format,
        "task": TASKS[type(model).__name__],
        "quantize": quantize,
        "source": model_folder,
        "parameters": model.num_parameters(),
        "config": config,
        "generation": None if generation is None else generation.to_diff_dict(),
        **answer,
        **environment,
    }
