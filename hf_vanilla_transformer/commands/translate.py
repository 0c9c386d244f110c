# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Translate texts: one per line from a file, from standard input, or typed.

    vanilla-transformer translate --model runs/en-de --file sentences.txt --num_beams 5
    echo 'Zwei Hunde spielen im Schnee.' | vanilla-transformer translate --model model_cards/multi30k-de-en
    vanilla-transformer translate --model runs/en-de --file millions.txt.gz --output translations.txt --resume

Prints one line per text, in the order of the input. An empty line stays empty. The file may have any size. A table
(.csv, .tsv, .json, .jsonl, .parquet) is written with the column `translation` added; one in JSON, a line each. Of a
folder, each file is answered in a file of its own.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from transformers.hf_argparser import HfArg

from ..inference import Translator
from ..settings import check_at_least
from .answering import LinesArguments, answer_lines, open_texts
from .arguments import exit_with_one_line, parse_arguments


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
        translate = Translator(
            arguments.model,
            num_beams=arguments.num_beams,
            max_new_tokens=arguments.max_new_tokens,
            truncation=arguments.truncation,
            batch_size=arguments.batch_size,
            dtype=arguments.dtype,
        )

        def answer(lines: Iterator[str], first: int) -> Iterator[list[str]]:
            # One line per text, even where a model of bytes writes a line feed.
            return ([translation.replace("\n", " ")] for translation in translate.stream(lines, first=first))

        answer_lines(texts, arguments, answer, ["translation"], translate.max_characters, repeat_text=False)
