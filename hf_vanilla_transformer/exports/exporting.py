# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Export a model: convert it, compare it with torch, and only then give it its folder."""

import importlib
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..finished_folder import finished_folder
from ..hub.record import RECIPE_FILE, describe_environment, recipe_of, recipe_text, record_of, save_json
from ..inference.engine import EXPORT_FILE, TARGET_TOKENIZER, load_engine
from ..inference.folder import Tokenizers, load_model, load_tokenizers
from ..inference.torch_engine import TorchEngine
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel
from ..reading import read_settings
from ..recipes import without_folders
from ..settings import ExportArguments, LabelledTextArguments, PairArguments
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
    folder = arguments.model
    record = write_export(
        folder, arguments.output_dir, FORMATS[arguments.format], arguments.quantize, validation_texts(folder)
    )
    for kind, title in (("validation_texts", "texts of the validation split"), ("random_texts", "random texts")):
        if found := record["comparison"].get(kind):
            same = [f"; {name.replace('_', ' ')} {found[name]}" for name in found if name.startswith("same_")]
            print(
                f"{found['texts']} {title} of 1 to {found['longest']} tokens: greatest difference from torch "
                f"{found['greatest_difference']:.1e}{''.join(same)}"
            )
    print(f"{arguments.output_dir}: {record['task']} with {record['format']}, {record['quantize'] or 'float32'}")
    return record


def validation_texts(folder: str, most: int = 200) -> list[str]:
    """The first texts of the run's validation split, where its recipe names data that are here."""
    try:
        recipe = record_of(folder, RECIPE_FILE)
        pairs = {"source_column", "target_column", "data"} <= recipe.keys()
        group: Any = PairArguments if pairs else LabelledTextArguments
        settings = recipe_of(folder, group)
        source = settings.get("data", "sample")
        if not recipe or source != "sample" and not Path(source).expanduser().exists():
            return []
        print(f"Reading {source}, the data of the model's recipe", file=sys.stderr)
        data = group(**settings).load(**({} if pairs else {"problem_type": recipe.get("problem_type")}))
    except (OSError, ValueError) as error:
        print(f"No texts of the validation split: {error}")
        return []
    return data["validation"]["source" if pairs else "text"][:most]


def write_export(
    model_folder: str, output_dir: str, form: Format, quantize: str | None = None, texts: Sequence[str] = ()
) -> dict[str, Any]:
    """Write an export that agrees with its model; `texts` are compared besides random ids. Errors as in `export`."""
    if quantize is not None and quantize not in form.quantizations:
        raise DataError(
            f"quantize: {quantize!r} is not for {form.name} ({', '.join(form.quantizations) or 'none is'})"
        )
    with finished_folder(output_dir) as folder:
        model, tokenizers = load_exportable(model_folder)
        check(model, form)
        # Last: a missing extra is named only where it would help.
        writer = importlib.import_module(f".{form.writer}", __package__)
        writer.write(model, tokenizers, folder, quantize)
        save_tokenizers(tokenizers, folder)
        record = without_folders(make_record(model_folder, model, form, quantize))
        save_json(folder / EXPORT_FILE, record)
        if recipe := record_of(model_folder, RECIPE_FILE):  # `evaluate` reads there which data the model learned
            (folder / RECIPE_FILE).write_text(recipe_text(recipe), encoding="utf-8")
        record["comparison"] = compare(
            TorchEngine(model),
            load_engine(str(folder)),
            is_quantized=quantize is not None,
            tokenizer=tokenizers[0],
            folder=folder,
            texts=[*texts],
        )
        save_json(folder / EXPORT_FILE, record)
        save_card(folder, record, tokenizers[0], Path(output_dir).name, model_folder)
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
    model = load_model(folder, dtype="float32").eval()
    if task_of(type(model).__name__) is None:
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
    model_folder: str, model: VanillaTransformerPreTrainedModel, form: Format, quantize: str | None
) -> dict[str, Any]:
    """An export's record but for the comparison."""
    environment = describe_environment()
    environment["versions"] |= {name: metadata.version(name) for name in form.packages}
    generation = getattr(model, "generation_config", None)
    config = model.config.to_dict()
    config.pop("_name_or_path", None)
    answer = {}
    if task_of_model(model) is CLASSIFICATION:
        answer["logits_without_tokens"] = TorchEngine(model).logits([[]], 1)[0].tolist()
    return {
        "format": form.name,
        "task": task_of_model(model).name,
        "quantize": quantize,
        "source": model_folder,
        "parameters": model.num_parameters(),
        "config": config,
        "generation": None if generation is None else generation.to_diff_dict(),
        **answer,
        **environment,
    }


def task_of_model(model: VanillaTransformerPreTrainedModel) -> Any:
    return task_of(type(model).__name__)
