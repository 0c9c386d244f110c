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

from export.models import distinct, program_of, random_model, save
from hf_vanilla_transformer.data import load_labelled_text
from hf_vanilla_transformer.engines import load_engine
from hf_vanilla_transformer.export import export, proof
from hf_vanilla_transformer.inference.pytorch import TorchEngine
from hf_vanilla_transformer.loading import load_tokenizer


for package in ("onnx", "onnxscript"):
    pytest.importorskip(package, reason="the extra [onnx] is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")

from onnx import TensorProto, load, numpy_helper  # noqa: E402

from hf_vanilla_transformer.export import graphs, onnx  # noqa: E402


# Batches of ids: one text of one token, pads on the right, on the left, in the middle, a row without a token.
MASKS = [[[1]], [[1, 1, 1, 0], [1, 1, 1, 1]], [[0, 0, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]], [[1] * 16]]


def run(file: Path, **inputs) -> list[torch.Tensor]:
    feed = {name: value.numpy() for name, value in inputs.items()}
    return [torch.from_numpy(output) for output in onnxruntime.InferenceSession(str(file)).run(None, feed)]


def batches(config):
    for rows in MASKS:
        mask = torch.tensor(rows)
        yield torch.randint(4, config.vocab_size, mask.shape), mask


CONFIGS = distinct()


def shallow(name: str):
    """A configuration with one layer on each side, which is traced sooner; two in one of them."""
    config = CONFIGS[name]()
    if name != "variant default":
        config.encoder_layers = config.decoder_layers = 1
    return config


