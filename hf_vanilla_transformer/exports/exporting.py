# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Export a model: convert it, compare it with torch, and only then give it its folder."""

import importlib
from importlib import metadata
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..finished_folder import finished_folder
from ..hub.record import RECIPE_FILE, describe_environment, recipe_text, record_of, save_json
from ..inference.engine import EXPORT_FILE, TARGET_TOKENIZER, load_engine
from ..inference.folder import Tokenizers, load_model, load_tokenizers
from ..inference.torch_engine import TorchEngine
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel
from ..reading import read_settings
from ..recipes import without_folders
from ..settings import ExportArguments
from ..tasks import CLASSIFICATION, FORMATS, TRANSLATION, Format, task_of
from .card import save_card
from .comparison import compare


def export(model: str | Path, **settings: Any) -> dict[str, Any]:
    """Export a model to another engine, and compare it with torch; a folder that does not agree is not written.

        export("runs/mine", format="onnx", quantize="int8", output_dir="runs/int8")

    Args:
        model: A model's folder or Hub name.
        **settings: What `vanilla-transformer export --help` lists.

    Returns:
        The export's record, as in `export.json`.

    Raises:
        DataError: a setting is wrong, the model cannot be loaded or expressed in this format, the folder is not empty,
            or the export does not agree with the model.
        ImportError: an extra is not installed.
        OSError: a file cannot be written.
    """
    (arguments,), _ = read_settings([ExportArguments], None, {"model": model, **settings}, "export")
    source, quantize, form = arguments.model, arguments.quantize, FORMATS[arguments.format]
    with finished_folder(arguments.output_dir) as folder:
        network, tokenizers = load_exportable(source)
        check(network, form)
        # Imported after the checks: name a missing extra only if it would help.
        writer = importlib.import_module(f".{form.writer}", __package__)
        writer.write(network, tokenizers, folder, quantize)
        save_tokenizers(tokenizers, folder)
        if recipe := record_of(source, RECIPE_FILE):  # `evaluate` reads there which data the model learned
            (folder / RECIPE_FILE).write_text(recipe_text(recipe), encoding="utf-8")
        record = without_folders(make_record(source, network, form, quantize))
        save_json(folder / EXPORT_FILE, record)
        record["comparison"] = compare(
            TorchEngine(network), load_engine(str(folder)), tokenizers[0], folder, is_quantized=quantize is not None
        )
        save_json(folder / EXPORT_FILE, record)
        save_card(folder, record, tokenizers[0], writer.PROGRAMS[record["task"]], source)
    compared = record["comparison"]["random_texts"]
    *_, (name, same) = compared.items()
    print(
        f"{compared['texts']} random texts of 1 to {compared['longest']} tokens: greatest difference from torch "
        f"{compared['greatest_difference']:.1e}; {name.replace('_', ' ')} {same}"
    )
    print(f"{arguments.output_dir}: {record['task']} with {form.name}, {quantize or 'float32'}")
    return record


def check(model: VanillaTransformerPreTrainedModel, form: Format) -> None:
    """Check what every engine of a format needs; `write` checks the rest."""
    task = task_of_model(model)
    if task.name not in form.tasks:
        formats = " or ".join(other.name for other in FORMATS.values() if task.name in other.tasks)
        raise DataError(f"architectures: a {task.noun} is exported to {formats}, not to {form.name}")
    for name in ("decoder_start_token_id", *(["eos_token_id"] if task is TRANSLATION else [])):
        if getattr(model.config, name) is None:
            raise DataError(f"{name}: none, and other engines need one")


def load_exportable(folder: str) -> tuple[VanillaTransformerPreTrainedModel, Tokenizers]:
    """Load a classifier or translator in float32, with tokenizers that other engines can read."""
    model = load_model(folder, dtype="float32").eval()
    if task_of_model(model) is None:
        raise DataError(f"{folder}: neither classifier nor translator but a {type(model).__name__}")
    tokenizers = load_tokenizers(folder, model.config)
    if not all(one.is_fast for one in tokenizers):
        raise DataError(f"{folder}: its tokenizer is not a fast one, which other engines could read")
    return model, tokenizers


def save_tokenizers(tokenizers: Tokenizers, folder: Path) -> None:
    tokenizers[0].save_pretrained(folder)
    if tokenizers[1] is not tokenizers[0]:
        tokenizers[1].save_pretrained(folder / TARGET_TOKENIZER)


def make_record(
    source: str, model: VanillaTransformerPreTrainedModel, form: Format, quantize: str | None
) -> dict[str, Any]:
    """Make an export's record, without the comparison."""
    environment = describe_environment()
    environment["versions"] |= {name: metadata.version(name) for name in form.packages}
    task, config = task_of_model(model), model.config.to_dict()
    config.pop("_name_or_path", None)
    generation = getattr(model, "generation_config", None)
    record = {
        "format": form.name,
        "task": task.name,
        "quantize": quantize,
        "source": source,
        "parameters": model.num_parameters(),
        "config": config,
        "generation": None if generation is None else generation.to_diff_dict(),
        **environment,
    }
    if task is CLASSIFICATION:
        record["logits_without_tokens"] = TorchEngine(model).logits([[]], 1)[0].tolist()
    return record


def task_of_model(model: VanillaTransformerPreTrainedModel) -> Any:
    return task_of(type(model).__name__)
