# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measure a classifier or a translator on one split, in torch or as it was exported.

    vanilla-transformer evaluate --model runs/mine --output_dir runs/evaluation
    vanilla-transformer evaluate --model model_cards/nsmc-small --data sample --output_dir runs/evaluation
    vanilla-transformer evaluate --model model_cards/nsmc-small --robustness all --output_dir runs/robustness
    vanilla-transformer evaluate --model runs/de-en-int8 --data multi30k --num_beams 5 --output_dir runs/bleu
    vanilla-transformer evaluate --model runs/de-en --data multi30k --test_prefixes test_2016_flickr test_2017_flickr

Measures the test split, or `--split`, of `--data`, by default the data of the model's recipe. A single file is
measured as a whole, unless the model was trained on it. Columns, files and cuts that no flag names are the recipe's.

Writes `report.md`, for people, and `evaluation.json`. Of a classifier: accuracy, precision, recall and F1 of each
label, confusion matrix, accuracy by length, calibration, texts per second; also `errors.tsv`: every misclassified text
with its line in the file (its row, where there are no lines), the most confident first. A model of several labels a
text, or of numbers, is measured as such. Of a translator: BLEU, cased and lower-cased, and chrF, with sacreBLEU's
signatures; also `translations.tsv`. `--test_prefixes` measures several test sets.

`--robustness all` measures a classifier with changed texts, too (`data/changes.py`): without spaces, with a space
between all characters or at random, with ㅋㅋ and ㅠㅠ of other lengths, without punctuation, decomposed (NFD), with
one slip of the fingers, with upper and lower case exchanged. It adds `robustness` to `evaluation.json`.
"""

from ..settings import EvaluationArguments
from .arguments import exit_with_one_line, read_command_line


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    _, settings = read_command_line([EvaluationArguments], __doc__, argv)
    from ..evaluation import evaluate

    evaluate(**settings)
