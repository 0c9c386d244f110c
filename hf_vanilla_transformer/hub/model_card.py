# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The model card of a run, made from its record: every figure in it is measured.

`model_card.md.jinja` has the text; `huggingface_hub` writes the metadata.
"""

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..data.labels import MULTI, REGRESSION, SINGLE
from ..data.tables import HUB_NAME, SPLITS, TABLE_SUFFIXES
from ..loading import TARGET_TOKENIZER
from .record import CURVES_FILE, METRICS_FILE, RECIPE_FILE, RUN_FILE


CARD_FILE = "README.md"
CONFIG_FILE = "config.json"
TEMPLATE = Path(__file__).parent / "model_card.md.jinja"
# Metadata that every card needs: the Hub finds models by them. Results stay in the model-index: the newer folder
# `.eval_results` takes those of data sets only that are registered as benchmarks, which NSMC and Multi30k are not.
REQUIRED_METADATA = ("license", "library_name", "pipeline_tag", "tags", "eval_results")
# Longer tables are left out; metrics.json has them.
MOST_ROWS = 30
MOST_LABELS_ON_CARD = 20
# A classifier's metrics, by its kind of labels; the first is the headline.
CLASSIFIER_TITLES = {
    SINGLE: {"accuracy": "accuracy", "f1": "F1"},
    MULTI: {"micro_f1": "micro F1", "macro_f1": "macro F1", "exact_match": "all labels right"},
    REGRESSION: {
        "mae": "mean absolute error",
        "rmse": "root mean squared error",
        "r2": "R²",
        "pearson": "correlation",
    },
}
# A translator's metrics; the last is only of models without capitals or with a vocabulary of words.
BLEU_TITLES = {"bleu": "BLEU", "bleu_lowercased": "BLEU, lower-cased", "bleu_words": "BLEU of words"}

# The checksum of NSMC's test split, which no setting changes.
NSMC_TEST_SHA256 = "a4f915a8c1fdee4300e8036ef28764e7d91a25fb83bc4def9a52c839924f1291"
# The same of Multi30k's test_2016_flickr, German to English and English to German.
MULTI30K_TEST_SHA256 = (
    "9eede41cc4f19a80f2f7f4cfbe3be87c14167be260bba45cfcb36da4431cd28f",
    "9ec60e86d4c1d7c7c5d7af24d38cbd9de168bd938a02f1be723cabbea157e6ff",
)

# The sentence of the usage example, by source language.
EXAMPLE_TEXTS = {
    "de": "Zwei Hunde spielen im Schnee.",
    "en": "Two dogs play in the snow.",
    "ko": "강아지 두 마리가 눈밭에서 논다.",
}
# The task of a model of the user's own Trainer: here, on the Hub, and in words.
OWN_TASKS = {
    "VanillaTransformerForSequenceClassification": ("classification", "text-classification", "Text classification"),
    "VanillaTransformerForConditionalGeneration": ("generation", "text2text-generation", "Text generation"),
}
# Two letters: a code of three could be "src" or "tgt".
LANGUAGE_CODE = re.compile(r"[a-z]{2}")


@dataclass
class DataSource:
    """The data of a run, for its card.

    Attributes:
        kind: `nsmc`, `multi30k`, `sample`, `hub` or `other`; the text depends on it.
        name: What people call the data.
        identifier: The name in the metadata: that of the Hub, if the data are there.
        language: ISO code; None if unknown.
    """

    kind: str
    name: str
    identifier: str
    language: str | None = None

    @property
    def text(self) -> str:
        """The name as Markdown."""
        return f"`{self.name}`" if self.kind in ("hub", "other") else self.name


def make_model_card(folder: str | Path, name: str | None = None) -> ModelCard:
    """Make the card of a run of a training command or of a Trainer with a `RecordCallback`.

    Args:
        folder: The run's folder, with `config.json`, `metrics.json`, `recipe.yaml` and `run.json`.
        name: What the usage example loads: the Hub repository's name; by default the folder's.

    Returns:
        The card. If the folder has no weights, it says how to make them instead of how to use them.

    Raises:
        ValueError: the folder lacks a part of the record, or a part is not what a run writes.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    record = (CONFIG_FILE, METRICS_FILE, RECIPE_FILE, RUN_FILE)
    if missing := [file for file in record if not (folder / file).is_file()]:
        raise ValueError(f"{folder}: no model card can be made, it lacks {', '.join(missing)}")
    config, metrics, recipe, run = (_read(folder / file) for file in record)
    name = name or folder.resolve().name
    with _incomplete_records(folder):
        architecture = config["architectures"][0]
        if run.get("own_trainer") and architecture in OWN_TASKS:
            task = _own_trainer(architecture, config, metrics, run)
        elif architecture.endswith("ForSequenceClassification"):
            task = _classification(config, metrics, run)
        elif architecture.endswith("ForConditionalGeneration") and "source_column" in recipe:
            task = _translation(config, metrics, recipe, run)
        elif architecture.endswith("ForConditionalGeneration") and "texts" in recipe:
            task = _denoising(metrics, run)
        else:
            raise ValueError(f"{folder}: {architecture} trained on this is nothing that a model card can be made of")
        data: DataSource = task["data"]
        origins = _origins(recipe, run)
        card_data = ModelCardData(
            language=task["languages"] or None,
            license="apache-2.0",
            library_name="transformers",
            pipeline_tag=task["pipeline_tag"],
            tags=["vanilla-transformer", "encoder-decoder", "custom_code"],
            datasets=[data.identifier] if data.kind in ("nsmc", "hub") else None,
            metrics=sorted({result.metric_type for result in task["eval_results"]}),
            model_name=name,
            eval_results=task["eval_results"],
        )
        return ModelCard.from_template(
            card_data,
            template_path=str(TEMPLATE),
            name=name,
            config=config,
            longest=_longest(folder, config),
            metrics=metrics,
            recipe=recipe,
            recipe_text=(folder / RECIPE_FILE).read_text(encoding="utf-8").strip(),
            run=run,
            origins=origins,
            from_nsmc=data.kind == "nsmc" or any(_tested_on_nsmc(origin.get("run", {})) for origin in origins),
            further_data=_further_data(run),
            has_weights=any(folder.glob("*.safetensors")),
            has_curves=(folder / CURVES_FILE).is_file(),
            curves_file=CURVES_FILE,
            evaluations=_evaluations(metrics["epochs"]),
            splits=[split for split in SPLITS if split in run["data"]],
            target_tokenizer=TARGET_TOKENIZER if config["decoder_vocab_size"] is not None else None,
            **task,
        )


