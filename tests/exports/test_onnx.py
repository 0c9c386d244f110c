"""onnxruntime computes what torch computes, also without torch and in Node."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from shared import ROOT, run_without_the_package

from exports.models import CONFIGS, program_of, random_model
from hf_vanilla_transformer.data import load_labelled_text
from hf_vanilla_transformer.exports import export
from hf_vanilla_transformer.inference import Classifier, load_engine
from hf_vanilla_transformer.inference.folder import load_tokenizer


pytestmark = pytest.mark.slow
for package in ("onnx", "onnxscript"):
    pytest.importorskip(package, reason="the extra [onnx] is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")

from onnx import TensorProto, load, numpy_helper  # noqa: E402

from hf_vanilla_transformer.exports import onnx_writer  # noqa: E402


# Batches of ids: one text of one token, pads on the right, on the left, in the middle, a row without a token.
MASKS = [[[1]], [[1, 1, 1, 0], [1, 1, 1, 1]], [[0, 0, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]], [[1] * 16]]
PUBLISHED = str(ROOT / "model_cards" / "nsmc-small")
WITHOUT_TORCH = """\
import sys
for module in ("torch", "transformers"):
    sys.modules[module] = None  # an import fails
"""


# Together they have every kind of norm, of positions and of activation.
@pytest.mark.parametrize("name", ["transformer-evolution-full", "pytorch-seq2seq", "pytorch-transformer-scalar-norm"])
def test_the_graph_computes_the_same(name, tmp_path):
    config = CONFIGS[f"preset {name}"]()
    config.encoder_layers = config.decoder_layers = 1  # traced sooner
    model = random_model(config, "classification")
    onnx_writer.save_graph(model, onnx_writer.source_example(), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    for mask in map(torch.tensor, MASKS):
        ids = torch.randint(4, config.vocab_size, mask.shape)
        with torch.no_grad():
            expected = model(ids, attention_mask=mask).logits.numpy()
        (found,) = session.run(["logits"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> dict[str | None, Path]:
    """The exports of the published classifier, in float32 and in int8."""
    folders = {quantize: tmp_path_factory.mktemp("onnx") / "export" for quantize in (None, "int8")}
    for quantize, folder in folders.items():
        export(PUBLISHED, output_dir=str(folder), format="onnx", quantize=quantize)
    return folders


def test_the_folder_has_what_other_libraries_look_for(published):
    names = {path.name for path in published[None].iterdir()}
    assert names >= {"README.md", "config.json", "export.json", "onnx", "tokenizer.json", "tokenizer_config.json"}
    assert [path.name for path in (published[None] / "onnx").iterdir()] == ["model.onnx"]
    config = json.loads((published[None] / "config.json").read_text())
    assert (config["hidden_size"], config["num_hidden_layers"]) == (config["d_model"], config["encoder_layers"])
    assert config["id2label"] == {"0": "negative", "1": "positive"} and "auto_map" not in config
    assert b"site-packages" not in (published[None] / "onnx" / "model.onnx").read_bytes()


def test_int8_is_near_and_small(published):
    assert [path.name for path in (published["int8"] / "onnx").iterdir()] == ["model_quantized.onnx"]
    file = published["int8"] / "onnx" / "model_quantized.onnx"
    assert file.stat().st_size < 0.4 * (published[None] / "onnx" / "model.onnx").stat().st_size
    tensors = load(file).graph.initializer
    weights = [numpy_helper.to_array(tensor) for tensor in tensors if tensor.data_type == TensorProto.INT8]
    # As in `test_products_of_int8_weights_fit_in_sixteen_bits`.
    assert weights and 2 * 255 * max(np.abs(weight.astype(int)).max() for weight in weights) < 2**15
    assert json.loads((published["int8"] / "config.json").read_text())["transformers.js_config"] == {"dtype": "q8"}


def test_published_classifier(published):
    data = load_labelled_text("sample")["test"]
    ids, labels = load_tokenizer(PUBLISHED)(data["text"][:], truncation=True)["input_ids"], np.array(data["label"])
    expected, float32, int8 = (
        load_engine(folder).logits(ids, 32) for folder in (PUBLISHED, str(published[None]), str(published["int8"]))
    )
    np.testing.assert_allclose(float32, expected, atol=1e-5)
    right = [(logits.argmax(axis=-1) == labels).mean() for logits in (int8, expected)]
    assert abs(right[0] - right[1]) <= 0.01


@pytest.mark.parametrize("quantize", [None, "int8"])
def test_readme_s_program_needs_neither_torch_nor_transformers(published, quantize):
    folder = published[quantize]
    for text in ("정말 재미있고 감동적인 영화", " "):
        program = re.sub(r'encode\(".*"\)', f'encode("{text}")', program_of(folder))
        label, probability = run_without_the_package(WITHOUT_TORCH + program, home=folder).split()
        (answer,) = Classifier(str(folder))(text)
        assert label == answer["label"] and float(probability) == pytest.approx(answer["score"], abs=1e-5)


def test_a_damaged_file_is_named(published, tmp_path):
    shutil.copytree(published["int8"], tmp_path / "export")
    (tmp_path / "export" / "onnx" / "model_quantized.onnx").write_bytes(b"broken")
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / 'export'))}: onnx/model_quantized.onnx: "):
        load_engine(str(tmp_path / "export"))


TRANSFORMERS_JS = os.environ.get("TRANSFORMERS_JS_DIR", "")
IN_NODE = """\
import { readFileSync } from "node:fs";
import { AutoConfig, AutoTokenizer, env, pipeline } from "@huggingface/transformers";

env.allowRemoteModels = false;
const texts = JSON.parse(readFileSync(0, "utf-8"));
const config = await AutoConfig.from_pretrained(".");
config.model_type = "bert";
const run = await pipeline("text-classification", ".", { config });
const tokenizer = await AutoTokenizer.from_pretrained(".");
const ids = texts.map((text) => tokenizer(text, { truncation: true, return_tensor: false }).input_ids);
console.log("ANSWER" + JSON.stringify({ ids, answers: await run(texts) }));
"""


def in_node(program: str, home: Path, texts: list[str] = ()) -> str:
    """Run a program of transformers.js in a folder; returns what it prints."""
    if not (home / "node_modules").exists():  # node looks for packages from the program's folder upwards
        (home / "node_modules").symlink_to(Path(TRANSFORMERS_JS, "node_modules").resolve())
    (home / "program.mjs").write_text(program, encoding="utf-8")
    result = subprocess.run(["node", "program.mjs"], cwd=home, input=json.dumps(texts), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(
    not TRANSFORMERS_JS or shutil.which("node") is None,
    reason="TRANSFORMERS_JS_DIR names no folder with node_modules/@huggingface/transformers, or there is no node",
)
@pytest.mark.parametrize("quantize", [None, "int8"])
def test_classifier_in_node(published, quantize):
    texts = load_labelled_text("sample")["test"]["text"][:200]
    found = json.loads(in_node(IN_NODE, published[quantize], texts).split("ANSWER")[1])
    ids = load_tokenizer(PUBLISHED)(texts, truncation=True)["input_ids"]
    assert found["ids"] == ids
    logits = torch.from_numpy(load_engine(str(published[quantize])).logits(ids, 32))
    scores, labels = logits.softmax(dim=-1).max(dim=-1)
    assert [one["label"] for one in found["answers"]] == [["negative", "positive"][label] for label in labels]
    tolerance = 1e-4 if quantize is None else 0.02
    assert [one["score"] for one in found["answers"]] == pytest.approx(scores.tolist(), abs=tolerance)
