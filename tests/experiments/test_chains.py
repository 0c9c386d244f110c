"""Each chain's commands are understood; the last ones have the settings of the published records."""

import gzip
import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from shared import ROOT

from hf_vanilla_transformer.commands.arguments import parse_arguments
from hf_vanilla_transformer.commands.translate import TranslateArguments
from hf_vanilla_transformer.settings.groups import ExportArguments


ROOM = ROOT / "scripts" / "experiments"
# The published models of each shell file.
CHAINS = {"nsmc_small.sh": ["nsmc-small"], "multi30k_more_text.sh": ["multi30k-de-en", "multi30k-en-de"]}
# Settings that name files and folders: a record has those of its authors.
PATHS = {"data", "model", "soft_labels", "candidates", "texts", "output_dir"}
OTHER_ARGUMENTS = {"export": [ExportArguments], "translate": [TranslateArguments]}
# In place of the programs: write down each call, and make an empty corpus.
PROGRAMS = """
note() {
    printf "%q " "$@" >> "$LOG"
    echo >> "$LOG"
    [[ $1 == vanilla-transformer || $* != *" --file "* ]] || gzip < /dev/null > "${@: -1}"
}
vanilla-transformer() { note vanilla-transformer "$@"; }
torchrun() { note torchrun "$@"; }
python() { note python "$@"; }
"""


def read_settings(words: list[str], monkeypatch) -> dict[str, Any]:
    """Read a command's settings as the command itself does, but for paths."""
    if words[0] == "torchrun":
        words = ["vanilla-transformer", *words[5:]] if words[3] == "-m" else ["python", *words[3:]]
    program, command, *flags = words
    if program == "python":
        assert (ROOT / command).is_file() and (ROOT / command).parent == ROOM
        module = importlib.import_module(Path(command).stem)
    else:
        module = importlib.import_module(f"hf_vanilla_transformer.commands.{command.replace('-', '_')}")
    groups = getattr(module, "GROUPS", None) or getattr(module, "ARGUMENTS", None) or OTHER_ARGUMENTS[command]
    monkeypatch.setattr(sys, "argv", [command])
    parsed, settings = parse_arguments(groups, "", flags)
    if Path(command).name == "one_core.py":  # its record has all settings
        settings = {name: value for name, value in vars(parsed[0]).items() if value is not None}
    return {name: value for name, value in settings.items() if name not in PATHS}


@pytest.mark.skipif(os.name == "nt", reason="the chains are shell files for Unix")
@pytest.mark.parametrize("chain", CHAINS)
def test_the_last_stages_have_the_settings_of_the_published_records(chain, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    for name in (f"{name}.{language}" for name in ("train", "val", "captions") for language in ("en", "de")):
        (tmp_path / "data" / f"{name}.gz").write_bytes(gzip.compress(f"{name}\n".encode()))  # a shell file reads these
    (tmp_path / "programs").write_text(PROGRAMS)
    environment = {**os.environ, "BASH_ENV": str(tmp_path / "programs"), "LOG": str(tmp_path / "log")}
    command = ["bash", ROOM / chain, tmp_path / "data", tmp_path / "runs"]
    subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL)
    made = {}
    for words in map(shlex.split, (tmp_path / "log").read_text().splitlines()):
        if Path(words[1]).name != "prepare_reviews.py":
            folder = words[words.index("--output_dir") + 1] if "--output_dir" in words else ""  # or a file
            made[Path(folder).name] = read_settings(words, monkeypatch)
    for model in CHAINS[chain]:
        recipe = yaml.safe_load((ROOT / "model_cards" / model / "recipe.yaml").read_text())
        assert made[model] == {name: value for name, value in recipe.items() if name not in PATHS}
