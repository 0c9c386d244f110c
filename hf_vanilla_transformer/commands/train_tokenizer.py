# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a SentencePiece-style tokenizer.

    vanilla-transformer train-tokenizer --texts corpus.txt more.txt.gz --model unigram --output_dir runs/tokenizer

The result is a folder that AutoTokenizer loads. The commands that train a model make a vocabulary of its data by
themselves.
"""

from dataclasses import dataclass

from transformers.hf_argparser import HfArg

from ..data.plain_text import read_texts
from ..data.rows import TextsOfColumns
from ..hub.finished_folder import finished_folder
from ..settings.groups import VocabularyKind
from ..tokenizer import train_tokenizer
from .arguments import parse_arguments


@dataclass
class TokenizerArguments:
    texts: list[str] = HfArg(help="Files with one text per line, plain or .gz.")
    output_dir: str = HfArg(help="The folder for the tokenizer.")
    encoding: str = HfArg(default="utf-8", help="Of the files, such as cp949.")
    vocab_size: int = HfArg(default=8007, help="Pieces and the seven special tokens together.")
    model: VocabularyKind = HfArg(default="bpe", help="What kind of vocabulary.")
    lowercase: bool = HfArg(default=False, help="Lowercase all texts.")
    max_length: int = HfArg(default=256, help="Tokens that truncation keeps.")


def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([TokenizerArguments], __doc__, argv)
    with finished_folder(arguments.output_dir) as folder:
        texts = TextsOfColumns(read_texts(arguments.texts, arguments.encoding), ["text"])
        options = {name: getattr(arguments, name) for name in ("vocab_size", "model", "lowercase", "max_length")}
        tokenizer = train_tokenizer(texts, **options)
        tokenizer.save_pretrained(folder)
    print(f"{arguments.output_dir}: {arguments.model} vocabulary of {len(tokenizer)}")
