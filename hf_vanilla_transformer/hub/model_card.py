# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The model card of a run, made from its record: every figure in it is measured.

`card_text` has the words; `huggingface_hub` writes the metadata.
"""

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..data.in_memory import NAME, SPLITS
from ..data.lines import TABLE_SUFFIXES, ending_of
from ..data.network import HUB_NAME
from ..errors import DataError, named_errors
from ..inference.engine import TARGET_TOKENIZER
from ..tasks import CLASSIFICATION, DENOISING, EXAMPLES, GENERATION, METRICS, SINGLE, TRANSLATION, Task
from .card_text import DataSource, Facts, Origin, Record, escaped, make_text, markdown
from .record import CURVES_FILE, METRICS_FILE, RECIPE_FILE, RUN_FILE, example_texts, own_file, read_file


CARD_FILE = "README.md"
# Metadata that every card needs: the Hub finds models by them. Results stay in the model-index: the newer folder
# `.eval_results` is for registered benchmarks alone, which NSMC and Multi30k are not.
REQUIRED_METADATA = ("library_name", "pipeline_tag", "tags", "eval_results")
# Two letters: a code of three could be "src" or "tgt".
LANGUAGE_CODE = re.compile(r"[a-z]{2}")


KNOWN_DATA = {
    "nsmc": DataSource(
        "NSMC",
        "e9t/nsmc",
        "네이버 영화 리뷰(NSMC)",
        "the Naver sentiment movie corpus, <https://github.com/e9t/nsmc>",
        "dedicated to the public domain (CC0 1.0)",
        "ko",
        is_on_hub=True,
        has_reviews=True,
    ),
    "sample": DataSource(
        "the reviews embedded in hf_vanilla_transformer",
        "sample",
        "패키지에 들어 있는 예제 영화 리뷰",
        terms="Apache-2.0, written for the package",
        language="ko",
        has_reviews=True,
    ),
    "multi30k": DataSource(
        "Multi30k",
        "multi30k",
        "Multi30k",
        "captions of pictures, Elliott et al. 2016, <https://github.com/multi30k/dataset>",
        "for non-commercial use; read its terms before you use or share a model trained on it",
    ),
}
# By the checksums of test splits, which no setting changes: NSMC's, Multi30k's test_2016_flickr in both directions.
TEST_SPLITS = {
    "a4f915a8c1fdee4300e8036ef28764e7d91a25fb83bc4def9a52c839924f1291": "nsmc",
    "9eede41cc4f19a80f2f7f4cfbe3be87c14167be260bba45cfcb36da4431cd28f": "multi30k",
    "9ec60e86d4c1d7c7c5d7af24d38cbd9de168bd938a02f1be723cabbea157e6ff": "multi30k",
}


def make_model_card(folder: str | Path, name: str | None = None) -> ModelCard:
    """Make the card of a run of a training command or of a Trainer with a `RecordCallback`.

    Args:
        folder: The run's folder, with `config.json`, `metrics.json`, `recipe.yaml` and `run.json`.
        name: What the usage example loads: the Hub repository's name; by default the folder's.

    Returns:
        The card, without absolute paths. If the folder has no weights, it says how to make them instead of how to use
        them.

    Raises:
        ValueError: the model is neither a classifier nor one that generates, or a part of the record cannot be read.
        OSError: the folder lacks a part of the record.
    """
    folder = Path(folder)
    files = {file: read_file(folder / file) for file in ("config.json", METRICS_FILE, RECIPE_FILE, RUN_FILE)}
    try:
        return _make(folder, name or folder.resolve().name, *files.values())
    except DataError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
        names = ", ".join(files)
        raise DataError(f"{folder}: no card can be made of {names}: {type(error).__name__} {error}") from error


def _make(folder: Path, name: str, config: Record, metrics: Record, recipe: Record, run: Record) -> ModelCard:
    task = _task(config, recipe, run)
    data = _data_source(run)
    origins = _origins(recipe, run)
    earlier = [origin.data for origin in origins]
    # Of a column like `translation.ko`, the language is the last part.
    columns = ("source_column", "target_column") if task is TRANSLATION else ()
    sides = [recipe[column].rsplit(".", 1)[-1] for column in columns]
    languages = sides or [data.language or ""]
    own = [] if data in KNOWN_DATA.values() else example_texts(str(folder))
    sentences = EXAMPLES[TRANSLATION.name]
    (sentence, *_) = sentences.get(sides[0] if sides else "ko", sentences["en"])
    examples = own or (EXAMPLES[task.name]["ko"][:2] if task is CLASSIFICATION else [sentence])
    tokenizer_file = folder / "tokenizer_config.json"
    limits = read_file(tokenizer_file) if tokenizer_file.is_file() else {}
    results = list(_results(task, sides, data, config, recipe, run, metrics))
    card_data = ModelCardData(
        language=languages if all(map(LANGUAGE_CODE.fullmatch, languages)) else None,
        license=run.get("license"),
        library_name="transformers",
        pipeline_tag=task.pipeline_tag,
        tags=["vanilla-transformer", "encoder-decoder", "custom_code"],
        base_model=base_model_of(run),
        datasets=[data.identifier] if data.is_on_hub else None,
        metrics=sorted({result.metric_type for result in results}),
        model_name=name,
        eval_results=results,
    )
    script = str(run.get("script"))
    facts = Facts(
        name=name,
        task=task,
        data=data,
        sources=[data, *(known for known in KNOWN_DATA.values() if known in earlier and known != data)],
        config=escaped(config),
        metrics=escaped(metrics),
        recipe=recipe,
        recipe_text=(folder / RECIPE_FILE).read_text(encoding="utf-8").strip(),
        run=escaped(run),
        labels=[markdown(config["id2label"][number]) for number in sorted(config.get("id2label", {}), key=int)],
        sides=[markdown(side) for side in sides],
        examples=[json.dumps(text, ensure_ascii=False) for text in examples],
        results=results,
        splits=[split for split in SPLITS if split in run["data"]],
        further_data={part: run["data"][part] for part in run["data"] if part not in ("source", "dropped", *SPLITS)},
        origins=origins,
        base_model=base_model_of(run),
        script=script if re.fullmatch(r"scripts(/\w[\w-]*)+\.py", script) else None,
        machine=machine(run),
        longest=min(limits.get("model_max_length", math.inf), config["max_position_embeddings"]),
        has_weights=any(folder.glob("*.safetensors")),
        curves_file=CURVES_FILE if (folder / CURVES_FILE).is_file() else None,
        target_tokenizer=TARGET_TOKENIZER if config["decoder_vocab_size"] is not None else None,
    )
    return ModelCard(f"---\n{card_data.to_yaml()}\n---\n\n{make_text(facts)}")


def save_model_card(folder: str | Path, name: str | None = None) -> None:
    """Write the card of `make_model_card` to the run's folder."""
    make_model_card(folder, name).save(own_file(Path(folder) / CARD_FILE))


