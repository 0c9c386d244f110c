"""The command line: recipes, flags, and one line for what is wrong."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file
from shared import ROOT
from transformers import TrainingArguments

from hf_vanilla_transformer.commands import train_classifier
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.hub.record import recipe_text
from hf_vanilla_transformer.training.classifier import GROUPS


def read(tmp_path, recipe: str, *flags) -> tuple[TrainingArguments, dict]:
    """What a recipe and flags make of transformers' arguments, and the settings for the record."""
    (tmp_path / "recipe.yaml").write_text(recipe)
    (parsed,), settings = parse_arguments([TrainingArguments], "test", [tmp_path / "recipe.yaml", *flags])
    return parsed, settings


def test_flags_override_the_recipe_and_the_recipe_the_defaults(tmp_path):
    recipe = "learning_rate: 1e-3\nnum_train_epochs: 7\nreport_to: none\n"
    parsed, _ = read(tmp_path, recipe, "--num_train_epochs", "2")
    assert (parsed.learning_rate, parsed.num_train_epochs, parsed.per_device_train_batch_size) == (1e-3, 2, 8)


@pytest.mark.parametrize(
    ("recipe", "flags", "message"),
    [
        ("learning_rat: 1\n", [], "--learning_rat"),
        ("seed: 1\n", ["--outptu_dir", "x"], "--outptu_dir"),
        ("- 1\n", [], "holds no mapping"),
        ("seed: 1\nseed: 2\n", [], "seed stands here twice"),
        ("push_to_hub: true\n", [], "give push_to_hub yourself"),
        ("a: [\n", [], "recipe.yaml"),
        ("learning_rate: null\n", [], "--learning_rate: None"),
        ("seed: 1\n", ["--learning_rate", "high"], "learning_rate"),
        ("seed: 1\n", ["another.yaml"], "another.yaml"),
        ("eval_strategy: sometimes\n", [], "sometimes"),
        ("gradient_accumulation_steps: 0\n", [], "gradient_accumulation_steps: a whole number"),
        ("seed: 1\n", ["--dataloader_drop_last", "true"], "--dataloader_drop_last"),
        ("seed: 1\n", ["--push_to_hub", "--hub_token", "hf_x"], "--hub_token"),
    ],
)
def test_settings_that_make_no_sense_are_errors(recipe, flags, message, tmp_path):
    with pytest.raises(DataError, match=re.escape(message)):
        read(tmp_path, recipe, *flags)


@pytest.mark.parametrize(("given", "expected"), [("loss", ["loss"]), ("[-x, a b]", ["-x", "a b"]), ("[]", [])])
def test_a_recipes_lists_are_lists(tmp_path, given, expected):
    parsed, settings = read(tmp_path, f"report_to: none\nhub_model_id: null\ninclude_for_metrics: {given}\n")
    assert parsed.include_for_metrics == expected and parsed.hub_model_id is None


@pytest.mark.parametrize(
    ("recipe", "flags", "expected"),
    [
        ("save_strategy: no\nrun_name: on\n", [], {"save_strategy": "no", "run_name": "on"}),
        ("run_name: 2020-01-02\nhub_model_id: 010\n", [], {"run_name": "2020-01-02", "hub_model_id": "010"}),
        ("bf16: false\nsave_only_model: true\n", [], {"bf16": False, "save_only_model": True}),
        ("hub_model_id: null\nsave_total_limit: ~\n", [], {"hub_model_id": None, "save_total_limit": None}),
        ("save_total_limit: 3\n", ["--seed", "3", "--save_total_limit=null"], {"save_total_limit": None, "seed": 3}),
        ("output_dir: ~/x\n", [], {"output_dir": str(Path.home() / "x")}),
    ],
)
def test_text_is_text_null_unsets_and_a_home_is_found(tmp_path, recipe, flags, expected):
    parsed, settings = read(tmp_path, f"report_to: none\n{recipe}", *flags)
    assert parsed.to_dict().items() >= expected.items()
    assert all(settings[name] == value for name, value in expected.items() if name in settings)


