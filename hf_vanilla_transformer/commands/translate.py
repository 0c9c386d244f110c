# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Translate texts: one per line from a file or standard input, or in a table.

    vanilla-transformer translate --model runs/en-de --file sentences.txt --num_beams 5
    echo 'Zwei Hunde spielen im Schnee.' | vanilla-transformer translate --model model_cards/multi30k-de-en
    vanilla-transformer translate --model runs/en-de --file pairs.csv --num_return_sequences 3 --return_scores true

Prints one line per text, in the order of the input. The file may have any size. A table (.csv, .tsv, .jsonl) is
written with the column `translation` added. A blank text has no answer: its columns are empty, in JSON null. Longer
texts than the model reads are cut; the last line on standard error says how many.

`--num_return_sequences` and `--return_scores` write more columns, in lines separated by tabs: `score`, the natural
logarithm of a translation's probability, `score_per_token`, that divided by its tokens with the end, and then
`translation 2`, `score 2` and so on.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from transformers.hf_argparser import HfArg

from ..inference import Translator
from .answering import Answer, LinesArguments, answer_texts, open_texts
from .arguments import parse_arguments


@dataclass
class TranslateArguments(LinesArguments):
    num_beams: int | None = HfArg(
        default=None, help="Beams of the search; 1 is greedy; by default as the model's `generate` has."
    )
    max_new_tokens: int | None = HfArg(
        default=None, help="Greatest number of tokens of a translation; by default the model's limit."
    )
    num_return_sequences: int = HfArg(
        default=1, help="Translations of each text, at most as many as beams; the best first."
    )
    return_scores: bool = HfArg(default=False, help="Write the log-probability of each translation, too.")


def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([TranslateArguments], __doc__, argv)
    texts = open_texts(arguments, repeats_text=False)
    options = ("num_beams", "max_new_tokens", "batch_size", "dtype")
    translate = Translator(arguments.model, **{name: getattr(arguments, name) for name in options})
    number, scores = arguments.num_return_sequences, arguments.return_scores
    names = ["translation", *(["score", "score_per_token"] if scores else [])]
    names += [f"{name} {rank}" for rank in range(2, 1 + number) for name in names]
    ask = partial(translate, num_return_sequences=number, return_scores=scores)
    answer_texts(arguments, texts, translate, names, ask, partial(columns_of, names))


def columns_of(names: list[str], answers: list[Any]) -> dict[str, Answer]:
    """Return the columns, by name, of a text's translations, which come with scores or without."""
    values = [value for one in answers for value in (one.values() if isinstance(one, dict) else [one])]
    # One line per text, even if a model of bytes writes a line feed.
    values = [value.replace("\n", " ") if isinstance(value, str) else round(value, 4) for value in values]
    return dict(zip(names, values, strict=True))
