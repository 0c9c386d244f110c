# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Upload the folder of a run or an export to the Hugging Face Hub: model, code, tokenizer, record, figures and card.

    vanilla-transformer push-to-hub runs/nsmc --repo_id USER/NAME --dry_run
    vanilla-transformer push-to-hub runs/nsmc --repo_id USER/NAME

Log in first with `hf auth login`, or set HF_TOKEN. The command sends the files that a run or an export writes, and no
others. --dry_run sends nothing: it checks the folder and lists what would be sent, and the texts of your data that the
card shows. The same command completes an interrupted upload.
"""

import argparse
from pathlib import Path

from ..hub.record import example_texts
from ..hub.upload import repository_files, upload
from .arguments import CommandLine


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine([], __doc__)
    parser.usage = None  # argparse's own
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="The folder of a run or an export.")
    parser.add_argument("--repo_id", metavar="USER/NAME", required=True, help="The repository; created if missing.")
    parser.add_argument("--private", action="store_true", help="Make a private repository.")
    parser.add_argument("--revision", help="A branch to upload to, created if it does not exist; by default main.")
    parser.add_argument("--dry_run", action="store_true", help="Check the folder, list what is sent, send nothing.")
    return parser.parse_args(argv)


def print_files(folder: Path, repo_id: str) -> None:
    """Print what would be uploaded, and the texts of the data among it."""
    files = repository_files(folder)
    sizes = {file: (folder / file).stat().st_size for file in files if (folder / file).is_file()}
    for file in files:
        print(f"{sizes.get(file, 0):>13,}  {file.as_posix()}{'' if file in sizes else ' (made from the record)'}")
    for text in example_texts(str(folder)):
        print(f"README.md, run.json: a text of the data, {text!r}; to keep it private, write another in both")
    total = sum(sizes.values())
    print(f"{total:>13,}  bytes in {len(files)} files for {repo_id}; README.md is valid; nothing was sent")


def main(argv: list[str] | None = None) -> None:
    arguments = parse_arguments(argv)
    if arguments.dry_run:
        print_files(arguments.folder, arguments.repo_id)
    else:
        address = upload(arguments.folder, arguments.repo_id, private=arguments.private, revision=arguments.revision)
        print(f"{arguments.repo_id}: {address}")