def load_model_card(folder: str | Path) -> ModelCard:
    """Read a folder's card.

    Raises:
        ValueError: there is no card, its metadata cannot be read, or some that the Hub needs are missing.
    """
    file = Path(folder) / CARD_FILE
    with named_errors(str(file), "card"):
        card = ModelCard.load(file)
    if missing := [key for key in REQUIRED_METADATA if not card.data.get(key)]:
        raise DataError(f"{file}: its metadata lack {', '.join(missing).replace('eval_results', 'model-index')}")
    return card


def has_card(folder: str | Path) -> bool:
    """Whether a run's folder has a card, other than the draft that Trainer writes when it pushes."""
    file = Path(folder, CARD_FILE)
    return file.is_file() and "\n- generated_from_trainer\n" not in file.read_text("utf-8", "replace")


def rename_model_card(folder: str | Path, name: str) -> None:
    """Put a repository's name into a folder's card: its metadata, and the code that loads the model.

    Everything else stays: somebody may have edited the card.
    """
    card = load_model_card(folder)
    data: Any = card.data  # a ModelCardData
    if data.model_name != name:
        for call in ('model="{}"', 'from_pretrained("{}"'):
            card.text = card.text.replace(call.format(data.model_name), call.format(name))
        data.model_name = name
        card.save(own_file(Path(folder) / CARD_FILE))


def _task(config: Record, recipe: Record, run: Record) -> Task:
    architecture = config["architectures"][0]
    if architecture == CLASSIFICATION.model_class:
        return CLASSIFICATION
    if architecture != TRANSLATION.model_class:
        raise DataError(f"no model card can be made of a {architecture}")
    if run.get("own_trainer"):
        return GENERATION
    return TRANSLATION if "source_column" in recipe else DENOISING


def _data_source(run: Record) -> DataSource:
    source = run["data"]["source"]
    if isinstance(source, dict):  # of pretraining: files with their checksums
        names = [Path(file).name for file in source]
        name, checksums = ", ".join(names), ", ".join(source.values())
        return DataSource(name, names[0].split(".")[0], name, f"SHA-256 {markdown(checksums)}")
    if NAME.fullmatch(source):
        return DataSource(source, "data-given-in-python", "파이썬에서 준 데이터")
    known = TEST_SPLITS.get(run["data"].get("test", {}).get("sha256"), source)
    if known in KNOWN_DATA:
        return KNOWN_DATA[known]
    is_on_hub = HUB_NAME.fullmatch(source) and "/" in source and not Path(source).exists()
    if is_on_hub and ending_of(source) not in TABLE_SUFFIXES:
        return DataSource(source, source, source, is_on_hub=True)
    return DataSource(Path(source).name, Path(source).stem, Path(source).name)


def _origins(recipe: Record, run: Record) -> list[Origin]:
    """The models that a run's model was trained from, the last one first. Their records may be strangers'."""
    origins: list[Origin] = []
    while (recipe.get("model") or "began_as" in run) and len(origins) < 20:
        name, record = recipe.get("model"), run.get("began_as")
        parts = record if isinstance(record, dict) else {}
        recipe, run, metrics = (
            part if isinstance(part := parts.get(which), dict) else {} for which in ("recipe", "run", "metrics")
        )
        data = None
        with suppress(KeyError, TypeError, AttributeError, IndexError, ValueError):
            data = _data_source(run)
        seconds = metrics.get("training_seconds")
        minutes = seconds / 60 if isinstance(seconds, int | float) else None
        origins.append(Origin(name, data, minutes, machine(run) if run else None, "texts" in recipe))
    return origins


def machine(run: Record) -> str:
    """The device of a run, for the card."""
    accelerator = run.get("accelerator")
    name = accelerator.get("name") if isinstance(accelerator, dict) else None
    parts = (name or run.get("device"), run.get("processes", 1), run.get("threads"))
    device, processes, threads = (markdown(str(part)) for part in parts)
    return f"{device} (processes: {processes}, threads in each: {threads})"


def base_model_of(run: Record) -> str | None:
    """The name on the Hub of the model that was trained further."""
    name = run.get("base_model")
    return name if isinstance(name, str) and HUB_NAME.fullmatch(name) else None


def _results(
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
