"""The package's structure: imports point one way, flags are read in one place."""

import ast
import re
from pathlib import Path

import pytest
from shared import ROOT


PACKAGE = ROOT / "hf_vanilla_transformer"
MODULES = sorted(path.relative_to(PACKAGE) for ending in ("py", "pyi") for path in PACKAGE.rglob(f"*.{ending}"))
HUB_FILES = ["configuration_vanilla_transformer", "modeling_vanilla_transformer"]
# What a module may import of the package, by its folder, besides that folder.
ALLOWED = {
    "__init__": ["data", "inference", "evaluation", "training", "exports"],
    "__main__": ["commands", "settings"],
    "configuration_vanilla_transformer": ["modeling_vanilla_transformer"],
    "modeling_vanilla_transformer": ["configuration_vanilla_transformer"],
    "data": [],
    "settings": ["data"],
    "inference": [*HUB_FILES, "data", "settings"],
    "hub": ["data", "inference", "settings"],
    "evaluation": ["data", "hub", "inference", "settings"],
    "training": ["data", "evaluation", "hub", "inference", "settings"],
    "exports": ["modeling_vanilla_transformer", "data", "hub", "inference", "settings"],
}


def imported(module: Path) -> set[str]:
    """The modules and wings of the package that a module imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # As many names of the way here as the dots leave.
            way = ["hf_vanilla_transformer", *module.parts]
            way = [*way[: len(way) - node.level], node.module] if node.level else [node.module]
            names |= {".".join(filter(None, [*way, alias.name])) for alias in node.names}
    parts = [name.split(".") for name in names]
    return {name[1] for name in parts if name[0] == "hf_vanilla_transformer" and len(name) > 1}


def test_one_function_loads_from_folders():
    """Which runs none of their code."""
    calls = {
        (module.as_posix(), ast.unparse(node.func))
        for module in MODULES
        for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("from_pretrained", "pipeline")
    }
    assert calls == {("inference/folder.py", "loader.from_pretrained")}


@pytest.mark.parametrize("module", [m for m in MODULES if m.parts[0] != "commands"], ids=str)
def test_imports_point_one_way(module):
    """Hub files <- data <- settings <- inference <- hub <- evaluation <- training <- commands; see CONTRIBUTING.md."""
    wing = module.with_suffix("").parts[0]
    assert imported(module) <= {wing, *ALLOWED[wing]}


# `settings/reading.py` types and checks settings as transformers' own parser does.
DOOR = ("commands", "__main__.py", "settings")


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_knows_nothing_of_what_lies_outside(module):
    """Folders of this repository; and the command line, which is for the commands to read."""
    code = (PACKAGE / module).read_text(encoding="utf-8")
    assert not re.search(r"^\s*(from|import) (scripts|experiments|benchmarks|tests)\b", code, re.MULTILINE)
    if module.parts[0] not in DOOR:
        assert not re.search(r"\bargparse\b|HfArgumentParser|sys\.argv", code)


@pytest.mark.parametrize("file", [".ci/run", "Makefile", ".github/workflows/test.yml"])
def test_what_is_run_by_a_name_is_there(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    for name in re.findall(r"(?<![\w/.$)-])(?:tests|scripts|docs)/[\w/.-]+\w", text):
        assert (ROOT / name).exists(), name
