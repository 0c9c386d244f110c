# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measure a classifier or a translator, in torch or as it was exported.

    vanilla-transformer evaluate --model runs/mine --output_dir runs/evaluation
    vanilla-transformer evaluate --model model_cards/nsmc-small --data sample --output_dir runs/evaluation
    vanilla-transformer evaluate --model model_cards/nsmc-small --robustness all --output_dir runs/robustness
    vanilla-transformer evaluate --model runs/de-en-int8 --data multi30k --num_beams 5 --output_dir runs/bleu

`--data` is measured whole, or its test split where it has one. Without `--data`, the test split of the data of the
model's recipe is measured. The settings of pairs and data are by default those of the recipe.

Writes `report.md`, for people, `evaluation.json`, and `predictions.tsv`: each row with what the model made of it. Of a
classifier: accuracy, precision, recall and F1 of each label, confusion matrix, calibration. Of a translator: BLEU,
cased and lower-cased, and chrF, with sacreBLEU's signatures.

`--robustness all` measures a classifier with changed texts, too (`data/changes.py`): with other spacing, with more or
fewer ㅋ and ㅠ, without punctuation, decomposed (NFD), with a slip of the fingers, in the other case.
"""

from ..data.errors import DataError
from ..settings.groups import EvaluationArguments, LabelledTextArguments, PairArguments
from .arguments import read_command_line


def main(argv: list[str] | None = None) -> None:
    recipe, settings = read_command_line([EvaluationArguments, PairArguments, LabelledTextArguments], __doc__, argv)
    if recipe is not None or "model" not in settings:
        raise DataError("name the model by --model")
    from ..evaluation.evaluate import evaluate

    evaluate(**settings)
