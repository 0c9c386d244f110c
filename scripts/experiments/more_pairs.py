# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Join the pairs of Multi30k, several times, and captions with a model's translations in one folder.

    python scripts/experiments/more_pairs.py --multi30k multi30k --source_column en --target_column de \\
        --files runs/captions.en runs/captions.de --output_dir runs/text

Leave out repeated and empty pairs, and pairs in which a piece of a word comes three times in a row: so models write
words that they do not know.
"""

import gzip
import re
from dataclasses import dataclass
from pathlib import Path

from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.lines import iterate_lines


REPETITION = re.compile(r"(.{2,8})\1{2,}")


@dataclass
class MorePairsArguments:
    multi30k: str = HfArg(help="The folder with the pairs.")
    source_column: str = HfArg(help="The language that is read.")
    target_column: str = HfArg(help="The language that is written.")
    output_dir: str = HfArg(help="The folder for train.source and train.target.")
    files: list[str] = HfArg(default_factory=list, help="Files whose lines are pairs: source, target, source, target.")
    times: int = HfArg(default=3, help="How often to repeat the pairs of Multi30k.")
    captions: list[str] = HfArg(default_factory=list, help="Captions; a pair of --files needs one of them, if given.")


ARGUMENTS = [MorePairsArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments(ARGUMENTS, __doc__, argv)
    languages = (arguments.source_column, arguments.target_column)
    sides = [
        gzip.decompress(Path(arguments.multi30k, f"train.{language}.gz").read_bytes()).decode().splitlines()
        for language in languages
    ]
    captions = {line for file in arguments.captions for line in iterate_lines(file)}
    pairs: dict[tuple[str, str], None] = {}
    for source, target in zip(arguments.files[::2], arguments.files[1::2], strict=True):
        for pair in zip(iterate_lines(source), iterate_lines(target), strict=True):
            one, other = map(str.strip, pair)
            is_caption = not captions or one in captions or other in captions
            if one and other and is_caption and not REPETITION.search(one) and not REPETITION.search(other):
                pairs[one, other] = None
    folder = Path(arguments.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    for place, name in enumerate(("source", "target")):
        lines = sides[place] * arguments.times + [pair[place] for pair in pairs]
        (folder / f"train.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{folder}: {arguments.times} times {len(sides[0]):,} pairs, and {len(pairs):,} with captions")


if __name__ == "__main__":
    main()
