"""`vanilla-transformer`, `python -m hf_vanilla_transformer`, and the wrappers in scripts/."""

import importlib
import re
import subprocess
import sys

import pytest
from shared import ROOT

from hf_vanilla_transformer.__main__ import COMMANDS, main


SCRIPTS = sorted((ROOT / "scripts").glob("*.py"))
PROGRAMS = {"average_checkpoints.py", "prepare_reviews.py"}
WRAPPERS = [file for file in SCRIPTS if file.name not in PROGRAMS]
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


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train-classifer", "sample"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("vanilla-transformer: error: no command 'train-classifer'; there are ")


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


def test_every_module_but_the_common_ones_is_a_command():
    modules = {file.stem for file in (ROOT / "hf_vanilla_transformer" / "commands").glob("*.py")}
    common = {"__init__", "arguments", "lines", "run", "vocabulary"}
    assert {name.replace("-", "_") for name in COMMANDS} == modules - common


@pytest.mark.parametrize("file", WRAPPERS, ids=lambda file: file.name)
def test_a_script_is_a_wrapper_of_its_command(file):
    command = file.stem.replace("_", "-")
    assert command in COMMANDS
    assert file.read_text() == WRAPPER.format(command=command, module=file.stem)


def test_every_command_has_a_script():
    assert [file.stem.replace("_", "-") for file in WRAPPERS] == sorted(COMMANDS)


@pytest.mark.slow
def test_a_command_runs_in_a_process_of_its_own():
    words = ["-m", "hf_vanilla_transformer", "predict", "--model", ROOT / "model_cards" / "nsmc-small"]
    result = subprocess.run([sys.executable, *words], input="좋다\n", capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("positive\t")


def test_a_script_runs_as_its_command(run):
    status, out, _ = run("predict.py", "--model", ROOT / "model_cards" / "nsmc-small", stdin="좋다\n")
    assert status == 0 and out.startswith("positive\t")
