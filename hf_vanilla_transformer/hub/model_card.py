# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The model card of a run, `card.md.jinja` filled in from the run's record: every figure in it is measured."""

import json
import math
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..data.in_memory import SPLITS
from ..errors import DataError, named_errors
from ..inference.engine import TARGET_TOKENIZER
from ..tasks import CLASSIFICATION, DENOISING, EXAMPLES, GENERATION, METRICS, SINGLE, TRANSLATION, Task
from .data_source import KNOWN_DATA, DataSource, data_source
from .record import CARD_FILE, CURVES_FILE, METRICS_FILE, RECIPE_FILE, RUN_FILE, example_texts, read_file


Record = dict[str, Any]
TEMPLATE = Path(__file__).with_name("card.md.jinja")
# Two letters: a code of three could be "src" or "tgt".
LANGUAGE_CODE = re.compile(r"[a-z]{2}")
KOREAN = {
    **{"de": "독일어", "en": "영어", "ko": "한국어"},
    **{"test": "테스트", "validation": "검증", "train": "학습", "Accuracy": "정확도"},
}


def markdown(text: object) -> str:
    """Escape Markdown in a user's text, and put it in one line."""
    return re.sub(r"([\\`*\[\]|<>#]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(str(text).split()))


def korean(text: str) -> str:
    """A word in Korean, if it is a known one."""
    return KOREAN.get(text, markdown(text))


def make_model_card(folder: str | Path, name: str | None = None) -> ModelCard:
    """Make the card of a run of a training command or of a Trainer with a `RecordCallback`.

    Args:
        folder: The run's folder, with `config.json`, `metrics.json`, `recipe.yaml` and `run.json`.
        name: What the usage example loads: the Hub repository's name; by default the folder's.

    Returns:
        The card. If the folder has no weights, it says how to make them instead of how to use them.

    Raises:
        ValueError: the model is neither a classifier nor one that generates, or a part of the record cannot be read.
        OSError: the folder lacks a part of the record.
    """
    folder = Path(folder)
    name = name or folder.resolve().name
    files = ("config.json", METRICS_FILE, RECIPE_FILE, RUN_FILE)
    config, metrics, recipe, run = (read_file(folder / file) for file in files)
    task, data = task_of_run(config, recipe, run), data_source(run["data"])
    # Of a column like `translation.ko`, the language is the last part.
    columns = ("source_column", "target_column") if task is TRANSLATION else ()
    sides = [recipe[column].rsplit(".", 1)[-1] for column in columns]
    results = list(results_of(task, sides, data, config, recipe, run, metrics))
    labels = config.get("id2label", {}) if task is CLASSIFICATION else {}
    tokenizer_file = folder / "tokenizer_config.json"
    limits = read_file(tokenizer_file) if tokenizer_file.is_file() else {}
    recipe_text = (folder / RECIPE_FILE).read_text(encoding="utf-8").strip()
    seen_before = run.get("parent_model", {}).get("data", [])
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["markdown"] = markdown
    text = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        card_data=card_data_of(name, task, sides, data, run, results).to_yaml(),
        title=name.split("/")[-1],
        name=name,
        task=task,
        kind=config.get("problem_type") or SINGLE,
        data=data,
        sources=[data, *(one for one in KNOWN_DATA.values() if one.name in seen_before and one != data)],
        config=config,
        metrics=metrics,
        recipe=recipe,
        recipe_text=recipe_text,
        fence="`" * max(3, *(len(ticks) + 1 for ticks in re.findall("`+", recipe_text) or [""])),
        run=run,
        labels=[markdown(labels[number]) for number in sorted(labels, key=int)],
        sides=sides,
        examples=examples_of(folder, task, sides, data),
        results=results,
        splits={split: run["data"][split] for split in SPLITS if split in run["data"]},
        further_data={part: run["data"][part] for part in run["data"] if part not in ("source", "dropped", *SPLITS)},
        command=training_command(task, data, recipe, run),
        longest=min(limits.get("model_max_length", math.inf), config["max_position_embeddings"]),
        has_weights=any(folder.glob("*.safetensors")),
        curves_file=CURVES_FILE if (folder / CURVES_FILE).is_file() else None,
        target_tokenizer=TARGET_TOKENIZER if config["decoder_vocab_size"] is not None else None,
        figure=f"{{:.{2 if task in (TRANSLATION, DENOISING) else 4}f}}".format,
        markdown=markdown,
        korean=korean,
    )
    return ModelCard(text)


def save_model_card(folder: str | Path, name: str | None = None) -> None:
    """Write the card of `make_model_card` to the run's folder."""
    make_model_card(folder, name).save(Path(folder) / CARD_FILE)


def load_model_card(folder: str | Path) -> ModelCard:
    """Read a folder's card; a DataError if there is none, or its metadata cannot be read."""
    file = Path(folder) / CARD_FILE
    with named_errors(str(file), "card"):
        return ModelCard.load(file)


def has_card(folder: str | Path) -> bool:
    """Whether a run's folder has a card, other than the draft that Trainer writes when it pushes."""
    file = Path(folder, CARD_FILE)
    return file.is_file() and "\n- generated_from_trainer\n" not in file.read_text("utf-8")


