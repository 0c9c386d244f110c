# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a SentencePiece-style tokenizer.

    vanilla-transformer train-tokenizer --data nsmc --output_dir runs/tokenizer
    vanilla-transformer train-tokenizer --texts corpus.txt more.txt.gz --model unigram --output_dir runs/tokenizer

The result is a folder that AutoTokenizer loads. Of labelled data, only the train split is read.
"""

import logging
from dataclasses import dataclass, field
from typing import Literal

from ..data.labelled_text import load_labelled_text
from ..data.plain_text import read_texts
from ..training.checkpoints import prepare_output_dir
from .arguments import check_at_least, exit_with_one_line, parse_arguments
from .vocabulary import train_vocabulary


@dataclass
class TokenizerArguments:
    output_dir: str = field(metadata={"help": "The folder for the tokenizer."})
    texts: list[str] = field(
        default_factory=list,
        metadata={"help": "Files with one text per line, plain or .gz, UTF-8; not --data."},
    )
    data: str | None = field(
        default=None,
        metadata={"help": "`sample`, `nsmc`, a folder with NSMC's two files, a TSV/CSV/JSON file, a Hub data set."},
    )
    text_column: str = field(default="document", metadata={"help": "The column with the texts."})
    label_column: str = field(default="label", metadata={"help": "The column with the labels."})
    vocab_size: int = field(default=8007, metadata={"help": "Pieces and the seven special tokens together."})
    vocab_lines: int | None = field(
        default=None, metadata={"help": "Train on this many texts, evenly spaced; by default on all."}
    )
    model: Literal["bpe", "unigram", "word"] = field(default="bpe", metadata={"help": "What kind of vocabulary."})
    lowercase: bool = field(default=False, metadata={"help": "Lowercase all texts."})
    max_length: int = field(default=256, metadata={"help": "Tokens that truncation keeps."})

    def __post_init__(self):
        check_at_least(1, self, "vocab_lines")
        if bool(self.texts) == bool(self.data):
            raise ValueError("name either --texts or --data")


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([TokenizerArguments], __doc__, argv)
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    prepare_output_dir(arguments.output_dir)
    if arguments.texts:
        texts = read_texts(arguments.texts)
    else:
        data = load_labelled_text(
            arguments.data, text_column=arguments.text_column, label_column=arguments.label_column
        )
        texts = data["train"]
    tokenizer = train_vocabulary(
        texts,
        ["text"],
        arguments.vocab_lines,
        vocab_size=arguments.vocab_size,
        model=arguments.model,
        lowercase=arguments.lowercase,
        max_length=arguments.max_length,
    )
    tokenizer.save_pretrained(arguments.output_dir)
    print(f"{arguments.output_dir}: {arguments.model} vocabulary of {len(tokenizer)}")