def save_model_card(folder: str | Path, name: str | None = None) -> None:
    """Make the card of a run, as `make_model_card` does, and write it to the run's folder."""
    make_model_card(folder, name).save(Path(folder) / CARD_FILE)


def load_model_card(folder: str | Path) -> ModelCard:
    """Read a folder's card.

    Raises:
        ValueError: there is no card, its metadata cannot be read, or some that the Hub needs are missing.
    """
    file = Path(folder) / CARD_FILE
    if not file.is_file():
        raise ValueError(f"{file}: no such file")
    try:
        card = ModelCard.load(file)
    except (ValueError, TypeError, yaml.YAMLError) as error:
        raise ValueError(f"{file}: its metadata cannot be read ({error})") from error
    if missing := [key for key in REQUIRED_METADATA if not card.data.get(key)]:
        names = ", ".join("model-index" if key == "eval_results" else key for key in missing)
        raise ValueError(f"{file}: its metadata lack {names}")
    return card


def rename_model_card(folder: str | Path, name: str) -> None:
    """Put a repository's name into a folder's card: its metadata, and the code that loads the model.

    Everything else stays, so the card may have been edited.

    Raises:
        ValueError: as in `load_model_card`.
        OSError: the card cannot be written.
    """
    card = load_model_card(folder)
    data: Any = card.data  # a ModelCardData
    if data.model_name != name:
        before = re.escape(str(data.model_name))
        loads = rf'((?:model=|from_pretrained\()"|--model ){before}(["`])'
        card.text = re.sub(loads, lambda match: f"{match[1]}{name}{match[2]}", card.text)
        data.model_name = name
        card.save(Path(folder) / CARD_FILE)


def _read(file: Path) -> dict[str, Any]:
    """A JSON or YAML file's mapping."""
    try:
        text = file.read_text(encoding="utf-8")
        content = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{file}: cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file}: not a mapping")
    return content


