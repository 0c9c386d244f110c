# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Put the owner's name on GitHub and the Hub in place of OWNER, in every file that git has.

    python scripts/maintainer/set_owner.py NAME

A file that speaks of the placeholder itself has the mark `owner-placeholder` in it and is left alone.
"""

import re
import subprocess
import sys
from pathlib import Path


MARK = "owner-placeholder"


def files_with_placeholder(root: Path) -> list[str]:
    """The files of a checkout that name OWNER, but those that have the mark."""

    def grep(*words: str) -> set[str]:
        found = subprocess.run(
            ["git", "grep", "-I", "-l", *words], cwd=root, capture_output=True, text=True, check=False
        )
        return set(found.stdout.splitlines())

    return sorted(grep("-w", "OWNER") - grep(MARK))


def set_owner(root: Path, name: str) -> list[str]:
    """Replace the word OWNER; returns the changed files.

    Raises:
        ValueError: the name is none that GitHub takes.
    """
    if not re.fullmatch(r"(?!.*--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?", name) or name == "OWNER":
        raise ValueError(f"{name!r} is no name of an owner: letters, digits and single hyphens, at most 39")
    files = files_with_placeholder(root)
    for file in files:
        path = root / file
        path.write_bytes(re.sub(rb"\bOWNER\b", name.encode(), path.read_bytes()))
    return files


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        files = set_owner(Path(__file__).parents[2], sys.argv[1])
    except ValueError as error:
        sys.exit(f"set_owner.py: error: {error}")
    print("\n".join(files) or "no file names OWNER")