def rename_model_card(folder: str | Path, name: str) -> None:
    """Put a repository's name into a folder's card: its metadata, and the code that loads the model.

    Everything else stays: somebody may have edited the card.
    """
    card = load_model_card(folder)
    data: Any = card.data  # a ModelCardData
    for call in ('model="{}"', 'from_pretrained("{}"'):
        card.text = card.text.replace(call.format(data.model_name), call.format(name))
    data.model_name = name
    card.save(Path(folder) / CARD_FILE)


def task_of_run(config: Record, recipe: Record, run: Record) -> Task:
    """The task of a run's model; a DataError if it has no head."""
    architecture = config["architectures"][0]
    if architecture == CLASSIFICATION.model_class:
        return CLASSIFICATION
    if architecture != TRANSLATION.model_class:
        raise DataError(f"no model card can be made of a {architecture}")
    if run.get("own_trainer"):
        return GENERATION
    return TRANSLATION if "source_column" in recipe else DENOISING


def card_data_of(
    name: str, task: Task, sides: list[str], data: DataSource, run: Record, results: list[EvalResult]
) -> ModelCardData:
    """The metadata, by which the Hub finds a model.

    Results stay in the model-index: the newer folder `.eval_results` is for registered benchmarks, which NSMC and
    Multi30k are not.
    """
    languages = sides or [data.language or ""]
    return ModelCardData(
        language=languages if all(map(LANGUAGE_CODE.fullmatch, languages)) else None,
        license=run.get("license"),
        library_name="transformers",
        pipeline_tag=task.pipeline_tag,
        tags=["vanilla-transformer", "encoder-decoder", "custom_code"],
        base_model=run.get("base_model"),
        datasets=[data.identifier] if data.is_on_hub else None,
        metrics=sorted({result.metric_type for result in results}),
        model_name=name,
        eval_results=results,
    )


def examples_of(folder: Path, task: Task, sides: list[str], data: DataSource) -> list[str]:
    """Texts for the usage example, as literals of Python: the data's own where the package has none."""
    texts = [] if data in KNOWN_DATA.values() else example_texts(str(folder))
    if not texts and task is CLASSIFICATION:
        texts = EXAMPLES[task.name]["ko"][:2]
    elif not texts:
        sentences = EXAMPLES[TRANSLATION.name]
        texts = sentences.get(sides[0] if sides else "ko", sentences["en"])[:1]
    return [json.dumps(text, ensure_ascii=False) for text in texts]


def training_command(task: Task, data: DataSource, recipe: Record, run: Record) -> str:
    """The command that trains the model again."""
    processes, script = run.get("processes", 1), run.get("script")
    command = f"python {script}" if script else f"vanilla-transformer {task.command}"
    if processes > 1:
        program = script or f"-m hf_vanilla_transformer {task.command}"
        command = f"torchrun --nproc_per_node {processes} {program}"
    command += " recipe.yaml"
    if data is KNOWN_DATA["nsmc"] and recipe.get("data") != "nsmc":
        command += " --data nsmc"
    command += " --output_dir runs/again"
    return f"{command} --use_cpu true" if processes > 1 and run.get("device") == "cpu" else command


def results_of(
    task: Task, sides: list[str], data: DataSource, config: Record, recipe: Record, run: Record, metrics: Record
) -> Iterator[EvalResult]:
    """What a record says about each split; the headline first."""
    task_name = f"{task.title}, {sides[0]} to {sides[1]}" if sides else task.title
    for split in [split for split in ("test", "validation") if split in metrics] or ("train",):
        report = metrics[split]
        result = partial(
            EvalResult, task.pipeline_tag, data.identifier, data.name, task_name=task_name, dataset_split=split
        )
        if task is TRANSLATION:
            # A model that writes lower case is measured without regard to case.
            name, title = ("bleu_lowercased", "BLEU, lower-cased") if recipe.get("lowercase") else ("bleu", "BLEU")
            for beams in sorted((int(key.split("_")[1]) for key in report if key.startswith("beams_")), reverse=True):
                yield result(
                    metric_type="bleu",
                    metric_name=f"{title}, {beams} beam{'s' if beams > 1 else ''}",
                    metric_value=round(report[f"beams_{beams}"][name], 2),
                    metric_args={"signature": report[f"beams_{beams}"][f"{name}_signature"]},
                )
            continue
        if run.get("own_trainer"):
            numbers = [name for name, value in report.items() if isinstance(value, (int, float))]
            titles = {name: name.replace("_", " ").capitalize() for name in sorted(numbers, key="loss".__eq__)}
        elif task is DENOISING:
            titles = {"perplexity": "Perplexity"}
        else:
            titles = METRICS[config.get("problem_type") or SINGLE]
            titles = {name: title for name, title in titles.items() if name in report}  # older records lack some
        for name, title in titles.items():
            value = round(report[name], 2 if task is DENOISING else 4)
            yield result(metric_type=name, metric_name=title, metric_value=value)
