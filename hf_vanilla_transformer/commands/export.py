# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Export a model to another engine, and compare it with torch.

    vanilla-transformer export --model model_cards/multi30k-de-en --format ctranslate2 --output_dir runs/de-en
    vanilla-transformer export --model model_cards/nsmc-small --format ctranslate2 --quantize int8 \\
        --output_dir runs/nsmc-int8

`predict`, `translate` and `evaluate` take the exported folder as they take a model. Nothing is written if the export
does not agree with the model on random texts.
"""

from ..settings.groups import ExportArguments
from .arguments import parse_arguments


def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([ExportArguments], __doc__, argv)
    from ..exports import export

    export(**vars(arguments))
