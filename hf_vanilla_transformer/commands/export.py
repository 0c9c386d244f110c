# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Export a model to another engine, and prove that it computes the same there.

    vanilla-transformer export --model model_cards/multi30k-de-en --format ctranslate2 --output_dir runs/de-en
    vanilla-transformer export --model model_cards/nsmc-small --format ctranslate2 --quantize int8 --data nsmc \\
        --output_dir runs/nsmc-int8
    vanilla-transformer export --model model_cards/multi30k-de-en --format transformers --output_dir runs/native
    vanilla-transformer export --model runs/native --format vanilla --output_dir runs/back

`ctranslate2` and `onnx` are for speed: `predict` and `translate` take the folder as they take a model. `transformers`
is a model of one of transformers' own classes, which loads without other code, for translators that have such a twin;
`vanilla` is the way back from there. Nothing is written if the export does not agree with the model. With --data, also
quality and speed of both are measured; columns, files and split are, by default, those of the model's recipe.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import yaml
from datasets import DatasetDict
from transformers.utils import cached_file

from ..export import export, restore
from ..export.exporting import TASKS
from ..hub.record import RECIPE_FILE
from ..loading import load_config
from .arguments import LabelledTextArguments, exit_with_one_line, parse_arguments
from .train_translation import PairArguments


SAME = {
    "same_label": "same label",
    "same_translation_beams_1": "same translation",
    "same_translation_beams_5": "with 5 beams",
}


@dataclass
class ExportArguments:
    model: str = field(metadata={"help": "A model's folder or Hub name; for `vanilla` an exported folder."})
    format: Literal["ctranslate2", "onnx", "transformers", "vanilla"] = field(
        metadata={"help": "`ctranslate2`, `onnx`, `transformers`, or `vanilla`, the way back from `transformers`."}
    )
    output_dir: str = field(metadata={"help": "The folder for the export; it must be empty or missing."})
    quantize: Literal["int8"] | None = field(default=None, metadata={"help": "`int8`; by default float32."})
    data: str | None = field(
        default=None, metadata={"help": "Data to measure quality and speed on, as the training command takes it."}
    )
    split: Literal["train", "validation", "test"] = field(default="test", metadata={"help": "Split to measure on."})
    text_column: str | None = field(default=None, metadata={"help": "Of a classifier's data: the texts."})
    label_column: str | None = field(default=None, metadata={"help": "Of a classifier's data: the labels."})
    source_column: str | None = field(default=None, metadata={"help": "Of a translator's data: the texts."})
    target_column: str | None = field(default=None, metadata={"help": "Of a translator's data: the translations."})
    train_prefix: str | None = field(default=None, metadata={"help": "Beginning of the training files' names."})
    validation_prefix: str | None = field(default=None, metadata={"help": "Beginning of the validation files' names."})
    test_prefix: str | None = field(default=None, metadata={"help": "Beginning of the test files' names."})
    validation_fraction: float | None = field(
        default=None, metadata={"help": "Share of train that becomes validation."}
    )
    split_seed: int | None = field(default=None, metadata={"help": "Seed of the split into train and validation."})

    def __post_init__(self):
        if self.format == "vanilla" and (self.quantize or self.data):
            raise ValueError("--format vanilla: the model as it was, neither --quantize nor --data")

    def load(self, data_arguments: type) -> DatasetDict:
        """The splits, read as a training command reads them.

        Args:
            data_arguments: That command's settings of data: what is not given here is as in the model's recipe.

        Raises:
            ValueError: a column is given neither here nor in the recipe; or as in the training command.
        """
        file = cached_file(self.model, RECIPE_FILE, _raise_exceptions_for_missing_entries=False)
        recipe = yaml.safe_load(Path(file).read_text(encoding="utf-8")) if file else {}
        names = {one.name for one in fields(data_arguments)}
        given = {name: value for name, value in vars(self).items() if name in names and value is not None}
        settings = {name: value for name, value in recipe.items() if name in names} | given
        for name in ("source_column", "target_column"):
            if name in names and name not in settings:
                raise ValueError(f"--{name}: the model has no recipe that names it")
        return data_arguments(**settings).load()


def read_data(arguments: ExportArguments) -> dict[str, Any]:
    """The texts to measure on, as arguments of `export`; none without --data.

    Raises:
        ValueError: the model or the data cannot be read, or the labels are not the model's.
    """
    if arguments.data is None:
        return {}
    config = load_config(arguments.model)
    tasks = {model_class.__name__: task for model_class, task in TASKS.items()}
    if tasks.get((config.architectures or ["None"])[0]) == "classification":
        rows = arguments.load(LabelledTextArguments)[arguments.split]
        names, own = rows.features["label"].names, list(config.id2label.values())
        if names != own:
            raise ValueError(
                f"{arguments.model}: its labels are {', '.join(own)}; those of the data are {', '.join(names)}"
            )
        texts, answers = rows["text"][:], rows["label"][:]
    else:
        rows = arguments.load(PairArguments)[arguments.split]
        texts, answers = rows["source"][:], rows["target"][:]
    return {"texts": texts, "answers": answers, "data": {"source": arguments.data, "split": arguments.split}}


def summary(record: dict[str, Any]) -> list[str]:
    """The proof in a few lines."""
    random, data = record["proof"]["random_texts"], record["proof"].get("data")
    same = ", ".join(f"{title} {random[name]}" for name, title in SAME.items() if name in random)
    lines = [
        f"{random['texts']} random texts of 1 to {random['longest']} tokens: greatest difference from torch "
        f"{random['greatest_difference']:.1e}; {same}"
    ]
    if data is None:
        return lines
    parts = {"": data} if "torch" in data else {name: data[name] for name in data if name.startswith("beams_")}
    for name, part in parts.items():
        measure = "accuracy" if "accuracy" in part["torch"] else "bleu"
        values = [
            f"{title} {part[engine][measure]:.{4 if measure == 'accuracy' else 2}f}, "
            f"{part[engine]['texts_per_second']:,.0f} texts/s"
            for engine, title in (("export", "export"), ("torch", "torch"))
        ]
        same = part.get("same_label") or part.get("same_translation")
        search = {"": "", "beams_1": ", greedy search"}.get(name, f", {name.removeprefix('beams_')} beams")
        lines.append(f"{data['texts']:,} texts{search}: {measure} of {'; of '.join(values)}; the same {same}")
    return lines


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([ExportArguments], __doc__, argv)
    if arguments.format == "vanilla":
        restore(arguments.model, arguments.output_dir)
        print(f"{arguments.output_dir}: the model of {arguments.model}")
        return
    record = export(
        arguments.model, arguments.output_dir, arguments.format, arguments.quantize, **read_data(arguments)
    )
    for line in summary(record):
        print(line)
    print(f"{arguments.output_dir}: {record['task']} with {record['format']}, {record['quantize'] or 'float32'}")
