"""Each chain has the settings of the published records."""

import gzip
import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
import yaml
from shared import ROOT, read_json

from hf_vanilla_transformer.commands.arguments import parse_arguments
from hf_vanilla_transformer.commands.translate import TranslateArguments
from hf_vanilla_transformer.settings.groups import ExportArguments


ROOM = ROOT / "scripts" / "experiments"
# The published records of each shell file.
CHAINS = {
    "nsmc_small.sh": ["model_cards/nsmc-small"],
    "multi30k_more_text.sh": ["model_cards/multi30k-de-en", "model_cards/multi30k-en-de"],
}
# Settings that name files and folders: a record has those of its authors.
PATHS = {"data", "model", "soft_labels", "candidates", "texts"}
OTHER_ARGUMENTS = {"export": [ExportArguments], "translate": [TranslateArguments]}
# In place of the programs: write down each call, and make an empty corpus.
PROGRAMS = """
note() {
    printf "%q " "$@" >> "$LOG"
    echo >> "$LOG"
    [[ $* != *" --file "* ]] || gzip < /dev/null > "${@: -1}"
}
vanilla-transformer() { note vanilla-transformer "$@"; }
torchrun() { note torchrun "$@"; }
python() { note python "$@"; }
"""


class Stage(NamedTuple):
    """A command of a shell file."""

    program: str
    makes: str  # the folder or file
    processes: int
    settings: dict[str, Any]  # of recipe and flags; of `prepare_reviews.py`, none


def without_paths(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in PATHS}


def read_stage(words: list[str]) -> Stage:
    """Read a command as the command itself does."""
    processes = 1
    if words[0] == "torchrun":
        on_cpu = "--use_cpu" in words or Path(words[3]).name in ("one_core.py", "distil.py")
        assert words[1] == "--nproc_per_node" and on_cpu
        processes = int(words[2])
        words = ["vanilla-transformer", *words[5:]] if words[3] == "-m" else ["python", *words[3:]]
    program, command, *flags = words
    if Path(command).name == "prepare_reviews.py":
        return Stage(command, flags[flags.index("--file") + 1], processes, {})
    if program == "python":
        assert (ROOT / command).is_file() and (ROOT / command).parent == ROOM
        module = importlib.import_module(Path(command).stem)
    else:
        module = importlib.import_module(f"hf_vanilla_transformer.commands.{command.replace('-', '_')}")
    groups = getattr(module, "GROUPS", None) or getattr(module, "ARGUMENTS", None) or OTHER_ARGUMENTS[command]
    made = flags.index("--output_dir" if "--output_dir" in flags else "--output")
    without = [*flags[:made], *flags[made + 2 :]] if command == "translate" else flags  # the file exists already
    with mock.patch.object(sys, "argv", [command]):
        parsed, settings = parse_arguments(groups, "", without)
    if Path(command).name == "one_core.py":  # its record has all settings
        settings = {name: value for name, value in vars(parsed[0]).items() if value is not None}
    for name in ("output_dir", "output"):
        settings.pop(name, None)
    return Stage(Path(command).name, flags[made + 1], processes, settings)


@pytest.fixture(scope="module", params=CHAINS)
def chain(request, tmp_path_factory) -> tuple[str, list[Stage]]:
    """Run a shell file without its programs; return its name and its stages."""
    if os.name == "nt":
        pytest.skip("the chains are shell files for Unix")
    folder = tmp_path_factory.mktemp("chain")
    (folder / "data").mkdir()
    texts = [f"{name}.{language}" for name in ("train", "val", "captions") for language in ("en", "de")]
    for name in texts:  # a shell file reads these itself
        (folder / "data" / f"{name}.gz").write_bytes(gzip.compress(f"{name}\n".encode()))
    (folder / "programs").write_text(PROGRAMS)
    environment = {**os.environ, "BASH_ENV": str(folder / "programs"), "LOG": str(folder / "log")}
    command = ["bash", ROOM / request.param, folder / "data", folder / "runs"]
    subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL)
    stages = [read_stage(shlex.split(line)) for line in (folder / "log").read_text().splitlines()]
    return request.param, stages


def test_the_last_stages_have_the_settings_of_the_published_records(chain):
    name, stages = chain
    made_by = {stage.makes: stage for stage in stages}
    for record in CHAINS[name]:
        (stage,) = (stage for stage in stages if Path(stage.makes).name == Path(record).name)
        recipe = yaml.safe_load((ROOT / record / "recipe.yaml").read_text())
        run = read_json(ROOT / record / "run.json")
        assert without_paths(stage.settings) == without_paths(recipe), stage.makes
        assert stage.processes == run["processes"], stage.makes
        runs = 0
        while stage.settings.keys() & {"model", "models"}:
            stage = made_by[stage.settings.get("model") or stage.settings["models"][-1]]
            runs += stage.program not in ("widen.py", "mean.py")  # which copy the record of their model
        assert run["parent_model"]["runs"] == runs