def test_an_exponent_is_a_number_in_a_mapping_too(tmp_path):
    """YAML 1.1 takes it for a text. As a flag, a mapping is JSON."""
    (tmp_path / "recipe.yaml").write_text("learning_rate: 1e-4\nconfig: {layer_norm_eps: 1e-4}\n")
    (_, model, training), settings = parse_arguments(GROUPS, "test", [tmp_path / "recipe.yaml"])
    assert training.learning_rate == model.config["layer_norm_eps"] == settings["learning_rate"] == 1e-4
    (_, model, _), settings = parse_arguments(GROUPS, "test", ["--config", '{"d_model": 16}', "--report_to", "none"])
    assert model.config == settings["config"] == {"d_model": 16}
    assert yaml.safe_load(yaml.safe_dump(settings)) == settings


def test_a_saved_recipe_makes_the_same_arguments(tmp_path):
    recipe = "learning_rate: 0.003\nbf16: true\nreport_to: none\neval_strategy: epoch\n"
    flags = ["--num_train_epochs", "5", "--output_dir", tmp_path / "run"]
    parsed, settings = read(tmp_path, recipe, *flags)
    assert settings == {**yaml.safe_load(recipe), "num_train_epochs": 5}
    (tmp_path / "recipe.yaml").write_text(recipe_text(settings))
    (again,), _ = parse_arguments([TrainingArguments], "test", [tmp_path / "recipe.yaml", *flags[2:]])
    assert again.to_dict() == parsed.to_dict()


def test_a_recipe_holds_nothing_of_one_call():
    flags = ["--output_dir", "runs/x", "--seed", "3", "--report_to", "none"]
    once = ["--resume_from_checkpoint", "auto", "--run_name", "x", "--push_to_hub", "true"]
    _, settings = parse_arguments([TrainingArguments], "test", [*flags, *once])
    assert settings == {"seed": 3, "report_to": "none"}


def test_a_recipe_of_the_package_goes_by_its_name(here, monkeypatch):
    """A file of the name comes first, a folder does not."""
    monkeypatch.setattr(sys, "argv", ["vanilla-transformer train-classifier"])
    Path("nsmc").mkdir()
    _, settings = parse_arguments(GROUPS, "test", ["nsmc", "--output_dir", "run"])
    assert settings == yaml.safe_load((ROOT / "hf_vanilla_transformer/recipes/nsmc.yaml").read_text())
    Path("nsmc").rmdir()
    Path("nsmc").write_text("data: mine.csv\n")
    _, settings = parse_arguments(GROUPS, "test", ["nsmc", "--output_dir", "run"])
    assert settings == {"data": "mine.csv"}


def test_help_shows_a_commands_own_settings_in_sections(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "argv", ["vanilla-transformer train-classifier"])
    with pytest.raises(SystemExit):
        train_classifier.main(["--help"])
    text = capsys.readouterr().out
    own = {setting.name for group in GROUPS[:-1] for setting in dataclasses.fields(group)}
    assert {*re.findall(r"^  --(\w+)", text, re.MULTILINE)} == own | {"output_dir", "resume_from_checkpoint"}
    assert re.findall(r"^(\w+):$", text, re.MULTILINE) == ["recipes", "options", "data", "model"]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 99999])
def test_whoever_stops_reading_is_told_nothing(lines):
    """As with `| head`: the answers are fewer or more than a pipe holds."""
    program = f"""
from hf_vanilla_transformer.commands.arguments import exit_with_one_line
input()
with exit_with_one_line():
    print("좋다\\n" * {lines})
"""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([sys.executable, "-c", program], **pipes)
    process.stdout.close()
    _, error = process.communicate(b"\n")
    assert (process.returncode, error) == (1, b"")


def test_a_librarys_message_becomes_one_line(capsys):
    with pytest.raises(SystemExit) as stop, exit_with_one_line():
        load_file(__file__)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "header" in error and error.count("\n") == 1


@pytest.mark.parametrize("error", [ValueError("operands could not be broadcast together"), KeyError("weight")])
def test_a_fault_of_the_package_keeps_its_traceback(run, monkeypatch, error):
    def fault(*args, **kwargs):
        raise error

    monkeypatch.setattr("hf_vanilla_transformer.inference.tokenization.TransformersTokenizer.encode", fault)
    with pytest.raises(type(error)) as raised:
        run("predict", "--model", ROOT / "model_cards" / "nsmc-small", stdin="하나\n")
    assert raised.value is error
