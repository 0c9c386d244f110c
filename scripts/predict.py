"""Classify texts: one a line from a file, from standard input, or typed.

    python scripts/predict.py --model runs/nsmc --file reviews.txt
    echo '정말 재미있는 영화!' | python scripts/predict.py --model runs/nsmc

Writes one line a text, in the order of the input: label, probability and text, separated by tabs.
"""

from dataclasses import dataclass, field

import torch
from transformers import (
    AutoModelForSequenceClassification,
    BatchEncoding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from hf_vanilla_transformer.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data import encode
from hf_vanilla_transformer.inference import answer_by_length, given_texts
from hf_vanilla_transformer.training import load_config, load_tokenizer


@dataclass
class PredictArguments:
    model: str = field(metadata={"help": "A classifier's folder or Hub name."})
    file: str | None = field(default=None, metadata={"help": "Texts, one a line, UTF-8; by default standard input."})
    batch_size: int = field(default=64, metadata={"help": "Texts in one pass through the model."})
    dtype: str = field(
        default="float32",
        metadata={"help": "`float32`, or `bfloat16`, which is faster on machines that compute in it."},
    )

    def __post_init__(self):
        if self.dtype not in ("float32", "bfloat16"):
            raise ValueError(f"--dtype: float32 or bfloat16, not {self.dtype}")


@torch.inference_mode()
def classify(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: list[str], batch_size: int
) -> list[tuple[str, float]]:
    """The most probable label of each text, and its probability."""

    def answer(batch: BatchEncoding) -> list[tuple[str, float]]:
        best = model(**batch.to(model.device)).logits.float().softmax(dim=-1).max(dim=-1)
        labels = [model.config.id2label[label] for label in best.indices.tolist()]
        return list(zip(labels, best.values.tolist(), strict=True))

    input_ids = encode(texts, tokenizer, max_length=model.config.max_position_embeddings)
    return answer_by_length(input_ids, tokenizer, batch_size, answer)


@exit_with_one_line
def main() -> None:
    (arguments,) = parse_arguments([PredictArguments], description=__doc__.splitlines()[0])
    config = load_config(arguments.model)
    groups = given_texts(arguments.file)
    tokenizer = load_tokenizer(arguments.model)
    model, loading = AutoModelForSequenceClassification.from_pretrained(
        arguments.model, config=config, dtype=arguments.dtype, output_loading_info=True
    )
    if loading["missing_keys"]:
        raise ValueError(f"{arguments.model}: not a classifier, it lacks {', '.join(sorted(loading['missing_keys']))}")
    model.eval()
    if torch.accelerator.is_available():
        model.to(torch.accelerator.current_accelerator())

    for texts in groups:
        for text, (label, probability) in zip(
            texts, classify(model, tokenizer, texts, arguments.batch_size), strict=True
        ):
            print(f"{label}\t{probability:.4f}\t{text}", flush=True)


if __name__ == "__main__":
    main()
