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


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "export.json: not the record of an export"),
        ("[]", "export.json: not the record of an export"),
        ('{"format": "tensorrt"}', "export.json: not the record of an export"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused(refused, tmp_path, record, message):
    (tmp_path / "export.json").write_text(record)
    assert message in refused("predict", "--model", tmp_path, stdin="가\n")


@pytest.fixture(scope="module")
def exported(tiny_models, tmp_path_factory):
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    folder = tmp_path_factory.mktemp("exported")
    for task, model in tiny_models.items():
        export(model, output_dir=str(folder / task), format="ctranslate2")
    return folder


TRANSLATORS = [
    *({"config": {"max_position_embeddings": -5}}, {"config": {"max_position_embeddings": "16"}}),
    *(
        {"generation": {"pad_token_id": 1.5}},
        {"config": {"vocab_size": True}},
        {"generation": {"eos_token_id": ["a"]}},
    ),
    *(
        {"generation": {"decoder_start_token_id": 29}},
        {"config": {"decoder_vocab_size": 0}},
        {"config": {"id2label": 3}},
    ),
    *({"config": {"architectures": ["VanillaTransformerModel"]}}, {"config": None}, {"generation": "no"}),
    *({"generation": {"max_new_tokens": -1}}, {"generation": {"num_beams": 2.5}}, {"generation": {"max_length": {}}}),
    *({"generation": {"length_penalty": None}}, {"generation": {"length_penalty": float("nan")}}),
    *({"task": "tagging"}, {"format": ["onnx"]}, {"format": "tensorrt"}, {"quantize": "int4"}, {"quantize": 8}),
]
CLASSIFIERS = [
    *({"config": {"problem_type": "x"}}, {"config": {"id2label": {}}}, {"config": {"id2label": {"a": "b"}}}),
    *({"logits_without_tokens": [1.0]}, {"logits_without_tokens": ["a", "b"]}, {"logits_without_tokens": None}),
]
RECORDS = [("translation", changes) for changes in TRANSLATORS] + [("classification", one) for one in CLASSIFIERS]


@pytest.mark.parametrize(("task", "changes"), RECORDS, ids=str)
def test_each_value_of_a_record_is_checked(refused, exported, tmp_path, task, changes):
    """As those of config.json; the message names the file."""
    record = read_json(exported / task / "export.json")
    for name, value in changes.items():
        record[name] = {**record[name], **value} if isinstance(value, dict) else value
    (tmp_path / "export.json").write_text(json.dumps(record))
    name = "predict" if task == "classification" else "translate"
    assert "export.json: not the record of an export (" in refused(name, "--model", tmp_path, stdin="가\n")


def test_a_record_without_an_entry_is_refused(refused, exported, tmp_path):
    for name in ("format", "task", "config", "generation", "quantize", "logits_without_tokens"):
        record = read_json(exported / "classification" / "export.json")
        del record[name]
        (tmp_path / "export.json").write_text(json.dumps(record))
        assert "export.json: not the record of an export (" in refused("predict", "--model", tmp_path, stdin="가\n")
