# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The model card of a run: `card.md.jinja`, filled in from the run's record."""

import json
import math
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..data.errors import DataError, named_errors
from ..data.lines import TABLE_SUFFIXES, ending_of
from ..data.problem_types import METRICS, SINGLE
from ..data.sources import SPLITS
from ..inference import Classifier, Translator
from ..inference.engine import TARGET_TOKENIZER
from ..settings.tasks import CLASSIFICATION, DENOISING, EXAMPLES, TASKS, TRANSLATION, Task
from .record import CARD_FILE, METRICS_FILE, RECIPE_FILE, RUN_FILE, example_texts, read_file, save_json


class DataSource(NamedTuple):
    """Data as a card names them."""

    name: str
    identifier: str  # in the card's metadata
    korean: str  # in the Korean summary
    about: str | None = None  # further words, or a checksum
    terms: str = "under the licence of its source, which this card does not know"
    is_on_hub: bool = False  # under the identifier
    has_korean_reviews: bool = False  # of films


KNOWN_DATA = {
    "nsmc": DataSource(
        "NSMC",
        "e9t/nsmc",
        "네이버 영화 리뷰(NSMC)",
        "the Naver sentiment movie corpus, <https://github.com/e9t/nsmc>",
        "dedicated to the public domain (CC0 1.0)",
        is_on_hub=True,
        has_korean_reviews=True,
    ),
    "sample": DataSource(
        "the reviews embedded in hf_vanilla_transformer",
        "sample",
        "패키지에 들어 있는 예제 영화 리뷰",
        terms="Apache-2.0, written for the package",
        has_korean_reviews=True,
    ),
    "multi30k": DataSource(
        "Multi30k",
        "bentrevett/multi30k",
        "Multi30k",
        "captions of pictures, Elliott et al. 2016, <https://github.com/multi30k/dataset>",
        "for non-commercial research and education alone, like Flickr30k, which it extends",
        is_on_hub=True,
    ),
}
# By the checksums of test splits, which no setting changes: NSMC's, Multi30k's test_2016_flickr in both directions.
TEST_SPLITS = {
    "a4f915a8c1fdee4300e8036ef28764e7d91a25fb83bc4def9a52c839924f1291": "nsmc",
    "9eede41cc4f19a80f2f7f4cfbe3be87c14167be260bba45cfcb36da4431cd28f": "multi30k",
    "9ec60e86d4c1d7c7c5d7af24d38cbd9de168bd938a02f1be723cabbea157e6ff": "multi30k",
}


def data_source(data: dict[str, Any]) -> DataSource:
    """Return what a card says about the data of a run's record, its entry `data`."""
    source = data["source"]
    if isinstance(source, dict):  # of pretraining: files with their checksums
        names = [Path(file).name for file in source]
        return DataSource(
            ", ".join(names), names[0].split(".")[0], ", ".join(names), f"SHA-256 {', '.join(source.values())}"
        )
    known = TEST_SPLITS.get(data.get("test", {}).get("sha256"), source)
    if known in KNOWN_DATA:
        return KNOWN_DATA[known]
    is_name = re.fullmatch(r"[\w.-]+/[\w.-]+", source) and ending_of(source) not in TABLE_SUFFIXES
    if is_name and not Path(source).exists():
        return DataSource(source, source, source, is_on_hub=True)
    return DataSource(Path(source).name, Path(source).stem, Path(source).name)


class RunRecord:
    """The files of a run's record, and what a card reads from several of them.

    Attributes:
        sides: The names of a translator's two columns, which are languages as a rule; empty for other models.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        files = ("config.json", METRICS_FILE, RECIPE_FILE, RUN_FILE)
        self.config, self.metrics, self.recipe, self.run = (read_file(folder / file) for file in files)
        architecture = self.config["architectures"][0]
        task = next((task for task in TASKS.values() if task.model_class == architecture), None)
        if task is None:
            raise DataError(f"no model card can be made of a {architecture}")
        if task is TRANSLATION and "source_column" not in self.recipe:
            task = DENOISING
        self.task = task
        self.data = data_source(self.run["data"])
        columns = ("source_column", "target_column") if self.task is TRANSLATION else ()
        self.sides = [self.recipe[column].rsplit(".", 1)[-1] for column in columns]  # `translation.ko` is Korean
        self.results = list(results_of(self))


def make_model_card(folder: str | Path, name: str | None = None) -> ModelCard:
    """Make the card of a run from its record.

    Args:
        folder: The run's folder, with `config.json`, `metrics.json`, `recipe.yaml` and `run.json`.
        name: The Hub repository, which the usage example loads; by default the folder's name.

    Returns:
        The card. If the folder has no weights, it says how to make them instead of how to use them.

    Raises:
        ValueError: The model has no head, or a file of the record cannot be read.
        OSError: A file of the record is missing.
    """
    folder = Path(folder)
    name = name or folder.resolve().name
    record = RunRecord(folder)
    config, run, task = record.config, record.run, record.task
    labels = config.get("id2label", {}) if task is CLASSIFICATION else {}
    tokenizer_file = folder / "tokenizer_config.json"
    limits = read_file(tokenizer_file) if tokenizer_file.is_file() else {}
    text = card_template(__file__).render(
        vars(record),
        card_data=card_data_of(record, name).to_yaml(),
        name=name,
        kind=config.get("problem_type") or SINGLE,
        recipe_text=(folder / RECIPE_FILE).read_text(encoding="utf-8").strip(),
        labels=[markdown(labels[number]) for number in sorted(labels, key=int)],
        examples=examples_of(record),
        is_korean=record.data in KNOWN_DATA.values()
        or task is DENOISING
        or re.search("[가-힣]", f"{example_texts(str(folder))}{labels}"),
        splits={split: run["data"][split] for split in SPLITS if split in run["data"]},
        further_data={part: run["data"][part] for part in run["data"] if part not in ("source", *SPLITS)},
        longest=min(limits.get("model_max_length", math.inf), config["max_position_embeddings"]),
        has_weights=any(folder.glob("*.safetensors")),
        target_tokenizer=TARGET_TOKENIZER if config["decoder_vocab_size"] is not None else None,
        figure=f"{{:.{2 if task in (TRANSLATION, DENOISING) else 4}f}}".format,
    )
    return ModelCard(text)


@cache
def card_template(module: str) -> jinja2.Template:
    """Load `card.md.jinja` beside a module's file; it finds other templates there."""
    loader = jinja2.FileSystemLoader(Path(module).parent)
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True)
    environment.filters["markdown"] = markdown
    return environment.get_template("card.md.jinja")


