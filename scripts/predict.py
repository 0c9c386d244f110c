"""Classify texts: one a line from a file, from standard input, or typed.

    python scripts/predict.py --model runs/nsmc --file reviews.txt
    echo '정말 재미있는 영화!' | python scripts/predict.py --model runs/nsmc

Writes one line a text, in the order of the input: label, probability and text, separated by tabs.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import torch
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from hf_vanilla_transformer.data import encode, read_lines
from hf_vanilla_transformer.training import exit_with_one_line, load_config, load_tokenizer, parse_arguments


@dataclass
class PredictArguments:
    model: str = field(metadata={"help": "A classifier's folder or Hub name."})
    file: str | None = field(default=None, metadata={"help": "Texts, one a line, UTF-8; by default standard input."})
    batch_size: int = field(default=64, metadata={"help": "Texts in one pass through the model."})


@torch.inference_mode()
def classify(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: list[str], batch_size: int
) -> list[tuple[str, float]]:
    """The most probable label of each text, and its probability. Texts of like length share a batch."""
    input_ids = encode(texts, tokenizer, max_length=model.config.max_position_embeddings)
    order = sorted(range(len(texts)), key=lambda place: len(input_ids[place]))
    batches = DataLoader(
        [{"input_ids": input_ids[place]} for place in order],
        batch_size=batch_size,
        collate_fn=DataCollatorWithPadding(tokenizer),
    )
    probabilities = torch.cat([model(**batch.to(model.device)).logits.softmax(dim=-1).cpu() for batch in batches])
    answers = [None] * len(texts)
    for place, row in zip(order, probabilities, strict=True):
        answers[place] = (model.config.id2label[row.argmax().item()], row.max().item())
    return answers


def typed_lines() -> Iterator[str]:
    """Lines as a person types them, until an empty one or the end of input."""
    with suppress(EOFError):
        while line := input("> "):
            yield line


@exit_with_one_line
def main() -> None:
    (arguments,) = parse_arguments([PredictArguments], description=__doc__.splitlines()[0])
    config = load_config(arguments.model)
    texts = None if arguments.file is None else read_lines(arguments.file)
    tokenizer = load_tokenizer(arguments.model)
    model, loading = AutoModelForSequenceClassification.from_pretrained(
        arguments.model, config=config, output_loading_info=True
    )
    if loading["missing_keys"]:
        raise ValueError(f"{arguments.model}: not a classifier, it lacks {', '.join(sorted(loading['missing_keys']))}")
    model.eval()
    if torch.accelerator.is_available():
        model.to(torch.accelerator.current_accelerator())

    def answer(texts: list[str]) -> None:
        for text, (label, probability) in zip(
            texts, classify(model, tokenizer, texts, arguments.batch_size), strict=True
        ):
            print(f"{label}\t{probability:.4f}\t{text}", flush=True)

    if texts is None and sys.stdin.isatty():
        for line in typed_lines():
            answer([line])
    else:
        if texts is None:
            texts = [line.rstrip("\r\n") for line in sys.stdin]
        if texts:
            answer(texts)


if __name__ == "__main__":
    main()
