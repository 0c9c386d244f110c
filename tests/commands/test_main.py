"""`vanilla-transformer`, `python -m hf_vanilla_transformer`, and the wrappers in scripts/."""

import dataclasses
import importlib
import re
import signal
import subprocess
import sys

import pytest
import yaml
from shared import ROOT

from hf_vanilla_transformer import __version__
from hf_vanilla_transformer.__main__ import COMMANDS, main


PROGRAMS = {"average_checkpoints.py", "figures.py", "prepare_reviews.py", "train_copy.py"}
PROGRAMS |= {"hub_job.py", "release_check.py", "set_owner.py"}
WRAPPER = '''"""`vanilla-transformer {command}`, from a checkout."""

from hf_vanilla_transformer.commands.{module} import main


if __name__ == "__main__":
    main()
'''


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_without_a_command_all_are_listed(capsys, words):
    main(words)
    out = capsys.readouterr().out
    assert re.findall(r"^  ([\w-]+) ", out, re.MULTILINE) == list(COMMANDS)
    assert all(purpose in out for purpose in COMMANDS.values())


@pytest.mark.parametrize(
    ("words", "status", "answer"),
    [
        ([], 0, "  train-classifier "),
        (["--version"], 0, f"vanilla-transformer {__version__}\n"),
        (["train-classifer", "sample"], 2, "error: no command 'train-classifer'; did you mean train-classifier?"),
        (
            ["train-classifier", "nmsc"],
            2,
            "error: nmsc: no such file, and no recipe of the package; did you mean nsmc?",
        ),
        (["train-classifier", "multi30k-de-en"], 2, "multi30k-de-en: that recipe is for train-translation"),
        (["predict", "--help"], 0, "--batch_size"),
        (["translate", "--modle", "x"], 2, "did you mean --model?"),
    ],
)
def test_what_needs_no_model_is_answered_without_torch(words, status, answer):
    """It takes seconds to import."""
    command = [sys.executable, "-X", "importtime", "-m", "hf_vanilla_transformer", *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == status and answer in result.stdout + result.stderr
    assert not re.search(r"\| *(torch|datasets)$", result.stderr, re.MULTILINE)
    assert len(words) > 1 and words[1][0] == "-" or not re.search(r"\| *transformers$", result.stderr, re.MULTILINE)


@pytest.mark.parametrize(
    ("command", "module"),
    [
        *((command, f"commands.{command.replace('-', '_')}") for command in COMMANDS),
        *(("evaluate", "evaluation"), ("export", "exports"), ("page", "exports.browser_page")),
    ],
)
def test_ctrl_c_during_the_imports_is_one_line(command, module, monkeypatch, capsys):
    class Interrupting:
        @staticmethod
        def find_spec(name, *args):
            if name == f"hf_vanilla_transformer.{module}":
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "meta_path", [Interrupting, *sys.meta_path])
    for name in (f"commands.{command.replace('-', '_')}", module):
        monkeypatch.delitem(sys.modules, f"hf_vanilla_transformer.{name}", raising=False)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as stop:
            main([command, "--model", "x", "--output_dir", "y"])
    finally:
        signal.signal(signal.SIGINT, handler)
    assert stop.value.code == 130 and capsys.readouterr().err == f"vanilla-transformer {command}: interrupted\n"


def test_a_recipe_of_the_package_names_its_command():
    for file in (ROOT / "hf_vanilla_transformer/recipes").glob("*.yaml"):
        command = file.read_text(encoding="utf-8").removeprefix("# ").partition(":")[0]
        module = importlib.import_module(f"hf_vanilla_transformer.commands.{command.replace('-', '_')}")
        settings = {setting.name for group in module.GROUPS for setting in dataclasses.fields(group)}
        assert yaml.safe_load(file.read_text(encoding="utf-8")).keys() <= settings, file


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_module_that_helps(command, capsys, monkeypatch):
    module = importlib.import_module(f"hf_vanilla_transformer.commands.{command.replace('-', '_')}")
    assert f"\n    vanilla-transformer {command} " in module.__doc__  # an example
    monkeypatch.setattr(sys, "argv", ["vanilla-transformer", command, "--help"])
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: vanilla-transformer {command} ") and module.__doc__.splitlines()[0] in out
    _, examples = out.split("\nexamples:\n")  # at the end
    assert examples.count("vanilla-transformer ") >= 2
    assert "--no_" not in out and "default: None" not in out


def test_every_command_has_a_script_that_is_its_wrapper():
    scripts = {file.name: file.read_text() for file in (ROOT / "scripts").glob("*.py") if file.name not in PROGRAMS}
    modules = {command: command.replace("-", "_") for command in COMMANDS}
    assert scripts == {f"{module}.py": WRAPPER.format(command=name, module=module) for name, module in modules.items()}


def test_a_script_runs_as_its_command(succeed):
    out = succeed("predict.py", "--model", ROOT / "model_cards" / "nsmc-small", stdin="좋다\n")
    assert out.startswith("positive\t")
