# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Export a model to another engine, and prove that it computes the same there.

    vanilla-transformer export --model model_cards/multi30k-de-en --format ctranslate2 --output_dir runs/de-en
    vanilla-transformer export --model model_cards/nsmc-small --format ctranslate2 --quantize int8 \\
        --output_dir runs/nsmc-int8
    vanilla-transformer export --model model_cards/multi30k-de-en --format transformers --output_dir runs/native
    vanilla-transformer export --model runs/native --format vanilla --output_dir runs/back

`ctranslate2` and `onnx` are for speed: `predict`, `translate` and `evaluate` take the folder as they take a model; of
`onnx` classifiers only, the translators are for other programs. `transformers` is a model of one of transformers' own
classes, which loads without other code, for translators that have such a twin; `vanilla` is the way back from there.
Nothing is written if the export does not agree with the model.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from ..export import export, restore
from .arguments import exit_with_one_line, parse_arguments


@dataclass
class ExportArguments:
    model: str = field(metadata={"help": "A model's folder or Hub name; for `vanilla` an exported folder."})
    format: Literal["ctranslate2", "onnx", "transformers", "vanilla"] = field(
        metadata={"help": "`ctranslate2`, `onnx`, `transformers`, or `vanilla`, the way back from `transformers`."}
    )
    output_dir: str = field(metadata={"help": "The folder for the export; it must be empty or missing."})
    quantize: Literal["int8"] | None = field(default=None, metadata={"help": "`int8`; by default float32."})

    def __post_init__(self):
        if self.format == "vanilla" and self.quantize:
            raise ValueError("--quantize: has no effect with --format vanilla, which is the model as it was")


def summary(record: dict[str, Any]) -> str:
    """The proof in one line."""
    random = record["proof"]["random_texts"]
    titles = {"same_label": "same label", "same_translation": "same translation"}
    same = "".join(f"; {title} {random[name]}" for name, title in titles.items() if name in random)
    return (
        f"{random['texts']} random texts of 1 to {random['longest']} tokens: greatest difference from torch "
        f"{random['greatest_difference']:.1e}{same}"
    )


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([ExportArguments], __doc__, argv)
    if arguments.format == "vanilla":
        restore(arguments.model, arguments.output_dir)
        print(f"{arguments.output_dir}: the model of {arguments.model}")
        return
    record = export(arguments.model, arguments.output_dir, arguments.format, arguments.quantize)
    print(summary(record))
    print(f"{arguments.output_dir}: {record['task']} with {record['format']}, {record['quantize'] or 'float32'}")
