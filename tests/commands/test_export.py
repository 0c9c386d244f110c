"""`vanilla-transformer export`: what it prints, and one line for every mistake."""

import pytest
from exports.models import random_model, save
from shared import files_of_at_most, tiny_config


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
