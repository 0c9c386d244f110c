# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Translate texts: one per line from a file, from standard input, or typed.

    vanilla-transformer translate --model runs/en-de --file sentences.txt --num_beams 5
    echo 'Zwei Hunde spielen im Schnee.' | vanilla-transformer translate --model model_cards/multi30k-de-en

Prints one line per text, in the order of the input. An empty line stays empty.
"""

import logging
from dataclasses import dataclass, field

import torch
from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

from ..inference import answer_by_length, given_texts
from ..loading import load_target_tokenizer, load_tokenizer, load_translator
from .arguments import check_at_least, exit_with_one_line, parse_arguments


logger = logging.getLogger(__name__)


@dataclass
class TranslateArguments:
    model: str = field(metadata={"help": "A translator's folder or Hub name."})
    file: str | None = field(default=None, metadata={"help": "Texts, one per line, UTF-8; by default standard input."})
    num_beams: int = field(default=1, metadata={"help": "Beams of the search; 1 is greedy."})
    batch_size: int = field(default=64, metadata={"help": "Texts translated at once."})
    max_new_tokens: int | None = field(
        default=None, metadata={"help": "Greatest number of tokens of a translation; by default the model's limit."}
    )
    truncation: bool = field(
        default=True, metadata={"help": "Cut texts that are longer than the model reads; false refuses them."}
    )

    def __post_init__(self):
        check_at_least(1, self, "num_beams", "batch_size", "max_new_tokens")


def encode_sources(
    texts: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int, truncation: bool
) -> list[list[int]]:
    """The ids of each text, cut to `max_length` with a warning.

    Raises:
        ValueError: a text is longer, and is not to be cut.
    """
    if not texts:  # which a tokenizer refuses
        return []
    whole = tokenizer(texts, verbose=False)["input_ids"]
    too_long = [number for number, ids in enumerate(whole, start=1) if len(ids) > max_length]
    if too_long:
        first = f"text {too_long[0]} has {len(whole[too_long[0] - 1])} tokens, the model reads {max_length}"
        if not truncation:
            raise ValueError(first)
        logger.warning("%s; cut: %d of %d texts", first, len(too_long), len(texts))
    return tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]


@torch.inference_mode()
def translate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    target_tokenizer: PreTrainedTokenizerBase,
    texts: list[str],
    arguments: TranslateArguments,
) -> list[str]:
    """The translation of each text; that of one without a token is empty."""
    limit = {"max_length": model.config.max_target_positions}
    if arguments.max_new_tokens is not None:
        limit = {"max_new_tokens": arguments.max_new_tokens}

    def answer(batch: BatchEncoding) -> list[str]:
        ids = model.generate(**batch.to(model.device), num_beams=arguments.num_beams, do_sample=False, **limit)
        return target_tokenizer.batch_decode(ids, skip_special_tokens=True)

    tokens = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
    places = [place for place, ids in enumerate(tokens) if ids]
    input_ids = encode_sources(
        [texts[place] for place in places], tokenizer, model.config.max_position_embeddings, arguments.truncation
    )
    translations = [""] * len(texts)
    for place, translation in zip(
        places, answer_by_length(input_ids, tokenizer, arguments.batch_size, answer), strict=True
    ):
        translations[place] = translation
    return translations


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([TranslateArguments], __doc__, argv)
    logging.basicConfig(format="%(message)s")
    groups = given_texts(arguments.file)
    model = load_translator(arguments.model)
    tokenizer = load_tokenizer(arguments.model)
    target_tokenizer = load_target_tokenizer(arguments.model, model.config, tokenizer)
    for texts in groups:
        for translation in translate(model, tokenizer, target_tokenizer, texts, arguments):
            print(translation, flush=True)
