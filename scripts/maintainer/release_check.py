# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Say whether this commit can be released: RELEASING.md has the steps around it.

    python scripts/maintainer/release_check.py
    python scripts/maintainer/release_check.py --pythons python3.11 python3.13 --constraints constraints.txt

Looks at the version, the changelog, the tag and the owner's name; builds the source distribution, and from it the
wheel; compares the files in both with what should be there; and installs each, with what it needs, in a clean
environment of each Python, outside the clone: there it trains on the sample, answers, exports and makes a page. Prints
what is wrong, all of it, and ends with status 1 if there is anything.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

from transformers.hf_argparser import HfArg

import hf_vanilla_transformer
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments


ROOT = Path(__file__).parents[2]
PACKAGE = "hf_vanilla_transformer"
# What the source distribution has beside the package and what setuptools writes.
IN_SOURCES = {"LICENSE", "README.md", "pyproject.toml", "setup.py", "setup.cfg", "PKG-INFO", "MANIFEST.in"}
TINY = '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}'
# The commands that a new user tries, in an empty folder.
TRIED = [
    ["--version"],
    ["train-classifier", "sample", "--config", TINY, "--max_steps", "2", "--eval_strategy", "no"],
    ["predict", "--model", "runs/sample", "--file", "texts.txt"],
    ["export", "--model", "runs/sample", "--format", "onnx", "--output_dir", "onnx"],
    ["predict", "--model", "onnx", "--file", "texts.txt"],
    ["page", "--model", "runs/sample", "--output_dir", "page"],
]
TRIED[1] += ["--save_strategy", "no", "--load_best_model_at_end", "false", "--disable_tqdm", "true"]


@dataclass
class ReleaseArguments:
    pythons: list[str] = HfArg(
        default_factory=lambda: ["python3.11", "python3.13"], help="The Pythons in which it is installed."
    )
    constraints: str | None = HfArg(default=None, help="A file of versions for pip; by default the newest allowed.")
    extras: str = HfArg(default="train,onnx", help="The extras that are installed.")


def run(*words, cwd: Path = ROOT, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        list(map(str, words)), cwd=cwd, capture_output=True, encoding="utf-8", check=False, **options
    )


def check_names() -> list[str]:
    """What is wrong with version, changelog, tag and owner."""
    version, wrong = hf_vanilla_transformer.__version__, []
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^## \[(.*?)\](?: - (.*))?$", changelog, re.MULTILINE)
    if not found or found[1] != version or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", found[2] or ""):
        wrong.append(f"CHANGELOG.md: the first section is not `## [{version}] - YYYY-MM-DD`")
    if f"\nversion: {version}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        wrong.append(f"CITATION.cff: version is not {version}")
    if run("git", "describe", "--tags", "--exact-match").stdout.strip() != f"v{version}":
        wrong.append(f"git: this commit has no tag v{version}")
    if run("git", "status", "--porcelain").stdout:
        wrong.append("git: there are changes that are not committed")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"].removeprefix("https://github.com/")
    if repository not in run("git", "remote", "get-url", "origin").stdout:
        wrong.append(f"pyproject.toml: {repository} is not the repository that git pushes to")
    return wrong


def expected_files() -> set[str]:
    """The package's files that git has."""
    return set(run("git", "ls-files", PACKAGE).stdout.split())


def check_files(sources: Path, wheel: Path) -> list[str]:
    """What a distribution lacks, and what it should not have: tests, weights, anything else."""
    with tarfile.open(sources) as archive:
        inside = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    inside = {name for name in inside if ".egg-info/" not in name}
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if ".dist-info/" not in name}
    wrong = []
    for file, found, should in (
        (sources, inside, expected_files() | IN_SOURCES),
        (wheel, installed, expected_files()),
    ):
        wrong += [f"{file.name} lacks {name}" for name in sorted(should - found - {"setup.cfg", "MANIFEST.in"})]
        wrong += [f"{file.name} should not have {name}" for name in sorted(found - should)]
    return wrong


def build(folder: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it, not from the clone."""
    built = run(sys.executable, "-m", "build", "--outdir", folder)
    if built.returncode:
        sys.exit(f"{built.stdout[-2000:]}{built.stderr[-2000:]}")
    (sources,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sources, wheel


def starts(python: str) -> bool:
    """Whether there is this Python; pyenv has programs of the name that start none."""
    return shutil.which(python) is not None and run(python, "--version").returncode == 0


def try_installed(python: str, distribution: Path, arguments: ReleaseArguments) -> list[str]:
    """What fails where the distribution is installed with what it needs, in an environment and folder of its own."""
    name = f"{distribution.name}, {python}"
    if not starts(python):
        return [f"{name}: not tried, there is no {python} that starts"]
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HF_"))}
        environment |= {"HF_HOME": str(home / "hf"), "HF_HUB_OFFLINE": "1"}
        programs = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
        constraints = ["-c", (ROOT / arguments.constraints).resolve()] if arguments.constraints else []
        steps = [
            [python, "-m", "venv", home / "venv"],
            [programs / "python", "-m", "pip", "install", "-q", *constraints, f"{distribution}[{arguments.extras}]"],
            *([programs / "vanilla-transformer", *words] for words in TRIED),
        ]
        (home / "texts.txt").write_text("정말 재미있다\n지루하다\n", encoding="utf-8")
        for words in steps:
            done = run(*words, cwd=home, env=environment)
            if done.returncode:
                command = " ".join(map(str, words[1:4]))
                return [f"{name}: {command}: status {done.returncode}: {done.stderr.strip()[-800:]}"]
    return []


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([ReleaseArguments], __doc__, argv)
    wrong = check_names()
    with tempfile.TemporaryDirectory() as folder:
        sources, wheel = build(Path(folder))
        wrong += check_files(sources, wheel)
        twine = run(sys.executable, "-m", "twine", "check", "--strict", sources, wheel)
        wrong += [f"twine: {twine.stdout.strip()[-800:]}"] if twine.returncode else []
        for python in arguments.pythons:
            for distribution in (sources, wheel):
                found = try_installed(python, distribution, arguments)
                said = "ok" if not found else "wrong" if starts(python) else "not there"
                print(f"{distribution.name}, {python}: {said}", flush=True)
                wrong += found
    for one in wrong:
        print(f"- {one}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"{hf_vanilla_transformer.__version__} can be released")


if __name__ == "__main__":
    main()
