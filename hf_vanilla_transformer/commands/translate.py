# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Translate texts: one per line from a file, from standard input, or typed.

    vanilla-transformer translate --model runs/en-de --file sentences.txt --num_beams 5
    echo 'Zwei Hunde spielen im Schnee.' | vanilla-transformer translate --model model_cards/multi30k-de-en
    vanilla-transformer translate --model runs/en-de --file millions.txt.gz --output translations.txt --resume
    vanilla-transformer translate --model runs/en-de --file pairs.csv --num_return_sequences 3 --return_scores true

Prints one line per text, in the order of the input. The file may have any size. A table (.csv, .tsv, .json, .jsonl,
.parquet) is written with the column `translation` added; one in JSON, a line each. A blank text has no answer: its
columns are empty, in JSON and Parquet null. Of a folder, each file is answered in a file of its own.

`--num_return_sequences` and `--return_scores` write more columns, in lines separated by tabs: `score`, the natural
logarithm of a translation's probability, `score_per_token`, that divided by its tokens with the end, and then
`translation 2`, `score 2` and so on. `--alignments` writes `alignment`: for each word of the translation, its
number behind that of the word in the text that cross-attention reads most, such as `0-0 2-1`; words are what white
space separates, and the first has the number 0.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from transformers.hf_argparser import HfArg

from ..errors import DataError
from ..inference import Translator
from ..settings import check_at_least
from .answering import Answer, LinesArguments, answer_lines, open_texts
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
    num_return_sequences: int = HfArg(
        default=1, help="Translations of each text, at most as many as beams; the best first."
    )
    return_scores: bool = HfArg(default=False, help="Write the log-probability of each translation, too.")
    alignments: bool = HfArg(
        default=False,
        help="Write which word of the text each word of the translation comes from, too.",
    )
    split_sentences: bool = HfArg(
        default=False, help="Translate sentence by sentence; for texts that are longer than the model reads."
    )

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, self, "num_beams", "max_new_tokens", "num_return_sequences")
        refused = [name for name in ("return_scores", "alignments") if getattr(self, name)]
        refused += ["num_return_sequences"] if self.num_return_sequences > 1 else []
        if self.split_sentences and refused:
            raise DataError(f"--{refused[0]}: not with --split_sentences, which joins the translations of sentences")


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([TranslateArguments], __doc__, argv)
    logging.basicConfig(format="%(message)s")
    of_each = ["translation", *(["score", "score_per_token"] if arguments.return_scores else [])]
    of_each += ["alignment"] if arguments.alignments else []
    names = [*of_each]
    for place in range(2, 1 + arguments.num_return_sequences):
        names += [f"{name} {place}" for name in of_each]
    with open_texts(arguments, "source_column", *names) as texts:
        translate = Translator(
            arguments.model,
            num_beams=arguments.num_beams,
            max_new_tokens=arguments.max_new_tokens,
            truncation=arguments.truncation,
            split_sentences=arguments.split_sentences,
            batch_size=arguments.batch_size,
            dtype=arguments.dtype,
        )

        number = arguments.num_return_sequences
        wanted: Any = {
            "num_return_sequences": number if number > 1 else None,
            "return_scores": arguments.return_scores,
            "alignments": arguments.alignments,
        }

        def columns(found: Any) -> list[Answer]:
            written: list[Answer] = []
            for one in found if number > 1 else [found]:
                text, *more = one.values() if len(of_each) > 1 else [one]
                # One line per text, even where a model of bytes writes a line feed.
                written += [text.replace("\n", " "), *map(_cell, more)]
            return written

        def answer(lines: Iterator[str], first: int) -> Iterator[list[Answer]]:
            return map(columns, translate.stream(lines, first=first, **wanted))

        answer_lines(texts, arguments, answer, names, translate.max_characters, repeat_text=False)


def _cell(value: float | list[int]) -> Answer:
    """A score, or an alignment as Pharaoh and fast_align write it."""
    return (
        " ".join(f"{source}-{place}" for place, source in enumerate(value))
        if isinstance(value, list)
        else round(value, 4)
    )
