# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Keep the captions that are written as the pairs are: whole sentences with the pairs' capitals.

    python scripts/experiments/clean_captions.py --pairs multi30k/train.de.gz --file multi30k/captions.de.gz \\
        --output runs/captions.de

People wrote the further captions of Multi30k without a style guide: a fifth has no full stop, and many German nouns
are in lower case. The pairs, on which a translator is measured, have both. Keep a caption, once, if it begins with a
capital, ends in a full stop, and writes no word in lower case that the pairs write with a capital nine times in ten.
"""

import gzip
import re
from collections import Counter
from dataclasses import dataclass

from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments


WORD = re.compile(r"\w+")


@dataclass
class CleanArguments:
    pairs: str = HfArg(help="The pairs' texts in the captions' language, gzip.")
    file: str = HfArg(help="The captions, gzip.")
    output: str = HfArg(help="The file for the captions that stay.")


ARGUMENTS = [CleanArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments(ARGUMENTS, __doc__, argv)
    with gzip.open(arguments.pairs, "rt", encoding="utf-8") as file:
        # Every first word of a sentence has a capital.
        counts = Counter(word for line in file for word in WORD.findall(line)[1:])
    capital = {word.lower() for word, n in counts.items() if word.istitle() and n > 9 * counts[word.lower()]}
    clean = {}
    with gzip.open(arguments.file, "rt", encoding="utf-8") as file:
        for line in map(str.strip, file):
            if line[:1].isupper() and line.endswith(".") and not capital & set(WORD.findall(line)):
                clean[line] = None
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in clean)
    print(f"{arguments.output}: {len(clean):,} captions")


if __name__ == "__main__":
    main()
