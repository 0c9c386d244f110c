# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Upload the folder of a run or an export to the Hugging Face Hub: model, code, tokenizer, record, figures and card.

    vanilla-transformer push-to-hub runs/nsmc --repo_id USER/NAME --dry_run
    vanilla-transformer push-to-hub runs/nsmc --repo_id USER/NAME
    vanilla-transformer push-to-hub page --space USER/NAME

Log in first with `hf auth login`, or set HF_TOKEN. --dry_run sends nothing: it checks the folder and lists what would
be sent, what would not, and what names this machine. Sent are the files that a run, an export or a page writes, and
those that --include names, where a wildcard finds neither hidden files nor keys. Not sent are checkpoints; a link out
of the folder that has the name of a run's file is an error. A record has no absolute paths. The same command completes
an interrupted upload. --space uploads a folder of `vanilla-transformer page` as a static Space.
"""

import argparse
import socket
from pathlib import Path

from ..hub.record import example_texts
from ..hub.upload import check_repo_id, files_left_out, repository_files, space_files, upload, upload_space
from .arguments import CommandLine, exit_with_one_line


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    # Other commands begin with a recipe; this one begins with a folder.
    parser = CommandLine([], __doc__, usage=None)
    parser.add_argument("folder", metavar="FOLDER", help="The folder of a run, an export or a page.")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--repo_id", metavar="USER/NAME", help="The model's repository; created if missing.")
    target.add_argument("--space", metavar="USER/NAME", help="The page's Space; created if missing.")
    parser.add_argument("--private", action="store_true", help="Make a private repository or Space.")
    parser.add_argument("--revision", help="A branch to upload to, created if it does not exist; by default main.")
    parser.add_argument(
        "--include", metavar="PATTERN", action="append", default=[], help="Send these files of the folder, too."
    )
    parser.add_argument("--dry_run", action="store_true", help="Check the folder, list what is sent, send nothing.")
    return parser.parse_args(argv)


def escape_name(name: str) -> str:
    """A file's name in one line of a list."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def list_files(folder: Path, files: list[Path]) -> int:
    """Print what would be uploaded, and what would not; returns the number of bytes."""
    total = 0
    for file in files:
        name, made = escape_name(file.as_posix()), not (folder / file).is_file()
        size = 0 if made else (folder / file).stat().st_size
        print(f"{size:>13,}  {name}{' (made from the record)' if made else ''}")
        total += size
    for name in files_left_out(folder, files):
        print(f"{'stays here':>13}  {escape_name(name)}")
    return total


def list_places(folder: Path, files: list[Path]) -> None:
    """Print what names this machine, in what would be uploaded."""
    for text in example_texts(str(folder)):
        print(f"README.md, run.json: a text of the data, {text!r}")
    names = {name for name in (str(Path.home()), socket.gethostname()) if len(name) > 3}
    for file in files:
        if file.suffix in (".md", ".json", ".yaml", ".txt") and (folder / file).is_file():
            for name in names:
                if name in (folder / file).read_text(encoding="utf-8", errors="replace"):
                    print(f"{escape_name(file.as_posix())}: names this machine, {name}")


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    arguments = parse_arguments(argv)
    is_space = arguments.space is not None
    folder, repo_id = Path(arguments.folder).expanduser(), arguments.space if is_space else arguments.repo_id
    if arguments.dry_run:
        check_repo_id(repo_id)
        files = (space_files if is_space else repository_files)(folder, arguments.include)
        total = list_files(folder, files)
        list_places(folder, files)
        print(f"{total:>13,}  bytes in {len(files)} files for {repo_id}; README.md is valid; nothing was sent")
        return
    send = upload_space if is_space else upload
    address = send(folder, repo_id, private=arguments.private, revision=arguments.revision, include=arguments.include)
    print(f"{repo_id}: {address}")
