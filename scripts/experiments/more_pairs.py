# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Put the pairs of Multi30k, some times over, and captions with their translations by a model into one folder.

    python scripts/experiments/more_pairs.py --multi30k multi30k --source_column en --target_column de \\
        --files runs/captions.en runs/captions.de --output_dir runs/text

Left out are pairs that came before, empty ones, and those in which a piece of a word comes three times in a row, as
models write words that they do not know.
"""

import gzip
import re
from dataclasses import dataclass
from pathlib import Path

from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.lines import read_lines


STAMMER = re.compile(r"(.{2,8})\1{2,}")


@dataclass
class MorePairsArguments:
    multi30k: str = HfArg(help="The folder with the pairs.")
    source_column: str = HfArg(help="The language that is read.")
    target_column: str = HfArg(help="The language that is written.")
    output_dir: str = HfArg(help="The folder for train.source and train.target.")
    files: list[str] = HfArg(default_factory=list, help="Files whose lines are pairs: source, target, source, target.")
    times: int = HfArg(default=3, help="How often the pairs of Multi30k are there.")
    kept: list[str] = HfArg(default_factory=list, help="Captions; pairs of files with none of them are left out.")


ARGUMENTS = [MorePairsArguments]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments(ARGUMENTS, __doc__, argv)
    languages = (arguments.source_column, arguments.target_column)
    sides = [
        gzip.decompress(Path(arguments.multi30k, f"train.{language}.gz").read_bytes()).decode().splitlines()
        for language in languages
    ]
    kept = {line for file in arguments.kept for line in read_lines(file)}
    found: dict[tuple[str, str], None] = {}
    for source, target in zip(arguments.files[::2], arguments.files[1::2], strict=True):
        for pair in zip(read_lines(source), read_lines(target), strict=True):
            one, other = map(str.strip, pair)
            is_kept = not kept or one in kept or other in kept
            if one and other and is_kept and not STAMMER.search(one) and not STAMMER.search(other):
                found[one, other] = None
    folder = Path(arguments.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    for place, name in enumerate(("source", "target")):
        lines = sides[place] * arguments.times + [pair[place] for pair in found]
        (folder / f"train.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{folder}: {arguments.times} times {len(sides[0]):,} pairs, and {len(found):,} with captions")


if __name__ == "__main__":
    main()