@contextmanager
def _incomplete_records(folder: Path) -> Iterator[None]:
    """Turn a missing or malformed field of a record into one line."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{folder}: no model card can be made, its record is incomplete ({type(error).__name__}: {error})"
        ) from error


def _longest(folder: Path, config: dict[str, Any]) -> int:
    """The number of tokens of a text that tokenizer and model read."""
    file = folder / "tokenizer_config.json"
    limit = _read(file).get("model_max_length", math.inf) if file.is_file() else math.inf
    return min(limit, config["max_position_embeddings"])


def _tested_on_nsmc(run: dict[str, Any]) -> bool:
    return run.get("data", {}).get("test", {}).get("sha256") == NSMC_TEST_SHA256


def _data_source(run: dict[str, Any]) -> DataSource:
    """The data that the run was trained on, by its record."""
    source = run["data"]["source"]
    if source == "nsmc" or _tested_on_nsmc(run):
        return DataSource("nsmc", "NSMC", "e9t/nsmc", "ko")
    if source == "sample":
        return DataSource("sample", "the reviews embedded in hf_vanilla_transformer", "sample", "ko")
    if run["data"].get("test", {}).get("sha256") in MULTI30K_TEST_SHA256:
        return DataSource("multi30k", "Multi30k", "multi30k")
    is_on_hub = HUB_NAME.fullmatch(source) and "/" in source and not Path(source).exists()
    if is_on_hub and Path(source).suffix not in TABLE_SUFFIXES:
        return DataSource("hub", source, source)
    return DataSource("other", Path(source).name, Path(source).stem)


def _evaluations(epochs: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The evaluations during training, for a table; None if there are too many."""
    return epochs if 0 < len(epochs) <= MOST_ROWS else None


def _classification(config: dict[str, Any], metrics: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """The variables of template and metadata for a classifier."""
    data = _data_source(run)
    labels = [config["id2label"][number] for number in sorted(config["id2label"], key=int)]
    problem_type = config.get("problem_type") or SINGLE
    for split in SPLITS:
        if problem_type == SINGLE and len(metrics[split]["confusion_matrix"]) != len(labels):
            raise ValueError(f"{METRICS_FILE} and {CONFIG_FILE} do not agree on the number of labels")
    titles = CLASSIFIER_TITLES[problem_type]
    names = dict(titles)
    if problem_type == SINGLE:
        titles = {**titles, "f1": f"F1 ({_cell(labels[1])})" if len(labels) == 2 else "F1 (mean over labels)"}
    return {
        "task": "classification",
        "pipeline_tag": "text-classification",
        "data": data,
        "languages": [data.language] if data.language else [],
        "labels": [_cell(label) for label in labels],
        "problem_type": problem_type,
        "headline": next(iter(titles)),
        "titles": titles,
        "per_label": metrics["test"].get("per_label") if len(labels) <= MOST_LABELS_ON_CARD else None,
        "show_matrix": len(labels) <= MOST_LABELS_ON_CARD,
        "eval_results": [
            EvalResult(
                task_type="text-classification",
                task_name="Text classification",
                dataset_type=data.identifier,
                dataset_name=data.name,
                dataset_split=split,
                metric_type=metric,
                metric_name=name[0].upper() + name[1:],
                metric_value=round(metrics[split][metric], 4),
            )
            for split in ("test", "validation")
            for metric, name in names.items()
        ],
    }


def _own_trainer(
    architecture: str, config: dict[str, Any], metrics: dict[str, Any], run: dict[str, Any]
) -> dict[str, Any]:
    """The variables of template and metadata for a model of the user's own Trainer."""
    data = _data_source(run)
    task, pipeline_tag, task_name = OWN_TASKS[architecture]
    rows = [
        {"split": split, "metric": metric, "value": value}
        for split in SPLITS
        for metric, value in metrics.get(split, {}).items()
        if isinstance(value, (int, float))
    ]
    return {
        "task": task,
        "pipeline_tag": pipeline_tag,
        "data": data,
        "languages": [data.language] if data.language else [],
        "labels": [_cell(config["id2label"][number]) for number in sorted(config.get("id2label", {}), key=int)],
        "rows": rows,
        "eval_results": [
            EvalResult(
                task_type=pipeline_tag,
                task_name=task_name,
                dataset_type=data.identifier,
                dataset_name=data.name,
                dataset_split=row["split"],
                metric_type=row["metric"],
                metric_name=row["metric"].replace("_", " ").capitalize(),
                metric_value=round(row["value"], 4),
            )
            for row in reversed(rows)
            if row["split"] != "train" or rows[-1]["split"] == "train"
        ],
    }


def _yaml(recipe: dict[str, Any] | None) -> str:
    """A recipe from a record, as YAML."""
    return yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True).strip()


