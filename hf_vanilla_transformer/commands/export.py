# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Export a model to another engine, and prove that it computes the same there.

    vanilla-transformer export --model model_cards/multi30k-de-en --format ctranslate2 --output_dir runs/de-en
    vanilla-transformer export --model model_cards/nsmc-small --format ctranslate2 --quantize int8 \\
        --output_dir runs/nsmc-int8
    vanilla-transformer export --model model_cards/multi30k-de-en --format transformers --output_dir runs/native
    vanilla-transformer export --model runs/native --format vanilla --output_dir runs/back

`ctranslate2`, and for classifiers `onnx`, are for speed: `predict`, `translate` and `evaluate` take the folder as they
take a model. `transformers` is a model of one of transformers' own classes, which loads without other code, for
translators that have such a twin; `vanilla` is the way back from there. Nothing is written if the export does not
agree with the model: on random texts, and on those of its run's validation split where the recipe's data are here.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from transformers.hf_argparser import HfArg

from ..errors import DataError
from ..export import export, restore
from .arguments import exit_with_one_line, parse_arguments
from .recipes import recipe_of
from .settings import LabelledTextArguments, PairArguments


@dataclass
class ExportArguments:
    model: str = HfArg(help="A model's folder or Hub name; for `vanilla` an exported folder.")
    format: Literal["ctranslate2", "onnx", "transformers", "vanilla"] = HfArg(
        help="`ctranslate2`; `onnx` (classifiers), `transformers` (translators); `vanilla`, the way back from there."
    )
    output_dir: str = HfArg(help="The folder for the export; it must be empty or missing.")
    quantize: Literal["int8"] | None = HfArg(default=None, help="`int8`; by default float32.")

    def __post_init__(self):
        if self.format == "vanilla" and self.quantize:
            raise DataError("--quantize: has no effect with --format vanilla, which is the model as it was")


def validation_texts(folder: str, most: int = 200) -> list[str]:
    """The first texts of the run's validation split, where its recipe names data that are here."""
    try:
        recipe = recipe_of(folder)
        source = str(recipe.get("data", "sample"))
        if not recipe or source != "sample" and not Path(source).expanduser().exists():
            return []
        pairs = "source_column" in recipe
        group: Any = PairArguments if pairs else LabelledTextArguments
        arguments = group(**{field.name: recipe[field.name] for field in fields(group) if field.name in recipe})
        data = arguments.load() if pairs else arguments.load(recipe.get("problem_type"))
    except (OSError, ValueError) as error:
        print(f"No texts of the validation split: {error}")
        return []
    return data["validation"]["source" if pairs else "text"][:most]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([ExportArguments], __doc__, argv)
    if arguments.format == "vanilla":
        restore(arguments.model, arguments.output_dir)
        print(f"{arguments.output_dir}: the model of {arguments.model}")
        return
    texts = validation_texts(arguments.model)
    record = export(arguments.model, arguments.output_dir, arguments.format, arguments.quantize, texts)
    for kind, title in (("validation_texts", "texts of the validation split"), ("random_texts", "random texts")):
        if found := record["proof"].get(kind):
            same = [
                f"; {name.replace('_', ' ')} {found[name]}"
                for name in ("same_label", "same_translation")
                if name in found
            ]
            print(
                f"{found['texts']} {title} of 1 to {found['longest']} tokens: greatest difference from torch "
                f"{found['greatest_difference']:.1e}{''.join(same)}"
            )
    print(f"{arguments.output_dir}: {record['task']} with {record['format']}, {record['quantize'] or 'float32'}")
