"""`predict` and `translate` take an exported folder as they take a model: same input, same output, same errors."""

import pytest
from shared import LINES

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
        ("{", "export.json: no record can be read here"),
        ('{"format": "tensorrt"}', "format 'tensorrt' is none of "),
    ],
)
def test_a_record_that_cannot_be_read_is_refused(refused, tmp_path, record, message):
    (tmp_path / "export.json").write_text(record)
    assert message in refused("predict", "--model", tmp_path, stdin="가\n")
