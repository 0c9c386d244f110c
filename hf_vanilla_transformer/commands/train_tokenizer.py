# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a SentencePiece-style tokenizer.

    vanilla-transformer train-tokenizer --data nsmc --output_dir runs/tokenizer
    vanilla-transformer train-tokenizer --texts corpus.txt more.txt.gz --model unigram --output_dir runs/tokenizer

The result is a folder that AutoTokenizer loads. Of labelled data, only the train split is read.
"""

from dataclasses import dataclass

from transformers.hf_argparser import HfArg

from ..data.plain_text import read_texts
from ..data.rows import TextsOfColumns
from ..errors import DataError
from ..hub.finished_folder import finished_folder
from ..settings.groups import LabelledTextArguments, VocabularyKind
from ..tokenizer import train_tokenizer
from .arguments import parse_arguments


@dataclass(kw_only=True)
class TokenizerArguments(LabelledTextArguments):
    output_dir: str = HfArg(help="The folder for the tokenizer.")
    texts: list[str] = HfArg(default_factory=list, help="Files with one text per line, plain or .gz; not --data.")
    data: str = HfArg(default="", help="Labelled text, as train-classifier takes it.")
    vocab_size: int = HfArg(default=8007, help="Pieces and the seven special tokens together.")
    model: VocabularyKind = HfArg(default="bpe", help="What kind of vocabulary.")
    lowercase: bool = HfArg(default=False, help="Lowercase all texts.")
    max_length: int = HfArg(default=256, help="Tokens that truncation keeps.")

    def __post_init__(self):
        if bool(self.texts) == bool(self.data):
            raise DataError("name either --texts or --data")


def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([TokenizerArguments], __doc__, argv)
    with finished_folder(arguments.output_dir) as folder:
        texts, encoding = arguments.texts, arguments.encoding or "utf-8"
        rows = read_texts(texts, encoding) if texts else arguments.load()["train"]
        options = {name: getattr(arguments, name) for name in ("vocab_size", "model", "lowercase", "max_length")}
        tokenizer = train_tokenizer(TextsOfColumns(rows, ["text"]), **options)
        tokenizer.save_pretrained(folder)
    print(f"{arguments.output_dir}: {arguments.model} vocabulary of {len(tokenizer)}")