def _further_data(run: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of a record's data besides source and splits: names, rows, checksums, recipes."""
    return [
        {"name": name, **part, "recipe_text": _yaml(part.get("recipe"))}
        for name, part in run.get("data", {}).items()
        if name != "source" and name not in SPLITS
    ]


def _origins(recipe: dict[str, Any], run: dict[str, Any]) -> list[dict[str, Any]]:
    """The models that a run's model was trained from, the last one first: names, and records where known."""
    origins = []
    while recipe.get("model") or "began_as" in run:
        record = run.get("began_as", {})
        origins.append(
            {
                **record,
                "name": recipe.get("model"),
                "recipe_text": _yaml(record.get("recipe")),
                "further_data": _further_data(record.get("run", {})),
            }
        )
        recipe, run = record.get("recipe", {}), record.get("run", {})
    return origins


def _translation(
    config: dict[str, Any], metrics: dict[str, Any], recipe: dict[str, Any], run: dict[str, Any]
) -> dict[str, Any]:
    """The variables of template and metadata for a translator."""
    data = _data_source(run)
    # Of a column like `translation.ko`, the language is the last part.
    sides = [recipe[name].rsplit(".", 1)[-1] for name in ("source_column", "target_column")]
    rows = [
        {
            "split": split,
            "beams": int(key.removeprefix("beams_")),
            "loss": metrics[split]["loss"],
            "perplexity": metrics[split]["perplexity"],
            **report,
        }
        for split in SPLITS
        for key, report in metrics.get(split, {}).items()
        if key.startswith("beams_")
    ]
    tested = [row for row in rows if row["split"] == "test"]
    if not tested:
        raise KeyError("test")
    # A model that writes lower case is measured without regard to case.
    headline = "bleu_lowercased" if recipe.get("lowercase") else "bleu"
    return {
        "task": "translation",
        "pipeline_tag": "translation",
        "data": data,
        "languages": sides if all(map(LANGUAGE_CODE.fullmatch, sides)) else [],
        "source": _cell(sides[0]),
        "target": _cell(sides[1]),
        "example": EXAMPLE_TEXTS.get(sides[0], EXAMPLE_TEXTS["en"]),
        "rows": rows,
        "best_beams": max(row["beams"] for row in tested),
        "test": max(tested, key=lambda row: row["beams"]),
        "headline": headline,
        "measures": {
            title: {"name": name, "signatures": {row[f"{name}_signature"] for row in rows}}
            for name, title in BLEU_TITLES.items()
            if name in tested[0]
        },
        "eval_results": [
            EvalResult(
                task_type="translation",
                task_name=f"Translation, {sides[0]} to {sides[1]}",
                dataset_type=data.identifier,
                dataset_name=data.name,
                dataset_split=row["split"],
                metric_type="bleu",
                metric_name=f"{BLEU_TITLES[headline]}, {row['beams']} beam{'s' if row['beams'] > 1 else ''}",
                metric_value=round(row[headline], 2),
                metric_args={"signature": row[f"{headline}_signature"]},
            )
            for row in reversed(rows)
        ],
    }


def _denoising(metrics: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """The variables of template and metadata for a pretrained model."""
    names = [Path(file).name for file in run["data"]["source"]]
    return {
        "task": "denoising",
        "pipeline_tag": "text2text-generation",
        "data": DataSource("other", ", ".join(names), Path(names[0]).name.split(".")[0]),
        "languages": [],
        "eval_results": [
            EvalResult(
                task_type="text2text-generation",
                task_name="Denoising",
                dataset_type=Path(names[0]).name.split(".")[0],
                dataset_name=", ".join(names),
                dataset_split="validation",
                metric_type="perplexity",
                metric_name="Perplexity",
                metric_value=round(metrics["validation"]["perplexity"], 2),
            )
        ],
    }


def _cell(text: str) -> str:
    """A text on one line, with the bars escaped, for a cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|")
