# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Translate texts: one per line from a file, from standard input, or typed.

    vanilla-transformer translate --model runs/en-de --file sentences.txt --num_beams 5
    echo 'Zwei Hunde spielen im Schnee.' | vanilla-transformer translate --model model_cards/multi30k-de-en
    vanilla-transformer translate --model runs/en-de --file millions.txt.gz --output translations.txt --resume

Prints one line per text, in the order of the input. An empty line stays empty. The file may have any size. A table
(.csv, .tsv, .json, .jsonl) is written with the column `translation` added; one in JSON, a line each.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from transformers.hf_argparser import HfArg

from .arguments import exit_with_one_line, parse_arguments
from .lines import LinesArguments, answer_lines, open_texts
from .settings import check_at_least


@dataclass
class TranslateArguments(LinesArguments):
    model: str = HfArg(help="A translator's folder or Hub name, or an exported folder.")
    num_beams: int | None = HfArg(
        default=None, help="Beams of the search; 1 is greedy; by default as the model's `generate` has."
    )
    max_new_tokens: int | None = HfArg(
        default=None, help="Greatest number of tokens of a translation; by default the model's limit."
    )
    truncation: bool = HfArg(default=True, help="Cut texts that are longer than the model reads; false refuses them.")

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, self, "num_beams", "max_new_tokens")


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([TranslateArguments], __doc__, argv)
    logging.basicConfig(format="%(message)s")
    with open_texts(arguments, "source_column", "translation") as texts:
        from ..inference import iterate_translations
        from ..inference.engine import load_engine
        from ..inference.folder import load_tokenizers

        engine = load_engine(arguments.model, arguments.dtype, "translation")
        tokenizers = load_tokenizers(arguments.model, engine.config)

        def answer(lines: Iterator[str], first: int) -> Iterator[list[str]]:
            translations = iterate_translations(
                lines,
                engine,
                *tokenizers,
                num_beams=arguments.num_beams,
                max_new_tokens=arguments.max_new_tokens,
                batch_size=arguments.batch_size,
                truncation=arguments.truncation,
                first=first,
            )
            # One line per text, even where a model of bytes writes a line feed.
            return ([translation.replace("\n", " ")] for translation in translations)

        answer_lines(texts, arguments, answer, ["translation"], engine.config, repeat_text=False)
