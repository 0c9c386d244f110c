# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Convert a SentencePiece model to a tokenizer folder, and compare its ids with the library's.

    vanilla-transformer import-sentencepiece --sentencepiece_model kowiki.model --output_dir runs/kowiki
    vanilla-transformer import-sentencepiece --sentencepiece_model kowiki.model --output_dir runs/kowiki \\
        --compare ratings_train.txt ratings_test.txt --text_column document
"""

from dataclasses import dataclass

from transformers.hf_argparser import HfArg

from ..data.lines import read_lines
from ..data.tables import read_tables
from ..finished_folder import finished_folder
from ..tokenizer import import_sentencepiece
from .arguments import exit_with_one_line, parse_arguments


@dataclass
class ImportArguments:
    sentencepiece_model: str = HfArg(help="The SentencePiece .model file, BPE or Unigram.")
    output_dir: str = HfArg(help="The folder for the tokenizer.")
    compare: list[str] = HfArg(
        default_factory=list, help="UTF-8 files, one text per line, to compare with the library."
    )
    text_column: str | None = HfArg(
        default=None, help="The files to compare are tables (TSV, CSV, JSON): read this column."
    )
    backend: str | None = HfArg(
        default=None, help="`tokenizers` or `sentencepiece`; by default the one with exactly the library's ids."
    )
    max_length: int = HfArg(default=256, help="Tokens that truncation keeps.")


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([ImportArguments], __doc__, argv)
    with finished_folder(arguments.output_dir) as folder:
        tokenizer = import_sentencepiece(
            arguments.sentencepiece_model, max_length=arguments.max_length, backend=arguments.backend
        )
        texts: list[str] = []
        column = arguments.text_column
        for file in arguments.compare:
            # A table may have rows without a text.
            texts += read_lines(file) if column is None else filter(None, read_tables(file, [column])["train"][column])
        if texts:
            # Here rather than above, since the import has checked that the package is there.
            from sentencepiece import SentencePieceProcessor

            expected = SentencePieceProcessor(model_file=arguments.sentencepiece_model).encode(texts)
            ids = tokenizer(texts, verbose=False).input_ids
            differing = sum(ours != theirs for ours, theirs in zip(ids, expected, strict=True))
            print(f"{differing} of {len(texts)} lines differ")
        tokenizer.save_pretrained(folder)
    print(f"{arguments.output_dir}: {type(tokenizer).__name__}, vocabulary of {len(tokenizer)}")