def save_model_card(folder: str | Path, name: str | None = None) -> None:
    """Write the card of `make_model_card` to the run's folder."""
    make_model_card(folder, name).save(Path(folder) / CARD_FILE)


def record_answers(folder: str | Path) -> None:
    """Add the model's answers to the texts of its card's example to the record, rounded to four digits."""
    record = RunRecord(Path(folder))
    loaders: dict[Task, Any] = {CLASSIFICATION: Classifier, TRANSLATION: Translator}
    if record.task in loaders:
        answers = loaders[record.task](str(folder))([json.loads(text) for text in examples_of(record)])
        answers = json.loads(json.dumps(answers), parse_float=lambda number: round(float(number), 4))
        save_json(Path(folder, RUN_FILE), {**record.run, "answers": answers})


def load_model_card(folder: str | Path) -> ModelCard:
    """Read a folder's card; raise a DataError if there is none, or its metadata cannot be read."""
    file = Path(folder) / CARD_FILE
    with named_errors(str(file), "card"):
        return ModelCard.load(file)


def rename_model_card(folder: str | Path, name: str) -> None:
    """Put a repository's name into the metadata and the code of a card; the rest may have been edited, and stays."""
    card = load_model_card(folder)
    data: Any = card.data
    for call in ('model="{}"', 'from_pretrained("{}"'):
        card.text = card.text.replace(call.format(data.model_name), call.format(name))
    data.model_name = name
    card.save(Path(folder) / CARD_FILE)


def markdown(text: object) -> str:
    """Escape Markdown in a user's text, and put it in one line."""
    return re.sub(r"([\\`*\[\]|<>#]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(str(text).split()))


def card_data_of(record: RunRecord, name: str) -> ModelCardData:
    """Return the metadata, by which the Hub finds a model."""
    languages = record.sides or (["ko"] if record.data.has_korean_reviews else [""])
    return ModelCardData(
        # Codes of two letters: one of three could be "src" or "tgt".
        language=languages if all(re.fullmatch("[a-z]{2}", language) for language in languages) else None,
        license=record.run.get("license"),
        library_name="transformers",
        pipeline_tag=record.task.pipeline_tag,
        tags=["vanilla-transformer", "encoder-decoder", "custom_code"],
        base_model=record.run.get("base_model"),
        datasets=[record.data.identifier] if record.data.is_on_hub else None,
        metrics=sorted({result.metric_type for result in record.results}),
        model_name=name,
        eval_results=record.results,
    )


def examples_of(record: RunRecord) -> list[str]:
    """Return texts for the usage example, as Python literals: the run's own, or the package's if it knows the data."""
    texts = [] if record.data in KNOWN_DATA.values() else example_texts(str(record.folder))
    if not texts and record.task is CLASSIFICATION:
        texts = EXAMPLES[CLASSIFICATION.name]["ko"]
    elif not texts:
        sentences = EXAMPLES[TRANSLATION.name]
        texts = sentences.get(record.sides[0] if record.sides else "ko", sentences["en"])
    return [json.dumps(text, ensure_ascii=False) for text in texts]


def results_of(record: RunRecord) -> Iterator[EvalResult]:
    """Yield what a record says about each split, the headline first."""
    task, data = record.task, record.data
    measured = [split for split in ("test", "validation") if split in record.metrics]
    for split in measured:
        report = record.metrics[split]
        result = partial(EvalResult, task.pipeline_tag, data.identifier, data.name, dataset_split=split)
        if task is TRANSLATION:
            # A model that writes lower case is measured without regard to case.
            is_lower = record.recipe.get("lowercase")
            name, title = ("bleu_lowercased", "BLEU, lower-cased") if is_lower else ("bleu", "BLEU")
            for beams in sorted((int(key.split("_")[1]) for key in report if key.startswith("beams_")), reverse=True):
                yield result(
                    metric_type="bleu",
                    metric_name=f"{title}, {beams} beam{'s' if beams > 1 else ''}",
                    metric_value=round(report[f"beams_{beams}"][name], 2),
                    metric_args={"signature": report[f"beams_{beams}"][f"{name}_signature"]},
                )
            continue
        if task is DENOISING:
            titles = {"perplexity": "Perplexity"}
        else:
            titles = METRICS[record.config.get("problem_type") or SINGLE]
            titles = {name: title for name, title in titles.items() if name in report}  # older records lack some
        for name, title in titles.items():
            value = round(report[name], 2 if task is DENOISING else 4)
            yield result(metric_type=name, metric_name=title, metric_value=value)
