"""Make a tokenizer folder from a SentencePiece model, and count the texts whose ids differ from the library's.

    python scripts/import_sentencepiece.py --sentencepiece_model kowiki.model --output_dir runs/kowiki \
        --compare ratings_train.txt ratings_test.txt --text_column document
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hf_vanilla_transformer.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.checkpoints import prepare_output_dir
from hf_vanilla_transformer.data import read_lines
from hf_vanilla_transformer.tokenizer import import_sentencepiece


@dataclass
class ImportArguments:
    sentencepiece_model: str = field(metadata={"help": "The SentencePiece .model file, BPE or Unigram."})
    output_dir: str = field(metadata={"help": "The folder for the tokenizer."})
    compare: list[str] = field(
        default_factory=list, metadata={"help": "UTF-8 files, one text per line, to compare with the library."}
    )
    text_column: str | None = field(
        default=None, metadata={"help": "The files to compare are TSV with a header: read this column."}
    )
    backend: str | None = field(
        default=None,
        metadata={"help": "`tokenizers` or `sentencepiece`; by default the one with exactly the library's ids."},
    )
    max_length: int = field(default=256, metadata={"help": "Tokens that truncation keeps."})


def read_texts(file: str, text_column: str | None) -> Iterator[str]:
    """A file's lines, or one column of them; fields are taken as they stand, quotes and all."""
    lines = read_lines(file)
    if text_column is None:
        yield from lines
        return
    header = lines[0].split("\t") if lines else []
    if text_column not in header:
        raise ValueError(f"{file}: no column {text_column!r}")
    column = header.index(text_column)
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != len(header):
            raise ValueError(f"{file}, line {number}: {len(fields)} columns instead of {len(header)}")
        yield fields[column]


@exit_with_one_line
def main() -> None:
    (arguments,) = parse_arguments([ImportArguments], description=__doc__.splitlines()[0])
    prepare_output_dir(arguments.output_dir)
    tokenizer = import_sentencepiece(
        arguments.sentencepiece_model, max_length=arguments.max_length, backend=arguments.backend
    )
    texts = [text for file in arguments.compare for text in read_texts(file, arguments.text_column)]
    if texts:
        # Here rather than above, since the import has checked that the package is there.
        from sentencepiece import SentencePieceProcessor

        expected = SentencePieceProcessor(model_file=arguments.sentencepiece_model).encode(texts)
        ids = tokenizer(texts, verbose=False).input_ids
        differing = sum(ours != theirs for ours, theirs in zip(ids, expected, strict=True))
        print(f"{differing} of {len(texts)} lines differ")
    tokenizer.save_pretrained(arguments.output_dir)
    print(f"{arguments.output_dir}: {type(tokenizer).__name__}, vocabulary of {len(tokenizer)}")


if __name__ == "__main__":
    main()