def near(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def check_classifier(model, file: Path, attentions: bool):
    onnx.save_classifier(model, file, attentions=attentions, half_weights=attentions)
    for ids, mask in batches(model.config):
        with torch.no_grad():
            expected = model(ids, attention_mask=mask)
        logits, *maps = run(file, input_ids=ids, attention_mask=mask)
        near(logits, expected.logits)
        if attentions:
            model.set_attn_implementation("eager")
            with torch.no_grad():
                expected = model(ids, attention_mask=mask, output_attentions=True)
            model.set_attn_implementation("sdpa")
            near(maps[0], torch.stack(expected.encoder_attentions, dim=1))
            near(maps[1], torch.stack(expected.cross_attentions, dim=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_every_classifier_computes_the_same(name, tmp_path):
    check_classifier(random_model(shallow(name), "classification"), tmp_path / "model.onnx", attentions=False)


@pytest.mark.slow
def test_a_classifier_s_maps(tmp_path):
    model = random_model(tiny_config(encoder_layers=2, decoder_layers=1), "classification")
    check_classifier(model, tmp_path / "model.onnx", attentions=True)
    assert model.config._attn_implementation == "sdpa"
    assert str(ROOT).encode() not in (tmp_path / "model.onnx").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_every_translator_computes_the_same(name, tmp_path):
    model = random_model(shallow(name))
    record = export(save(model, tmp_path / "model"), str(tmp_path / "export"), "onnx")
    proof = record["proof"]["random_texts"]
    assert proof["greatest_difference"] < 1e-5
    files = tmp_path / "export" / "onnx"
    config = model.config
    past = graphs.past_names(config)
    nothing = config.decoder_attention_heads, 0, config.head_dim or config.d_model // config.decoder_attention_heads
    for ids, mask in batches(config):
        targets = torch.randint(4, config.target_vocab_size, (len(ids), 5))
        with torch.no_grad():
            expected = model(ids, attention_mask=mask, decoder_input_ids=targets)
        (states,) = run(files / "encoder_model.onnx", input_ids=ids, attention_mask=mask)
        near(states, expected.encoder_last_hidden_state)
        feed = {"encoder_hidden_states": states, "encoder_attention_mask": mask}
        feed |= {name: torch.empty(len(ids), *nothing) for name in past}
        logits = []
        for part in targets.split([2, 1, 2], dim=1):
            part, *present = run(files / "decoder_model_merged.onnx", input_ids=part, **feed)
            feed |= dict(zip(past, present, strict=True))
            logits.append(part)
        near(torch.cat(logits, dim=1), expected.logits)


@pytest.mark.slow
def test_a_decoder_s_maps(tmp_path):
    model = random_model(tiny_config(decoder_layers=2, encoder_layers=1, decoder_attention_heads=2))
    graphs.save_decoder(model, tmp_path / "decoder.onnx")
    model.set_attn_implementation("eager")
    for ids, mask in batches(model.config):
        targets = torch.randint(4, model.config.target_vocab_size, (len(ids), 3))
        with torch.no_grad():
            expected = model(ids, attention_mask=mask, decoder_input_ids=targets, output_attentions=True)
        logits, maps = run(
            tmp_path / "decoder.onnx",
            input_ids=targets,
            encoder_hidden_states=expected.encoder_last_hidden_state,
            encoder_attention_mask=mask,
        )
        near(logits, expected.logits)
        near(maps, torch.stack(expected.cross_attentions, dim=1))


@pytest.mark.slow
def test_weights_in_half_give_the_same_outputs(tmp_path):
    """Weights that float16 does not hold exactly stay as they are."""
    model = random_model(tiny_config(encoder_layers=1, decoder_layers=1, vocab_size=400), "classification")
    model.half().float()
    model.classifier.weight.data += 1e-6
    for half in (False, True):
        onnx.save_classifier(model, tmp_path / f"{half}.onnx", half_weights=half)
    whole, halved = (tmp_path / f"{half}.onnx" for half in (False, True))
    assert halved.stat().st_size < 0.7 * whole.stat().st_size
    for ids, mask in batches(model.config):
        (one,), (other,) = (run(file, input_ids=ids, attention_mask=mask) for file in (whole, halved))
        assert one.equal(other)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory) -> Path:
    """A tiny classifier and its export."""
    folder = tmp_path_factory.mktemp("classifier")
    model = random_model(tiny_config(encoder_layers=1, decoder_layers=1), "classification")
    export(save(model, folder / "model"), str(folder / "export"), "onnx")
    return folder


@pytest.fixture(scope="module")
def int8(classifier) -> Path:
    """Its export in int8."""
    export(str(classifier / "model"), str(classifier / "int8"), "onnx", "int8")
    return classifier / "int8"


@pytest.fixture(scope="module")
def translator(tmp_path_factory) -> Path:
    """The export of a tiny translator with two vocabularies and two end tokens."""
    folder = tmp_path_factory.mktemp("translator")
    config = tiny_config(encoder_layers=1, decoder_layers=1, decoder_vocab_size=31, eos_token_id=[3, 7])
    model = random_model(config)
    model.lm_head.bias.data[7] += 2
    export(save(model, folder / "model"), str(folder / "export"), "onnx")
    return folder


@pytest.mark.slow
def test_the_folder_has_what_other_libraries_look_for(classifier, translator):
    names = {path.name for path in (classifier / "export").iterdir()}
    assert names == {"README.md", "config.json", "export.json", "onnx", "tokenizer.json", "tokenizer_config.json"}
    assert [path.name for path in (classifier / "export" / "onnx").iterdir()] == ["model.onnx"]
    config = json.loads((classifier / "export" / "config.json").read_text())
    assert (config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"]) == (16, 1, 4)
    assert config["id2label"] == {"0": "LABEL_0", "1": "LABEL_1"} and "auto_map" not in config
    assert config["model_type"] == "vanilla_transformer"
    assert config["architectures"] == ["VanillaTransformerForSequenceClassification"]
    names = {path.name for path in (translator / "export" / "onnx").iterdir()}
    assert names == {"encoder_model.onnx", "decoder_model_merged.onnx"}
    assert (translator / "export" / "generation_config.json").is_file()


@pytest.mark.slow
def test_int8_is_near_and_small(classifier, int8):
    record = json.loads((int8 / "export.json").read_text())
    assert record["proof"]["random_texts"]["mean_difference"] > 1e-5
    assert [path.name for path in (int8 / "onnx").iterdir()] == ["model_quantized.onnx"]
    tensors = load(int8 / "onnx" / "model_quantized.onnx").graph.initializer
    weights = [numpy_helper.to_array(tensor) for tensor in tensors if tensor.data_type == TensorProto.INT8]
    # As in `test_products_of_int8_weights_fit_in_sixteen_bits`.
    assert 2 * 255 * max(np.abs(weight.astype(int)).max() for weight in weights) < 2**15
    config = json.loads((int8 / "config.json").read_text())
    assert config["transformers.js_config"] == {"dtype": "q8"}
    engine, torch_engine = load_engine(str(int8)), load_engine(str(classifier / "model"))
    engines = torch_engine, engine, TorchEngine(onnx.rounded(torch_engine.model))
    proof.compare("logits", *(one.logits([[5, 6, 7], [8], []], 2) for one in engines))


@pytest.mark.slow
def test_a_translator_is_for_other_programs(translator):
    with pytest.raises(ValueError, match="export: a translator in the format onnx is for other programs; here trans"):
        load_engine(str(translator / "export"))


@pytest.mark.slow
def test_a_translator_s_graphs_are_compared_with_torch(tmp_path, monkeypatch):
    """The decoder with keys and values of before, too."""
    model = random_model(tiny_config(encoder_layers=1, decoder_layers=1))
    right = onnx.save_decoder_with_past

    def wrong(model, file):
        weight = model.model.decoder.layers[0].self_attn.k_proj.weight.data
        weight *= 1.01
        right(model, file)
        weight /= 1.01

    monkeypatch.setattr(onnx, "save_decoder_with_past", wrong)
    with pytest.raises(ValueError, match="^the export does not agree with torch: log-probabilities differ by up to"):
        export(save(model, tmp_path / "model"), str(tmp_path / "export"), "onnx")
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize("fields", [{"decoder_start_token_id": None}, {"eos_token_id": None}])
def test_what_the_engine_needs_is_named(fields, tmp_path):
    model = random_model(tiny_config())
    model.config.update(fields)
    with pytest.raises(ValueError, match=f"^{next(iter(fields))}: "):
        export(save(model, tmp_path / "model"), str(tmp_path / "export"), "onnx")
    assert not (tmp_path / "export").exists()


@pytest.mark.slow
def test_a_damaged_file_is_named(classifier, tmp_path):
    shutil.copytree(classifier / "export", tmp_path / "export")
    (tmp_path / "export" / "onnx" / "model.onnx").write_bytes(b"broken")
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / 'export'))}: onnx/model.onnx: "):
        load_engine(str(tmp_path / "export"))
    (tmp_path / "export" / "onnx" / "model.onnx").unlink()
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / 'export'))}: onnx/model.onnx: "):
        load_engine(str(tmp_path / "export"))


