"""Each chain has the settings of the published records, and its stages hand on what they make."""

import gzip
import importlib
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from shared import ROOT, read_json

from hf_vanilla_transformer.commands.arguments import parse_arguments
from hf_vanilla_transformer.commands.translate import TranslateArguments
from hf_vanilla_transformer.settings import ExportArguments


ROOM = ROOT / "scripts" / "experiments"
# The published records of each shell file.
CHAINS = {
    "nsmc_small.sh": ["model_cards/nsmc-small"],
    "nsmc_labels_alone.sh": ["docs/records/nsmc-labels-alone"],
    "multi30k_bidirectional.sh": ["docs/records/multi30k-en-de-bidirectional"],
    "multi30k_more_text.sh": ["model_cards/multi30k-de-en", "model_cards/multi30k-en-de"],
}
# Settings that name files and folders: a record has those of its authors.
PATHS = {"data", "model", "models", "soft_labels", "candidates", "texts", "multi30k", "pairs", "file", "files", "kept"}
OTHER_ARGUMENTS = {"export": [ExportArguments], "translate": [TranslateArguments]}
# In place of the programs: notes how they are called, and makes a corpus, which is empty.
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
    """The settings, but for names of files and the `target` of older records, which is always the text now.

    Records older than `precision: auto` say what it was on their machine.
    """
    settings = {name: None if name in PATHS else value for name, value in settings.items() if name != "target"}
    return settings | {"bf16": True} if settings.pop("precision", None) == "auto" else settings


def read_stage(words: list[str]) -> Stage:
    """Read a command as the command itself does."""
    processes = 1
    if words[0] == "torchrun":
        assert words[1] == "--nproc_per_node" and ("--use_cpu" in words or "one_core.py" in words[3])
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
    without = [*flags[:made], *flags[made + 2 :]] if command == "translate" else flags  # the file is there already
    parsed, settings = parse_arguments(groups, "", without)
    if Path(command).name == "one_core.py":  # its record has all settings
        settings = {name: value for name, value in vars(parsed[0]).items() if value is not None}
    for name in ("output_dir", "output"):
        settings.pop(name, None)
    return Stage(Path(command).name, flags[made + 1], processes, settings)


def run_chain(name: str, folder: Path) -> list[Stage]:
    """Run a shell file without its programs; returns its stages."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    environment = {**os.environ, "BASH_ENV": str(folder / "programs"), "LOG": str(log)}
    command = ["bash", ROOM / name, folder / "data", folder / "runs"]
    subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL)
    return [read_stage(shlex.split(line)) for line in log.read_text().splitlines()]


@pytest.fixture(scope="module", params=CHAINS)
def chain(request, tmp_path_factory) -> tuple[str, Path, list[Stage]]:
    """The name of a shell file, where it has run, and its stages."""
    if os.name == "nt":
        pytest.skip("the chains are shell files for Unix")
    folder = tmp_path_factory.mktemp("chain")
    (folder / "data").mkdir()
    texts = [f"{name}.{language}" for name in ("train", "val", "captions") for language in ("en", "de")]
    for name in texts:  # a shell file reads these itself
        (folder / "data" / f"{name}.gz").write_bytes(gzip.compress(f"{name}\n".encode()))
    (folder / "programs").write_text(PROGRAMS)
    return request.param, folder, run_chain(request.param, folder)


def test_a_chain_has_the_settings_of_the_published_record(chain):
    """Of its last stage, but for where things are."""
    name, _, stages = chain
    stages = {stage.makes: stage for stage in stages}
    for record in CHAINS[name]:
        (stage,) = (stage for stage in stages.values() if Path(stage.makes).name == Path(record).name)
        check_lineage(stages, stage, ROOT / record)


def check_lineage(stages: dict[str, Stage], stage: Stage, folder: Path) -> None:
    """Compare a stage, and the number of those before it, with what a record says of them."""
    recipe, run = yaml.safe_load((folder / "recipe.yaml").read_text()), read_json(folder / "run.json")
    assert without_paths(stage.settings) == without_paths(recipe), stage.makes
    assert stage.processes == run["processes"], stage.makes
    runs = 0
    while "model" in stage.settings:
        stage = stages[stage.settings["model"]]
        runs += stage.program != "widen.py"  # which hands on the record of what it changes
    assert run.get("parent_model", {}).get("runs", 0) == runs


def test_a_stage_takes_what_earlier_ones_made(chain):
    _, folder, stages = chain
    made = set()
    for stage in stages:
        for value in (stage.settings.get(name, []) for name in PATHS - {"data", "multi30k"}):
            for path in [value] if isinstance(value, str) else value:
                assert path in made or Path(path).is_file(), stage.makes  # what a shell file makes itself is there
        data = Path(stage.settings.get("data", folder / "data"))
        assert data in (folder / "data", folder / "runs/both-directions") or str(data) in made
        assert stage.makes not in made
        made.add(stage.makes)


@pytest.mark.parametrize("name", CHAINS)
def test_a_shell_file_promises_the_published_figures(name):
    for record, promised in zip(CHAINS[name], (ROOM / name).read_text().splitlines()[1:], strict=False):
        metrics = read_json(ROOT / record / "metrics.json")
        for split in ("test", "validation"):
            measured = metrics[split]
            beams = measured.get("beams_5", {})
            figure = f"{measured['accuracy']:.4f}" if "accuracy" in measured else f"{beams['bleu_lowercased']:.2f}"
            assert f" {figure}" in promised


def test_every_shell_file_is_a_chain_and_every_recipe_has_one():
    assert {file.name for file in ROOM.glob("*.sh")} == CHAINS.keys()
    named = {recipe for name in CHAINS for recipe in re.findall(r"recipes/([\w-]+\.yaml)", (ROOM / name).read_text())}
    assert {file.name for file in (ROOM / "recipes").iterdir()} == named
