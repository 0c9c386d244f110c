"""`predict` and `translate` take an exported folder as they take a model: same input, same output, same errors."""

import json

import pytest
from shared import LINES, read_json

from hf_vanilla_transformer.exports import export


TEXTS = "".join(f"{line}\n" for line in [*LINES[:7], "", " ", LINES[-1] * 9, *LINES[7:20]])


@pytest.mark.parametrize("name", ["predict", "translate"])
def test_an_export_answers_as_its_model(run, refused, tiny_models, tmp_path, name):
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    folder = tmp_path / "exported"
    model = tiny_models["classification" if name == "predict" else "translation"]
    export(model, output_dir=str(folder), format="ctranslate2")
    (tmp_path / "texts.txt").write_text(TEXTS, encoding="utf-8")
    arguments = ["--file", tmp_path / "texts.txt", "--batch_size", "4"]
    status, expected, said = run(name, "--model", model, *arguments)
    assert status == 0 and expected.count("\n") == TEXTS.count("\n")
    assert "texts cut to the 16 tokens that the model reads: " in said.splitlines()[-1]
    assert run(name, "--model", folder, *arguments) == (0, expected, f"{said.splitlines()[-1]}\n")

    other = "predict" if name == "translate" else "translate"
    assert "exported: not a " in refused(other, "--model", folder, stdin="가\n")
    if name == "predict":
        said = refused(name, "--model", folder, "--dtype", "bfloat16", stdin="가\n")
        assert "dtype bfloat16: only torch has it" in said


@pytest.fixture(scope="module")
def record(tiny_models, tmp_path_factory):
    """The record of a classifier's export."""
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    folder = tmp_path_factory.mktemp("exported") / "classifier"
    export(tiny_models["classification"], output_dir=str(folder), format="ctranslate2")
    return read_json(folder / "export.json")


@pytest.mark.parametrize(
    "changes",
    [
        *({"config": {"max_position_embeddings": "16"}}, {"config": {"problem_type": "x"}}, {"config": None}),
        *({"generation": {"pad_token_id": 1.5}}, {"generation": {"length_penalty": float("nan")}}),
        *({"task": "tagging"}, {"format": "tensorrt"}, {"quantize": "int4"}, {"logits_without_tokens": [1.0]}),
    ],
    ids=str,
)
def test_each_value_of_a_record_is_checked(refused, record, tmp_path, changes):
    """As those of config.json; the message names the file."""
    changed = {
        name: {**record[name], **value} if isinstance(value, dict) else value for name, value in changes.items()
    }
    (tmp_path / "export.json").write_text(json.dumps({**record, **changed}))
    assert "export.json: not the record of an export (" in refused("predict", "--model", tmp_path, stdin="가\n")
