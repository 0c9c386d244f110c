# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Make a corpus for pretraining from a checkout of https://github.com/e9t/nsmc, without the reviews of its test split.

    python scripts/prepare_reviews.py --nsmc nsmc --file reviews.txt.gz
    python scripts/prepare_reviews.py --nsmc nsmc --labelled true --validation_fraction 0.05 --file labelled.txt.gz

NSMC's 200,000 reviews were drawn from the checkout's folder `raw`. The first command writes these raw reviews, one per
line, each id once; the second writes the labelled reviews of the train split. Both leave out the reviews of the test
split, by id or text. --validation_fraction also leaves out the texts of the validation split that train-classifier
makes with this fraction.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import DataError
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.lines import iterate_lines


@dataclass
class ReviewArguments:
    nsmc: str = HfArg(help="The checkout, with ratings_train.txt and ratings_test.txt.")
    file: str = HfArg(help="The file to write; gzip if its name ends in .gz.")
    raw: str | None = HfArg(
        default=None, help="Folder with one JSON file per movie, by default the checkout's raw/; or a file of lines."
    )
    labelled: bool = HfArg(default=False, help="Take the labelled reviews of the train split, and no others.")
    validation_fraction: float = HfArg(
        default=0.0,
        help="Also leave out the texts of the validation split that train-classifier makes with this fraction.",
    )
    split_seed: int = HfArg(default=42, help="Seed of this cut.")

    def __post_init__(self):
        if self.labelled and self.raw:
            raise DataError("--labelled: the labelled reviews are not in --raw")
        if not 0 <= self.validation_fraction < 1:
            raise DataError(f"--validation_fraction: at least 0 and below 1, not {self.validation_fraction}")


def read_reviews(raw: Path) -> Iterator[tuple[str | None, str]]:
    """Yield each review's id and text, movie by movie; a file of lines has no ids.

    Raises:
        OSError: a file cannot be read.
        DataError: there is no file, or a file is not a list of reviews.
    """
    if raw.is_file():
        yield from ((None, text) for text in iterate_lines(raw))
        return
    # In the order of the movies' numbers.
    files = sorted(raw.glob("*.json"), key=lambda file: (len(file.name), file.name))
    if not files:
        raise DataError(f"{raw}: no .json file")
    for file in files:
        try:
            reviews = json.loads(file.read_bytes())
            yield from [(str(review["review_id"]), review["review"] + "") for review in reviews]
        except (ValueError, LookupError, TypeError) as error:
            raise DataError(f"{file}: not a list of reviews ({type(error).__name__}: {error})") from error


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([ReviewArguments], __doc__, argv)
    file = Path(arguments.file)
    if file.exists():
        raise DataError(f"{file} is there, and nothing is overwritten")
    if not file.parent.is_dir():
        raise DataError(f"{file.parent}: no such folder")
    checkout = str(Path(arguments.nsmc).absolute())  # the bare name `nsmc` is the data set that is downloaded
    test_ids, test_texts = (
        {" ".join(value.split()) for value in load_labelled_text(checkout, text_column=column)["test"]["text"]}
        for column in ("id", "document")
    )
    validation_texts = set()
    if arguments.validation_fraction:
        cut = load_labelled_text(
            checkout, validation_fraction=arguments.validation_fraction, seed=arguments.split_seed
        )
        validation_texts = {" ".join(text.split()) for text in cut["validation"]["text"]}
    if arguments.labelled:
        labelled = load_labelled_text(checkout)
        reviews = ((None, text) for split in ("train", "validation") for text in labelled[split]["text"])
    else:
        reviews = read_reviews(Path(arguments.raw or Path(arguments.nsmc, "raw")))

    counts: Counter[str] = Counter()
    known_ids, lines = set(), []
    for review_id, text in reviews:
        text = " ".join(text.split())
        if review_id is not None and review_id in known_ids:
            fate = "dropped, repeated id"
        elif review_id in test_ids:
            fate = "dropped, in the test split by id"
        elif text in test_texts:
            fate = "dropped, in the test split by text"
        elif text in validation_texts:
            fate = "dropped, in validation by text"
        elif not text:
            fate = "dropped, no text"
        else:
            fate = "written"
            lines.append(f"{text}\n")
        known_ids.add(review_id)
        counts[fate] += 1
    content = "".join(lines).encode()
    # Without a time, so that the same reviews give the same bytes.
    file.write_bytes(gzip.compress(content, mtime=0) if file.suffix == ".gz" else content)
    for fate, count in sorted(counts.items()):
        print(f"{count:9,} {fate}")


if __name__ == "__main__":
    main()
