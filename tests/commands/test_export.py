"""`vanilla-transformer export`: what it prints, what it reads of the recipe, and one line for every mistake."""

import re

import pytest
import yaml
from exports.models import random_model, save
from shared import LINES, files_of_at_most, tiny_config


pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")


@pytest.fixture
def translator(tmp_path):
    return save(random_model(tiny_config()), tmp_path / "model")


def test_what_is_printed(succeed, translator, tmp_path):
    out = succeed("export", "--model", translator, "--format", "ctranslate2", "--output_dir", tmp_path / "export")
    first, last = out.splitlines()
    assert first.startswith("25 random texts of 1 to 16 tokens: greatest difference from torch ")
    assert first.endswith("same translation 25 of 25")
    assert last == f"{tmp_path / 'export'}: translation with ctranslate2, float32"


def test_the_proof_is_on_the_runs_validation_split_where_its_data_are_here(run, succeed, translator, tmp_path):
    export = ["export", "--model", translator, "--format", "ctranslate2", "--output_dir"]
    recipe = {"data": str(tmp_path / "pairs.tsv"), "source_column": "ko", "target_column": "en", "seed": 3}
    (tmp_path / "model" / "recipe.yaml").write_text(yaml.safe_dump({**recipe, "validation_fraction": 0.3}))
    assert "validation" not in run(*export, tmp_path / "without")[1]
    rows = "".join(f"{line}\t{number}\n" for number, line in enumerate(LINES))
    (tmp_path / "pairs.tsv").write_text(f"ko\ten\n{rows}", encoding="utf-8")
    out = succeed(*export, tmp_path / "with")
    found = re.match(r"13 texts of the validation split of 1 to (\d+) tokens: .* same translation 13 of 13\n", out)
    assert found and int(found[1]) <= 16 and "random texts" in out.splitlines()[1]
    card = (tmp_path / "with" / "README.md").read_text(encoding="utf-8")
    assert "| 13 of the validation split | same translation, greedy search" in card
    (tmp_path / "pairs.tsv").write_text("other\tcolumns\na\tb\n", encoding="utf-8")
    assert run(*export, tmp_path / "changed")[1].startswith("No texts of the validation split: ")


@pytest.mark.parametrize("most", [2_000, 40_000])
def test_a_full_disk_leaves_nothing(most, refused, translator, tmp_path):
    with files_of_at_most(most):
        said = refused("export", "--model", translator, "--format", "ctranslate2", "--output_dir", tmp_path / "export")
    assert "File too large" in said
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "tensorrt"], "invalid choice: 'tensorrt'"),
        (["--format", "ctranslate2", "--quantize", "int4"], "invalid choice: 'int4'"),
    ],
)
def test_mistakes_are_one_line(refused, translator, tmp_path, arguments, message):
    assert message in refused("export", "--model", translator, "--output_dir", tmp_path / "export", *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_export_is_not_trained(succeed, refused, translator, tmp_path):
    succeed("export", "--model", translator, "--format", "ctranslate2", "--output_dir", tmp_path / "export")
    for command, arguments in (
        ("train-translation", ["--data", tmp_path, "--source_column", "a", "--target_column", "b"]),
        ("train-classifier", ["--data", "sample"]),
        ("export", ["--format", "ctranslate2"]),
    ):
        options = ["--model", tmp_path / "export", "--output_dir", tmp_path / f"{command}-run", *arguments]
        assert "export: an export, not a model of this package" in refused(command, *options)
