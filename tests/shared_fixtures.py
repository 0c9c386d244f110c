"""Fixtures for all tests; conftest.py imports them."""

import gzip
import importlib
import io
import runpy
import sys
from pathlib import Path

import pytest
import torch
from exports.models import TIED, random_model, save
from shared import LINES, QUIET, ROOT, VARIANTS, error_line, tiny_config

from hf_vanilla_transformer import VanillaTransformerConfig
from hf_vanilla_transformer.__main__ import main
from hf_vanilla_transformer.data.tokenizer import train_tokenizer


@pytest.fixture(params=VARIANTS)
def config(request) -> VanillaTransformerConfig:
    """Each variant in turn, tiny."""
    return tiny_config(**VARIANTS[request.param])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder in which the test runs, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process, or a script of scripts/; returns exit status, standard output and error."""

    def run(name: str, *arguments, stdin: str | bytes = b"") -> tuple[int, str, str]:
        words = [str(argument) for argument in arguments]
        given = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capsys.readouterr()
        status = 0
        try:
            if name.endswith(".py"):
                monkeypatch.setattr(sys, "argv", [name, *words])
                runpy.run_path(str(ROOT / "scripts" / name), run_name="__main__")
            else:
                monkeypatch.setattr(sys, "argv", [])
                main([name, *words])
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def succeed(run):
    """As `run`, of what must succeed; returns what it printed."""

    def succeed(name: str, *arguments, **options) -> str:
        status, out, err = run(name, *arguments, **options)
        assert status == 0, err
        return out

    return succeed


@pytest.fixture
def refused(run):
    """As `run`, of what must be refused; returns the one line in which the command says what is wrong.

    Whose output is read by programs, and who labels texts, prints nothing.
    """

    def refused(name: str, *arguments, **options) -> str:
        status, out, err = run(name, *arguments, **options)
        silent = ("predict", "translate", "export", "page", "push-to-hub")
        assert status == 2 and not (out and name in (*silent, "experiments/soft_labels.py"))
        return error_line(name, err)

    return refused


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A classifier's run of two epochs on the sample, by its recipe, with a checkpoint after each."""
    folder = tmp_path_factory.mktemp("runs") / "sample"
    train_classifier = importlib.import_module("hf_vanilla_transformer.commands.train_classifier")
    train_classifier.main(
        ["sample", "--output_dir", str(folder), "--num_train_epochs", "2", "--save_total_limit", "3", *QUIET]
    )
    return folder


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory) -> dict[str, Path]:
    """The folders of a classifier and of a translator with random weights, by task; to be read alone."""
    folder = tmp_path_factory.mktemp("models")
    config = tiny_config(**TIED, encoder_layers=1, decoder_layers=1)
    tasks = ("classification", "translation")
    return {task: Path(save(random_model(config, task), folder / task)) for task in tasks}


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    """Aligned files: numbers of two or three figures, and the same in words."""
    folder = tmp_path_factory.mktemp("corpus")
    words = ["Null", "Eins", "Zwei", "Drei", "Vier"]
    numbers = [[a, b, c][c % 2 :] for a in range(5) for b in range(5) for c in range(5)]
    pairs = [(number, [words[figure] for figure in number]) for number in numbers]
    for name, part in (("train", pairs[:100]), ("val", pairs[100:112]), ("test", pairs[112:])):
        (folder / f"{name}.num").write_text("".join(" ".join(map(str, number)) + "\n" for number, _ in part))
        (folder / f"{name}.de").write_text("".join(" ".join(word) + ".\n" for _, word in part))
    return folder


@pytest.fixture
def text_file(tmp_path) -> Path:
    """Sixty lines of plain text, and two without a text."""
    file = tmp_path / "corpus.txt.gz"
    file.write_bytes(gzip.compress(("\n".join([*LINES[:30], "", "  ", *LINES[30:]]) + "\n").encode()))
    return file


@pytest.fixture(scope="module")
def text_tokenizer():
    """A tokenizer of that text; a test may change it."""
    return train_tokenizer(LINES, vocab_size=29, max_length=16)
