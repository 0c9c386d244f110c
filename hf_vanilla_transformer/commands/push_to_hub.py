# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Upload a run's folder to the Hugging Face Hub: model, code, tokenizer, record, figures and card.

    vanilla-transformer push-to-hub runs/nsmc --repo_id USER/NAME --dry_run
    vanilla-transformer push-to-hub runs/nsmc --repo_id USER/NAME
    vanilla-transformer push-to-hub page --space USER/NAME

Log in first with `hf auth login`, or set HF_TOKEN. --dry_run sends nothing: it lists the files and their sizes, and
checks the card. Checkpoints and the optimizer's state are not uploaded. The same command completes an interrupted
upload. --space uploads a folder of `vanilla-transformer page` as a static Space.
"""

import argparse
from pathlib import Path

from ..hub.upload import check_repo_id, repository_files, space_files, upload, upload_space
from .arguments import OneLineParser, exit_with_one_line


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    # Other commands begin with a recipe; this one begins with a folder.
    parser = OneLineParser(description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="A run's folder, or a page's.")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--repo_id", metavar="USER/NAME", help="The run's repository; created if missing.")
    target.add_argument("--space", metavar="USER/NAME", help="The page's Space; created if missing.")
    parser.add_argument("--private", action="store_true", help="Make a private repository or Space.")
    parser.add_argument("--revision", help="A branch to upload to, created if it does not exist; by default main.")
    parser.add_argument("--dry_run", action="store_true", help="List files and sizes, check the card, send nothing.")
    return parser.parse_args(argv)


def list_files(folder: Path, files: list[Path], repo_id: str) -> None:
    """Print what would be uploaded."""
    sizes = [(folder / file).stat().st_size if (folder / file).is_file() else 0 for file in files]
    for file, size in zip(files, sizes, strict=True):
        print(f"{size:>13,}  {file.as_posix()}{'' if size else ' (made from the record)'}")
    print(f"{sum(sizes):>13,}  bytes in {len(files)} files for {repo_id}; README.md is valid; nothing was sent")


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    arguments = parse_arguments(argv)
    is_space = arguments.space is not None
    folder, repo_id = Path(arguments.folder), arguments.space if is_space else arguments.repo_id
    if arguments.dry_run:
        check_repo_id(repo_id)
        list_files(folder, space_files(folder) if is_space else repository_files(folder), repo_id)
        return
    send = upload_space if is_space else upload
    address = send(folder, repo_id, private=arguments.private, revision=arguments.revision)
    print(f"{repo_id}: {address}")
