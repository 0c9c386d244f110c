"""`vanilla-transformer`, also `python -m hf_vanilla_transformer`."""

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
from hf_vanilla_transformer.commands.arguments import parse_arguments
from hf_vanilla_transformer.data.imports import missing_extra


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
        (["train-classifer", "sample"], 2, "error: no command 'train-classifer'; there are train-classifier"),
        (["predict", "--help"], 0, "--batch_size"),
        (["translate", "--modle", "x"], 2, "--modle"),
        (["evaluate", "--split", "test"], 2, "name the model by --model"),
        (["export", "--quantize", "int8"], 2, "required: --model, --format, --output_dir"),
    ],
)
def test_what_needs_no_model_is_answered_without_torch(words, status, answer):
    """It takes seconds to import."""
    command = [sys.executable, "-X", "importtime", "-m", "hf_vanilla_transformer", *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == status and answer in result.stdout + result.stderr
    assert not re.search(r"\| *(torch|datasets)$", result.stderr, re.MULTILINE)
    assert len(words) > 1 and words[1][0] == "-" or not re.search(r"\| *transformers$", result.stderr, re.MULTILINE)


@pytest.mark.parametrize("command", ["predict", "translate", "evaluate", "export"])
def test_a_model_is_named_by_its_flag(refused, command):
    assert "--model" in refused(command, "runs/mine")


@pytest.mark.parametrize("module", ["commands.evaluate", "evaluation.evaluate"])
def test_ctrl_c_during_the_imports_is_one_line(module, monkeypatch, capsys):
    class Interrupting:
        @staticmethod
        def find_spec(name, *args):
            if name == f"hf_vanilla_transformer.{module}":
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "meta_path", [Interrupting, *sys.meta_path])
    for name in ("commands.evaluate", module):
        monkeypatch.delitem(sys.modules, f"hf_vanilla_transformer.{name}", raising=False)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as stop:
            main(["evaluate", "--model", "x"])
    finally:
        signal.signal(signal.SIGINT, handler)
    assert stop.value.code == 130 and capsys.readouterr().err == "vanilla-transformer evaluate: interrupted\n"


WITHOUT_EXTRAS = """
import sys
from contextlib import suppress

names = ("accelerate", "datasets", "matplotlib", "pandas", "pyarrow", "sacrebleu", "scipy", "sklearn")
sys.modules.update(dict.fromkeys(names))  # as if they were not installed
from hf_vanilla_transformer.__main__ import main
from hf_vanilla_transformer.data.tokenizer import import_sentencepiece  # its own extra is enough

for words in sys.stdin.read().splitlines():
    with suppress(SystemExit):
        main(words.split())
"""


def test_models_answer_without_what_only_training_needs(tiny_models, tmp_path):
    classifier, translator = tiny_models["classification"], tiny_models["translation"]
    (tmp_path / "t.csv").write_text("text\n가\n")
    works = [f"predict --model {classifier} --file {tmp_path}/t.csv --dtype auto"]
    works += [f"translate --model {translator} --file {tmp_path}/t.csv --text_column text"]
    works += [f"export --model {translator} --format ctranslate2 --output_dir {tmp_path}/exported"]
    works += [f"push-to-hub {ROOT}/model_cards/nsmc-small --repo_id a/b --dry_run"]
    fails = ["train-classifier sample", "train-translation", "pretrain", f"evaluate --model {classifier}"]
    lines = "\n".join([*works, *fails])
    command = [sys.executable, "-c", WITHOUT_EXTRAS]
    found = subprocess.run(command, input=lines, cwd=tmp_path, capture_output=True, encoding="utf-8")
    said = [line for line in found.stderr.splitlines() if "error: " in line]
    extras = [
        re.search(r"\w+ is not installed: pip install 'hf-vanilla-transformer\[(\w+)\]'$", line) for line in said
    ]
    assert [extra and extra[1] for extra in extras] == ["train"] * 4, found.stderr
    assert "text,predicted,probability\n가," in found.stdout and "text,translation\n가," in found.stdout
    assert (tmp_path / "exported" / "README.md").exists()
    assert "model.safetensors" in found.stdout
    # Standard output is for answers.
    assert "Computing in " in found.stderr and "Computing in " not in found.stdout


@pytest.mark.parametrize(
    ("module", "extra"), [("sklearn.metrics", "train"), ("onnx", "onnx"), ("torch", None), ("unheard_of", None)]
)
def test_an_extra_is_named_for_what_it_alone_installs(module, extra):
    """torch is of every install, although the extra `onnx` asks for a later one."""
    message = missing_extra(ModuleNotFoundError(name=module))
    assert message is None if extra is None else message.endswith(f"'hf-vanilla-transformer[{extra}]'")


def test_a_recipe_of_the_package_names_its_command_which_reads_it(monkeypatch):
    for file in (ROOT / "hf_vanilla_transformer/recipes").glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        command = text.removeprefix("# ").partition(":")[0]
        module = importlib.import_module(f"hf_vanilla_transformer.commands.{command.replace('-', '_')}")
        monkeypatch.setattr(sys, "argv", [f"vanilla-transformer {command}"])
        data = {"pretrain": ["--texts", "reviews.txt"], "train-translation": ["--data", "pairs"]}.get(command, [])
        _, settings = parse_arguments(module.GROUPS, "test", [file.stem, "--output_dir", "run", *data])
        assert settings == settings | yaml.safe_load(text), file


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
    assert out.endswith(module.__doc__.partition("\n\n")[2])
    assert "--no_" not in out and "default: None" not in out
