"""Train a SentencePiece-style tokenizer, and leave a folder that AutoTokenizer loads.

    python scripts/train_tokenizer.py --data nsmc --output_dir runs/tokenizer
    python scripts/train_tokenizer.py --texts corpus.txt more.txt.gz --model unigram --output_dir runs/tokenizer

Of labelled data only the train split is read.
"""

import gzip
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hf_vanilla_transformer.data import load_labelled_text
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training import exit_with_one_line, parse_arguments


@dataclass
class TokenizerArguments:
    output_dir: str = field(metadata={"help": "The folder for the tokenizer."})
    texts: list[str] = field(
        default_factory=list, metadata={"help": "Files with one text a line, UTF-8, plain or .gz; instead of --data."}
    )
    data: str | None = field(
        default=None,
        metadata={"help": "`sample`, `nsmc`, a folder with NSMC's two files, a TSV/CSV/JSON file, a Hub data set."},
    )
    text_column: str = field(default="document", metadata={"help": "The column with the texts."})
    label_column: str = field(default="label", metadata={"help": "The column with the labels."})
    vocab_size: int = field(default=8007, metadata={"help": "Pieces and the seven special tokens together."})
    model: str = field(default="bpe", metadata={"help": "`bpe` or `unigram`."})
    lowercase: bool = field(default=False, metadata={"help": "Make upper and lower case one."})
    max_length: int = field(default=256, metadata={"help": "Tokens that truncation keeps."})

    def __post_init__(self):
        if bool(self.texts) == bool(self.data):
            raise ValueError("name either --texts or --data")


def read_lines(files: list[str]) -> Iterator[str]:
    """The lines of all files, one after the other."""
    for file in files:
        with (gzip.open if file.endswith(".gz") else open)(file, "rt", encoding="utf-8", newline="\n") as lines:
            try:
                yield from lines
            except (UnicodeDecodeError, EOFError) as error:
                raise ValueError(f"{file}: cannot be read as UTF-8 text: {error}") from error


@exit_with_one_line
def main() -> None:
    (arguments,) = parse_arguments([TokenizerArguments], description=__doc__.splitlines()[0])
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    if arguments.texts:
        texts = read_lines(arguments.texts)
    else:
        data = load_labelled_text(
            arguments.data, text_column=arguments.text_column, label_column=arguments.label_column
        )
        texts = data["train"]["text"][:]
    tokenizer = train_tokenizer(
        texts,
        vocab_size=arguments.vocab_size,
        model=arguments.model,
        lowercase=arguments.lowercase,
        max_length=arguments.max_length,
    )
    Path(arguments.output_dir).mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(arguments.output_dir)
    print(f"{arguments.output_dir}: {arguments.model} vocabulary of {len(tokenizer)}")


if __name__ == "__main__":
    main()
