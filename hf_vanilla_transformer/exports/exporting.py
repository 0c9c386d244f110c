# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Export a model: write it for another engine, compare it with torch, and only then give it its folder."""

import importlib
import json
import shlex
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData
from transformers import PreTrainedTokenizerBase

from ..data.errors import DataError
from ..hub.finished_folder import finished_folder
from ..hub.model_card import card_template, load_model_card
from ..hub.record import CARD_FILE, RECIPE_FILE, describe_environment, recipe_text, record_of, save_json
from ..inference.engine import EXPORT_FILE, TARGET_TOKENIZER, ModelFacts, load_engine
from ..inference.folder import load_model, load_tokenizers, task_of_folder
from ..inference.torch_engine import TorchEngine
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel
from ..settings.groups import ExportArguments
from ..settings.reading import read_settings
from ..settings.recipes import without_folders
from ..settings.tasks import CLASSIFICATION, EXAMPLES, FORMATS, TASKS, Task
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
    form = FORMATS[arguments.format]
    with finished_folder(arguments.output_dir) as folder:
        task = task_of_folder(arguments.model)
        if task.name not in form.tasks:
            formats = " or ".join(other.name for other in FORMATS.values() if task.name in other.tasks)
            raise DataError(f"{arguments.model}: a {task.noun} is exported to {formats}, not to {form.name}")
        network = load_model(arguments.model, dtype="float32").eval()
        tokenizers = load_tokenizers(arguments.model, network.config)
        if not all(one.is_fast for one in tokenizers):
            raise DataError(f"{arguments.model}: its tokenizer is not a fast one, and other engines read no other")
        # Imported last: name a missing extra only if it would help.
        writer = importlib.import_module(f".{form.writer}", __package__)
        writer.write(network, tokenizers, folder, arguments.quantize)
        tokenizers[0].save_pretrained(folder)
        if tokenizers[1] is not tokenizers[0]:
            tokenizers[1].save_pretrained(folder / TARGET_TOKENIZER)
        if recipe := record_of(arguments.model, RECIPE_FILE):  # `evaluate` reads there which data the model learned
            (folder / RECIPE_FILE).write_text(recipe_text(recipe), encoding="utf-8")
        network = load_model(arguments.model, dtype="float32").eval()  # whatever the writer has done to the other
        record = make_record(arguments, network, task)
        save_json(folder / EXPORT_FILE, record)  # the engine reads it
        engines = TorchEngine(network), load_engine(str(folder))
        compared = compare(*engines, tokenizers[0], folder, is_quantized=arguments.quantize is not None)
        record["comparison"] = {"random_texts": compared}
        save_json(folder / EXPORT_FILE, record)
        save_card(folder, record, tokenizers[0], arguments.model)
    same = next(name for name in compared if name.startswith("same"))
    print(
        f"{arguments.output_dir}: {form.name}, {arguments.quantize or 'float32'}; beside torch, on texts of random "
        f"tokens: {same.replace('_', ' ')} {compared[same]}, greatest difference {compared['greatest_difference']:.1e}"
    )
    return record


def make_record(arguments: ExportArguments, model: VanillaTransformerPreTrainedModel, task: Task) -> dict[str, Any]:
    """Make an export's record, without the comparison."""
    environment = describe_environment()
    environment["versions"] |= {name: metadata.version(name) for name in FORMATS[arguments.format].packages}
    config = model.config.to_dict()
    config.pop("_name_or_path", None)
    record = {
        "format": arguments.format,
        "task": task.name,
        "quantize": arguments.quantize,
        "source": arguments.model,
        "parameters": model.num_parameters(),
        "config": config,
        "generation": model.generation_config.to_diff_dict() if model.can_generate() else {},
        **environment,
    }
    if task is CLASSIFICATION:
        record["logits_without_tokens"] = TorchEngine(model).logits([[]], 1)[0].tolist()
    return without_folders(record)


def save_card(folder: Path, record: dict[str, Any], tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    """Write the card of an export of `source`, a model's folder or Hub name."""
    facts, task = ModelFacts.of(record["config"], record["generation"]), TASKS[record["task"]]
    texts = [texts[0] for texts in [*EXAMPLES[task.name].values(), *EXAMPLES["translation"].values()]]
    # The tokenizer knows the words of the model's language best.
    example = min(texts, key=lambda text: tokenizer(text)["input_ids"].count(tokenizer.unk_token_id))
    head = ModelCardData(
        **metadata_of(source),
        pipeline_tag=task.pipeline_tag,
        library_name=record["format"],
        tags=["vanilla-transformer", *filter(None, [record["quantize"]])],
    )
    text = card_template(__file__).render(
        **record | {"task": task},
        card_data=head.to_yaml(),
        facts=facts,
        engine=FORMATS[record["format"]].title,
        example=json.dumps(example, ensure_ascii=False),
        shell_example=shlex.quote(example),
        num_beams=record["generation"].get("num_beams") or 1,
        max_length=min(tokenizer.model_max_length, facts.max_positions),
    )
    (folder / CARD_FILE).write_text(text, encoding="utf-8")


def metadata_of(source: str) -> dict[str, Any]:
    """Return the base model, if `source` is a Hub name; of a folder language, licence and data sets of its card."""
    if not Path(source).is_dir():
        return {"base_model": source}
    with suppress(ValueError):  # no card
        data = load_model_card(source).data.to_dict()
        return {name: data[name] for name in ("language", "license", "datasets") if name in data}
    return {}
