# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Compare models on the same rows: which is better, by how much, and which answers differ.

    vanilla-transformer compare runs/september runs/october --data test.csv --output_dir runs/comparison
    vanilla-transformer compare model_cards/nsmc-small runs/mine --data sample

Prints a row of figures for each model, and whether each other one is better or worse than the first: for classifiers
by McNemar's exact test with a paired bootstrap's interval, for translators by sacreBLEU's paired bootstrap. Rows are
those that `evaluate` measures of the first model. `--output_dir` gets `report.md`, `comparison.json`, a picture, and
`changed.tsv`, every text whose answer changed, the surest first. Of runs whose recipes differ by their seed alone, it
has mean and spread.
"""

import sys

from ..settings import CompareArguments
from .arguments import exit_with_one_line, read_command_line


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    words = list(sys.argv[1:] if argv is None else map(str, argv))
    flags = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    _, settings = read_command_line([CompareArguments], __doc__, words[flags:])
    from ..comparing import compare

    compare(**{"models": words[:flags], **settings})
