# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measure a classifier or a translator on one split, in torch or as it was exported.

    vanilla-transformer evaluate --model runs/mine --output_dir runs/evaluation
    vanilla-transformer evaluate --model model_cards/nsmc-small --data sample --output_dir runs/evaluation
    vanilla-transformer evaluate --model model_cards/nsmc-small --robustness all --output_dir runs/robustness
    vanilla-transformer evaluate --model runs/de-en-int8 --data multi30k --num_beams 5 --output_dir runs/bleu

Measures the test split, or `--split`, of the data of the model's recipe, or of `--data`. What else of the data the
flags leave open is as in the recipe, too: columns, files, how they are split.

Writes `report.md`, for people, and `evaluation.json`. Of a classifier: accuracy, precision, recall and F1 of each
label, confusion matrix, accuracy by length, calibration, texts per second; also `errors.tsv` (every misclassified
text, the most confident first) and `reliability.png`. A model of several labels a text, or of numbers, is measured as
such. Of a translator: BLEU, cased and lower-cased; also `translations.tsv`.

`--robustness all` measures a classifier with changed texts, too (`data/changes.py`): without spaces, with a space
between all characters or at random, with ㅋㅋ and ㅠㅠ of other lengths, without punctuation, decomposed (NFD), with
one slip of the fingers, with upper and lower case exchanged. It adds `robustness` to `evaluation.json`, and
`robustness.png`.
"""

from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from typing import Any, Literal

from .arguments import exit_with_one_line, parse_arguments
from .recipes import recipe_of
from .settings import LabelledTextArguments, RobustnessArguments, check_at_least
from .train_translation import PairArguments


# Their settings, all of which may be left open.
DataArguments: Any = make_dataclass(
    "DataArguments",
    {
        one.name: (one.name, one.type | None, field(default=None, metadata=one.metadata))  # type: ignore[operator]
        for group in (PairArguments, LabelledTextArguments)
        for one in fields(group)
    }.values(),
)


@dataclass
class EvaluationArguments(RobustnessArguments, DataArguments):
    model: str = field(kw_only=True, metadata={"help": "A model's folder or Hub name, or an exported folder."})
    output_dir: str = field(kw_only=True, metadata={"help": "The folder to write to; made if it is not there."})
    split: Literal["train", "validation", "test"] = field(default="test", metadata={"help": "Split to measure."})
    num_beams: int | None = field(
        default=None, metadata={"help": "Beams of a translator's search; by default as the model's `generate` has."}
    )
    batch_size: int = field(default=128, metadata={"help": "Texts in one pass through the model."})
    dtype: Literal["auto", "float32", "bfloat16"] = field(
        default="float32",
        metadata={"help": "Precision of the weights; `auto`: what this machine is faster in. An export has its own."},
    )

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, self, "batch_size", "num_beams")


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([EvaluationArguments], __doc__, argv)
    from .evaluation import evaluate

    evaluate(arguments)


def load_split(arguments: EvaluationArguments, data_arguments: type, **options: Any) -> Any:
    """Load the split to measure, as the training command of `data_arguments` would; `options` are those of its `load`.

    What the command's arguments leave open is as in the model's recipe; they get it, for the report.
    """
    settings = {one.name: one for one in fields(data_arguments)}
    given = {name: value for name, value in vars(arguments).items() if name in settings and value is not None}
    of_recipe = {name: value for name, value in recipe_of(arguments.model).items() if name in settings}
    found = of_recipe | given
    if missing := [f"--{name}" for name, one in settings.items() if one.default is MISSING and name not in found]:
        raise ValueError(f"{', '.join(missing)}: neither given nor in the model's recipe")
    data: Any = data_arguments(**found)
    arguments.__dict__ |= vars(data)
    whose = "" if "data" in given else ", the data of the model's recipe" if "data" in of_recipe else ", by default"
    print(f"Measuring {arguments.split} of {data.data}{whose}", flush=True)
    try:
        return data.load(**options)[arguments.split]
    except (OSError, ValueError) as error:
        raise error if "data" in given else ValueError(f"{error} (--data: where the data are)") from error
