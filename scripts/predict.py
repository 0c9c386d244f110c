"""Classify texts: one per line from a file, from standard input, or typed.

    python scripts/predict.py --model runs/nsmc --file reviews.txt
    echo '정말 재미있는 영화!' | python scripts/predict.py --model runs/nsmc

Writes one line a text, in the order of the input: label, probability and text, separated by tabs.
"""

from dataclasses import dataclass, field
from typing import Literal

from hf_vanilla_transformer.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.checkpoints import load_config, load_tokenizer
from hf_vanilla_transformer.inference import class_probabilities, given_texts, load_classifier


@dataclass
class PredictArguments:
    model: str = field(metadata={"help": "A classifier's folder or Hub name."})
    file: str | None = field(default=None, metadata={"help": "Texts, one per line, UTF-8; by default standard input."})
    batch_size: int = field(default=64, metadata={"help": "Texts in one pass through the model."})
    dtype: Literal["float32", "bfloat16"] = field(
        default="float32",
        metadata={"help": "`float32`, or `bfloat16`, which is faster on machines that compute in it."},
    )


@exit_with_one_line
def main() -> None:
    (arguments,) = parse_arguments([PredictArguments], description=__doc__.splitlines()[0])
    load_config(arguments.model)  # a wrong folder is refused before anything is typed
    groups = given_texts(arguments.file)
    tokenizer = load_tokenizer(arguments.model)
    model = load_classifier(arguments.model, arguments.dtype)
    for texts in groups:
        probabilities = class_probabilities(model, tokenizer, texts, arguments.batch_size)
        for text, row in zip(texts, probabilities, strict=True):
            print(f"{model.config.id2label[row.argmax().item()]}\t{row.max().item():.4f}\t{text}", flush=True)


if __name__ == "__main__":
    main()
