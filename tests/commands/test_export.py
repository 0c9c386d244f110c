"""`vanilla-transformer export`: what it prints, what it reads of the recipe, and one line for every mistake."""

import re

import pytest
import torch
import yaml
from export.models import random_model, save
from shared import LINES, error_line, files_of_at_most, tiny_config

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration


PRE_NORM = {"norm_first": True, "final_norm": True, "position_offset": 0, "layer_norm_eps": 1e-5}


def refused(run, *arguments) -> str:
    status, out, err = run("export", *arguments)
    assert (status, out) == (2, "")
    return error_line("export", err)


@pytest.fixture
def twin(tmp_path):
    """A translator's folder."""
    return save(random_model(tiny_config(**PRE_NORM)), tmp_path / "model")


def test_to_transformers_and_back(run, twin, tmp_path):
    status, out, _ = run("export", "--model", twin, "--format", "transformers", "--output_dir", tmp_path / "native")
    assert status == 0
    first, last = out.splitlines()
    assert first.startswith("25 random texts of 1 to 16 tokens: greatest difference from torch ")
    assert first.endswith("same translation 25 of 25")
    assert last == f"{tmp_path / 'native'}: translation with transformers, float32"
    back = ["--format", "vanilla", "--output_dir", tmp_path / "back"]
    assert run("export", "--model", tmp_path / "native", *back)[0] == 0
    models = [VanillaTransformerForConditionalGeneration.from_pretrained(path) for path in (twin, tmp_path / "back")]
    before, after = (model.state_dict() for model in models)
    assert all(torch.equal(before[name], after[name]) for name in before)
    status, expected, _ = run("translate", "--model", twin, stdin="가 나 다\n")
    assert status == 0 and run("translate", "--model", tmp_path / "native", stdin="가 나 다\n")[1] == expected


def test_the_proof_is_on_the_runs_validation_split_where_its_data_are_here(run, twin, tmp_path):
    export = ["export", "--model", twin, "--format", "transformers", "--output_dir"]
    recipe = {"data": str(tmp_path / "pairs.tsv"), "source_column": "ko", "target_column": "en", "seed": 3}
    (tmp_path / "model" / "recipe.yaml").write_text(yaml.safe_dump({**recipe, "validation_fraction": 0.3}))
    assert "validation" not in run(*export, tmp_path / "without")[1]
    rows = "".join(f"{line}\t{number}\n" for number, line in enumerate(LINES))
    (tmp_path / "pairs.tsv").write_text(f"ko\ten\n{rows}", encoding="utf-8")
    status, out, err = run(*export, tmp_path / "with")
    assert status == 0, err
    found = re.match(r"13 texts of the validation split of 1 to (\d+) tokens: .* same translation 13 of 13\n", out)
    assert found and int(found[1]) <= 16 and "random texts" in out.splitlines()[1]
    card = (tmp_path / "with" / "README.md").read_text(encoding="utf-8")
    assert "| 13 of the validation split | same translation, greedy search | " in card
    (tmp_path / "pairs.tsv").write_text("other\tcolumns\na\tb\n", encoding="utf-8")
    assert run(*export, tmp_path / "changed")[1].startswith("No texts of the validation split: ")


@pytest.mark.parametrize("format", ["ctranslate2", "transformers"])
@pytest.mark.parametrize("most", [2_000, 40_000])
def test_a_full_disk_leaves_nothing(format, most, run, twin, tmp_path):
    if format == "ctranslate2":
        pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    with files_of_at_most(most):
        said = refused(run, "--model", twin, "--format", format, "--output_dir", tmp_path / "export")
    assert "File too large" in said
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_mistakes_are_one_line(run, twin, tmp_path):
    out = ["--output_dir", tmp_path / "export"]
    assert "nowhere" in refused(run, "--model", tmp_path / "nowhere", "--format", "transformers", *out)
    assert "invalid choice: 'tensorrt'" in refused(run, "--model", twin, "--format", "tensorrt", *out)
    assert "--model" in refused(run, "--format", "transformers", *out)
    vanilla = ["--model", twin, "--format", "vanilla"]
    assert "no export in the format 'transformers'" in refused(run, *vanilla, *out)
    assert "--quantize: has no effect" in refused(run, *vanilla, "--quantize", "int8", *out)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_export_is_not_trained(run, twin, tmp_path):
    assert run("export", "--model", twin, "--format", "transformers", "--output_dir", tmp_path / "export")[0] == 0
    for command, arguments in (
        ("train-translation", ["--data", tmp_path, "--source_column", "a", "--target_column", "b"]),
        ("train-classifier", ["--data", "sample"]),
        ("export", ["--format", "transformers"]),
    ):
        options = ["--model", tmp_path / "export", "--output_dir", tmp_path / f"{command}-run", *arguments]
        status, _, err = run(command, *options)
        assert status == 2 and "export: an export, not a model of this package" in error_line(command, err)