@pytest.mark.slow
def test_a_missing_extra_is_named_with_its_command(classifier, tmp_path, monkeypatch):
    message = r" is not installed: pip install 'hf-vanilla-transformer\[onnx\]'$"
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=f"^onnxruntime{message}"):
        load_engine(str(classifier / "export"))
    for module in ("onnx", "graphs"):
        monkeypatch.delitem(sys.modules, f"hf_vanilla_transformer.export.{module}")
    monkeypatch.setitem(sys.modules, "onnx_ir", None)
    with pytest.raises(ImportError, match=f"^onnxscript{message}"):
        export(str(classifier / "model"), str(tmp_path / "export"), "onnx")
    assert not (tmp_path / "export").exists()


WITHOUT_TORCH = """\
import sys
for module in ("torch", "transformers"):
    sys.modules[module] = None  # an import fails
"""


@pytest.mark.slow
def test_readme_s_programs_run_without_torch(classifier, int8, translator):
    for folder in (classifier / "export", int8, translator / "export"):
        printed = run_without_the_package(WITHOUT_TORCH + program_of(folder), home=folder)
        assert "LABEL_" in printed or folder == translator / "export"


@pytest.mark.slow
def test_published_classifier(tmp_path):
    folder = str(ROOT / "model_cards" / "nsmc-small")
    record = export(folder, str(tmp_path / "export"), "onnx")
    assert record["proof"]["random_texts"]["greatest_difference"] < 1e-5
    export(folder, str(tmp_path / "int8"), "onnx", "int8")
    data = load_labelled_text("sample")
    texts, labels = data["test"]["text"][:], np.array(data["test"]["label"])
    ids = load_tokenizer(folder)(texts, truncation=True)["input_ids"]
    found, expected = (load_engine(str(one)).logits(ids, 32) for one in (tmp_path / "int8", folder))
    right = [(logits.argmax(axis=-1) == labels).mean() for logits in (found, expected)]
    assert abs(right[0] - right[1]) <= 0.01
    printed = run_without_the_package(WITHOUT_TORCH + program_of(tmp_path / "export"), home=tmp_path / "export")
    assert printed.startswith("positive 0.99")


