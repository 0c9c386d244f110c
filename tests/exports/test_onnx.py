"""onnxruntime computes what torch computes: every preset and variant, also without torch and in Node."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from shared import ROOT, run_without_the_package, tiny_config

from exports.models import CONFIGS, program_of, random_model, save
from hf_vanilla_transformer.data import load_labelled_text
from hf_vanilla_transformer.exports import export
from hf_vanilla_transformer.inference import Classifier, load_engine
from hf_vanilla_transformer.inference.folder import load_tokenizer


for package in ("onnx", "onnxscript"):
    pytest.importorskip(package, reason="the extra [onnx] is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")

from onnx import TensorProto, load, numpy_helper  # noqa: E402

from hf_vanilla_transformer.exports import graphs, onnx_writer  # noqa: E402


# Batches of ids: one text of one token, pads on the right, on the left, in the middle, a row without a token.
MASKS = [[[1]], [[1, 1, 1, 0], [1, 1, 1, 1]], [[0, 0, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]], [[1] * 16]]


def run(file: Path, **inputs) -> list[torch.Tensor]:
    feed = {name: value.numpy() for name, value in inputs.items()}
    return [torch.from_numpy(output) for output in onnxruntime.InferenceSession(str(file)).run(None, feed)]


def batches(config):
    for rows in MASKS:
        mask = torch.tensor(rows)
        yield torch.randint(4, config.vocab_size, mask.shape), mask


# Together they have every value of every field: what the other presets and variants have is in one of these.
CLASSIFIERS = ["preset transformer-evolution-full", "preset pytorch-seq2seq", "preset pytorch-transformer"]
CLASSIFIERS += ["preset pytorch-transformer-scalar-norm", "preset torch-nn-transformer", "preset base"]
# Layers and encoder are those of the classifiers: what is left is positions and vocabularies.
DECODERS = ["variant shared-and-tied", "preset pytorch-seq2seq", "variant no-positions"]


def shallow_model(names: list[str], name: str, task: str):
    """A model with one layer on each side, which is traced sooner; the first has two."""
    config = CONFIGS[name]()
    if name != names[0]:
        config.encoder_layers = config.decoder_layers = 1
    return random_model(config, task)


def near(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def forward(model, **inputs):
    """The model's outputs with attentions, which SDPA does not return."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return model(**inputs, output_attentions=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_computes_the_same(name, tmp_path):
    model = shallow_model(CLASSIFIERS, name, "classification")
    graphs.save_classifier(model, tmp_path / "model.onnx", for_page=True)
    assert model.config._attn_implementation == "sdpa"
    assert str(ROOT).encode() not in (tmp_path / "model.onnx").read_bytes()
    for ids, mask in batches(model.config):
        expected = forward(model, input_ids=ids, attention_mask=mask)
        found = run(tmp_path / "model.onnx", input_ids=ids, attention_mask=mask)
        near(found[0], expected.logits)
        near(found[1], torch.stack(expected.encoder_attentions, dim=1))
        near(found[2], torch.stack(expected.cross_attentions, dim=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_computes_the_same(name, tmp_path):
    model = shallow_model(DECODERS, name, "translation")
    graphs.save_decoder(model, tmp_path / "decoder.onnx")
    if name == DECODERS[0]:
        graphs.save_encoder(model, tmp_path / "encoder.onnx")
    for ids, mask in batches(model.config):
        targets = torch.randint(4, model.config.target_vocab_size, (len(ids), 3))
        expected = forward(model, input_ids=ids, attention_mask=mask, decoder_input_ids=targets)
        states = expected.encoder_last_hidden_state
        if name == DECODERS[0]:
            (states,) = run(tmp_path / "encoder.onnx", input_ids=ids, attention_mask=mask)
            near(states, expected.encoder_last_hidden_state)
        feed = {"input_ids": targets, "encoder_hidden_states": states, "encoder_attention_mask": mask}
        logits, maps = run(tmp_path / "decoder.onnx", **feed)
        near(logits, expected.logits)
        near(maps, torch.stack(expected.cross_attentions, dim=1))


@pytest.mark.slow
def test_weights_in_half_give_the_same_outputs(tmp_path):
    """Weights that float16 does not hold exactly stay as they are."""
    model = random_model(tiny_config(encoder_layers=1, decoder_layers=1, vocab_size=400), "classification")
    model.half().float()
    model.classifier.weight.data += 1e-6
    whole, halved = tmp_path / "whole.onnx", tmp_path / "halved.onnx"
    graphs.save_classifier(model, whole)
    graphs.save_classifier(model, halved, for_page=True)
    assert halved.stat().st_size < 0.7 * whole.stat().st_size
    for ids, mask in batches(model.config):
        one, other = (run(file, input_ids=ids, attention_mask=mask)[0] for file in (whole, halved))
        assert one.equal(other)


def export_int8(model: Path, exact: Path, folder: Path):
    """Export a model in int8, from the graph that its export in float32 has: tracing takes nearly all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_writer, "save_classifier", lambda _, file: shutil.copy(exact / "onnx" / "model.onnx", file))
        export(str(model), output_dir=str(folder), format="onnx", quantize="int8")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory) -> Path:
    """A tiny classifier and its export."""
    folder = tmp_path_factory.mktemp("classifier")
    model = random_model(tiny_config(encoder_layers=1, decoder_layers=1), "classification")
    export(save(model, folder / "model"), output_dir=str(folder / "export"), format="onnx")
    return folder


@pytest.fixture(scope="module")
def int8(classifier) -> Path:
    """Its export in int8."""
    export_int8(classifier / "model", classifier / "export", classifier / "int8")
    return classifier / "int8"


@pytest.mark.slow
def test_the_folder_has_what_other_libraries_look_for(classifier):
    names = {path.name for path in (classifier / "export").iterdir()}
    record = {"README.md", "export.json"}
    assert names == {"config.json", "onnx", "tokenizer.json", "tokenizer_config.json", *record}
    assert [path.name for path in (classifier / "export" / "onnx").iterdir()] == ["model.onnx"]
    config = json.loads((classifier / "export" / "config.json").read_text())
    assert (config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"]) == (16, 1, 4)
    assert config["id2label"] == {"0": "LABEL_0", "1": "LABEL_1"} and "auto_map" not in config
    assert config["model_type"] == "vanilla_transformer"
    assert config["architectures"] == ["VanillaTransformerForSequenceClassification"]


@pytest.mark.slow
def test_int8_is_near_and_small(classifier, int8):
    record = json.loads((int8 / "export.json").read_text())
    assert record["comparison"]["random_texts"]["mean_difference"] > 1e-5
    assert [path.name for path in (int8 / "onnx").iterdir()] == ["model_quantized.onnx"]
    tensors = load(int8 / "onnx" / "model_quantized.onnx").graph.initializer
    weights = [numpy_helper.to_array(tensor) for tensor in tensors if tensor.data_type == TensorProto.INT8]
    # As in `test_products_of_int8_weights_fit_in_sixteen_bits`.
    assert 2 * 255 * max(np.abs(weight.astype(int)).max() for weight in weights) < 2**15
    config = json.loads((int8 / "config.json").read_text())
    assert config["transformers.js_config"] == {"dtype": "q8"}
    found, expected = (load_engine(str(one)).logits([[5, 6, 7], [8], []], 2) for one in (int8, classifier / "model"))
    np.testing.assert_allclose(found, expected, atol=0.1)


@pytest.mark.slow
def test_a_damaged_file_is_named(classifier, tmp_path):
    shutil.copytree(classifier / "export", tmp_path / "export")
    file = tmp_path / "export" / "onnx" / "model.onnx"
    for damage in (lambda: file.write_bytes(b"broken"), file.unlink):
        damage()
        with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / 'export'))}: onnx/model.onnx: "):
            load_engine(str(tmp_path / "export"))


@pytest.mark.slow
def test_a_missing_extra_is_named_with_its_command(classifier, tmp_path, monkeypatch):
    message = r" is not installed: pip install 'hf-vanilla-transformer\[onnx\]'$"
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=f"^onnxruntime{message}"):
        load_engine(str(classifier / "export"))
    for module in ("onnx_writer", "graphs"):
        monkeypatch.delitem(sys.modules, f"hf_vanilla_transformer.exports.{module}")
    monkeypatch.setitem(sys.modules, "onnx_ir", None)
    with pytest.raises(ImportError, match=f"^onnxscript{message}"):
        export(str(classifier / "model"), output_dir=str(tmp_path / "export"), format="onnx")
    assert not (tmp_path / "export").exists()


WITHOUT_TORCH = """\
import sys
for module in ("torch", "transformers"):
    sys.modules[module] = None  # an import fails
"""


@pytest.mark.slow
def test_readme_s_programs_run_without_torch(classifier, int8):
    for folder in (classifier / "export", int8):
        assert "LABEL_" in run_without_the_package(WITHOUT_TORCH + program_of(folder), home=folder)


@pytest.mark.slow
def test_published_classifier(tmp_path):
    folder = str(ROOT / "model_cards" / "nsmc-small")
    record = export(folder, output_dir=str(tmp_path / "export"), format="onnx")
    assert record["comparison"]["random_texts"]["greatest_difference"] < 1e-5
    export_int8(folder, tmp_path / "export", tmp_path / "int8")
    data = load_labelled_text("sample")
    texts, labels = data["test"]["text"][:], np.array(data["test"]["label"])
    ids = load_tokenizer(folder)(texts, truncation=True)["input_ids"]
    found, expected = (load_engine(str(one)).logits(ids, 32) for one in (tmp_path / "int8", folder))
    right = [(logits.argmax(axis=-1) == labels).mean() for logits in (found, expected)]
    assert abs(right[0] - right[1]) <= 0.01
    printed = run_without_the_package(WITHOUT_TORCH + program_of(tmp_path / "export"), home=tmp_path / "export")
    assert printed.startswith("positive 0.98")
    program = re.sub(r'encode\(".*"\)', 'encode(" ")', program_of(tmp_path / "export"))
    label, probability = run_without_the_package(WITHOUT_TORCH + program, home=tmp_path / "export").split()
    (answer,) = Classifier(folder)(" ")
    assert label == answer["label"] and float(probability) == pytest.approx(answer["score"], abs=1e-5)


TRANSFORMERS_JS = os.environ.get("TRANSFORMERS_JS_DIR", "")
needs_node = pytest.mark.skipif(
    not TRANSFORMERS_JS or shutil.which("node") is None,
    reason="TRANSFORMERS_JS_DIR names no folder with node_modules/@huggingface/transformers, or there is no node",
)
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


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "int8"])
def test_classifier_in_node(quantize, tmp_path):
    folder = str(ROOT / "model_cards" / "nsmc-small")
    export(folder, output_dir=str(tmp_path / "export"), format="onnx", quantize=quantize)
    texts = load_labelled_text("sample")["test"]["text"][:200]
    printed = in_node(IN_NODE, tmp_path / "export", texts)
    found = json.loads(printed.split("ANSWER")[1])
    ids = load_tokenizer(folder)(texts, truncation=True)["input_ids"]
    assert found["ids"] == ids
    logits = torch.from_numpy(load_engine(str(tmp_path / "export")).logits(ids, 32))
    scores, labels = logits.softmax(dim=-1).max(dim=-1)
    assert [one["label"] for one in found["answers"]] == [["negative", "positive"][label] for label in labels]
    tolerance = 1e-4 if quantize is None else 0.02
    assert [one["score"] for one in found["answers"]] == pytest.approx(scores.tolist(), abs=tolerance)
    assert "label: 'positive'" in in_node(program_of(tmp_path / "export", "js"), tmp_path / "export")
