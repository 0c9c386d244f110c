"""onnxruntime computes what torch computes, also without torch."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from shared import ROOT, read_json, run_without_the_package, tiny_config

from exports.models import program_of, random_model
from hf_vanilla_transformer.data import load_labelled_text
from hf_vanilla_transformer.exports import export
from hf_vanilla_transformer.inference import Classifier, load_engine


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


# Together with the published classifier, they have every kind of norm, of positions and of activation.
@pytest.mark.parametrize(
    "fields",
    [
        {"layer_norm_type": "unbiased_std", "activation_function": "relu", "norm_first": True, "final_norm": True},
        {"layer_norm_type": "unbiased_std_scalar", "position_embedding_type": "learned", "scale_embedding": True},
    ],
)
def test_the_graph_computes_the_same(fields, tmp_path):
    config = tiny_config(**fields, encoder_layers=1, decoder_layers=1)  # traced sooner
    model = random_model(config, "classification")
    onnx_writer.save_graph(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    for mask in map(torch.tensor, MASKS):
        ids = torch.randint(4, config.vocab_size, mask.shape)
        with torch.no_grad():
            expected = model(ids, attention_mask=mask).logits.numpy()
        (found,) = session.run(["logits"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """The published classifier's export in int8; tests/test_documentation.py makes one in float32."""
    folder = tmp_path_factory.mktemp("onnx") / "export"
    export(PUBLISHED, output_dir=str(folder), format="onnx", quantize="int8")
    return folder


def test_the_folder_has_what_other_libraries_look_for(published):
    names = {path.name for path in published.iterdir()}
    assert names >= {"README.md", "config.json", "export.json", "onnx", "tokenizer.json", "tokenizer_config.json"}
    config = read_json(published / "config.json")
    assert (config["hidden_size"], config["num_hidden_layers"]) == (config["d_model"], config["encoder_layers"])
    assert config["id2label"] == {"0": "negative", "1": "positive"} and "auto_map" not in config
    assert config["transformers.js_config"] == {"dtype": "q8"}
    (file,) = (published / "onnx").iterdir()
    assert file.name == "model_quantized.onnx" and b"site-packages" not in file.read_bytes()


def test_int8_is_near_and_small(published):
    file = published / "onnx" / "model_quantized.onnx"
    assert file.stat().st_size < 1.2 * read_json(published / "export.json")["parameters"]
    tensors = load(file).graph.initializer
    weights = [numpy_helper.to_array(tensor) for tensor in tensors if tensor.data_type == TensorProto.INT8]
    # As in `test_products_of_int8_weights_fit_in_sixteen_bits`.
    assert weights and 2 * 255 * max(np.abs(weight.astype(int)).max() for weight in weights) < 2**15
    data = load_labelled_text("sample")["test"]
    answers, expected = (Classifier(folder).probabilities(data["text"][:]) for folder in (published, PUBLISHED))
    right = [(probabilities.argmax(axis=-1) == data["label"]).mean() for probabilities in (answers, expected)]
    assert abs(right[0] - right[1]) <= 0.01


def test_the_cards_program_needs_neither_torch_nor_transformers(published):
    for text in ("정말 재미있고 감동적인 영화", "\u200b"):
        program = re.sub(r'encode\(".*"\)', f'encode("{text}")', program_of(published))
        label, probability = run_without_the_package(WITHOUT_TORCH + program, home=published).split()
        (answer,) = Classifier(published)(text)
        assert label == answer["label"] and float(probability) == pytest.approx(answer["score"], abs=1e-5)


def test_a_damaged_file_is_named(published, tmp_path):
    shutil.copytree(published, tmp_path / "export")
    (tmp_path / "export" / "onnx" / "model_quantized.onnx").write_bytes(b"broken")
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / 'export'))}/onnx/model_quantized.onnx: "):
        load_engine(str(tmp_path / "export"))