@pytest.mark.slow
def test_published_translator(tmp_path):
    folder = str(ROOT / "model_cards" / "multi30k-de-en")
    record = export(folder, str(tmp_path / "export"), "onnx")
    assert record["proof"]["random_texts"]["greatest_difference"] < 1e-5
    printed = run_without_the_package(WITHOUT_TORCH + program_of(tmp_path / "export"), home=tmp_path / "export")
    assert printed == "Two dogs play in the snow.\n"


TRANSFORMERS_JS = os.environ.get("TRANSFORMERS_JS_DIR", "")
needs_node = pytest.mark.skipif(
    not TRANSFORMERS_JS or shutil.which("node") is None,
    reason="TRANSFORMERS_JS_DIR names no folder with node_modules/@huggingface/transformers, or there is no node",
)
IN_NODE = """\
import { readFileSync } from "node:fs";
import { AutoConfig, AutoTokenizer, env, pipeline } from "@huggingface/transformers";

env.allowRemoteModels = false;
const [folder, task] = process.argv.slice(2);
const texts = JSON.parse(readFileSync(0, "utf-8"));
const config = await AutoConfig.from_pretrained(folder);
config.model_type = "bert";
const run = await pipeline(task, folder, { config });
const tokenizer = await AutoTokenizer.from_pretrained(folder);
const ids = texts.map((text) => tokenizer(text, { truncation: true, return_tensor: false }).input_ids);
console.log("ANSWER" + JSON.stringify({ ids, answers: await run(texts) }));
"""


def in_node(program: str, home: Path, *arguments, texts: list[str] = ()) -> str:
    """Run a program of transformers.js in a folder; returns what it prints."""
    if not (home / "node_modules").exists():  # node looks for packages from the program's folder upwards
        (home / "node_modules").symlink_to(Path(TRANSFORMERS_JS, "node_modules").resolve())
    (home / "program.mjs").write_text(program, encoding="utf-8")
    command = ["node", "program.mjs", *arguments]
    result = subprocess.run(command, cwd=home, input=json.dumps(texts), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "int8"])
def test_classifier_in_node(quantize, tmp_path):
    folder = str(ROOT / "model_cards" / "nsmc-small")
    export(folder, str(tmp_path / "export"), "onnx", quantize)
    texts = load_labelled_text("sample")["test"]["text"][:200]
    printed = in_node(IN_NODE, tmp_path / "export", ".", "text-classification", texts=texts)
    found = json.loads(printed.split("ANSWER")[1])
    ids = load_tokenizer(folder)(texts, truncation=True)["input_ids"]
    assert found["ids"] == ids
    logits = torch.from_numpy(load_engine(str(tmp_path / "export")).logits(ids, 32))
    scores, labels = logits.softmax(dim=-1).max(dim=-1)
    assert [one["label"] for one in found["answers"]] == [["negative", "positive"][label] for label in labels]
    tolerance = 1e-4 if quantize is None else 0.02
    assert [one["score"] for one in found["answers"]] == pytest.approx(scores.tolist(), abs=tolerance)
    assert "label: 'positive'" in in_node(program_of(tmp_path / "export", "js"), tmp_path / "export")


@needs_node
@pytest.mark.slow
def test_translator_in_node(tmp_path):
    export(str(ROOT / "model_cards" / "multi30k-de-en"), str(tmp_path / "export"), "onnx")
    printed = in_node(program_of(tmp_path / "export", "js"), tmp_path / "export")
    assert "translation_text: 'Two dogs play in the snow.'" in printed
