"""CTranslate2 computes what torch computes: every preset and variant, and what it cannot express is refused."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import LINES, ROOT, VARIANTS, run_without_the_package, tiny_config

from exports.models import CONFIGS, HEADS, program_of, random_model, save
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.exports import export
from hf_vanilla_transformer.inference import Classifier, Translator, load_engine
from hf_vanilla_transformer.inference.folder import load_model
from hf_vanilla_transformer.inference.torch_engine import TorchEngine


ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")

from hf_vanilla_transformer.exports import ctranslate2_writer  # noqa: E402


def exported(model, tmp_path, quantize=None):
    """The engine of a model's export, and its comparison with torch."""
    folders = {"model": save(model, tmp_path / "model"), "output_dir": str(tmp_path / "export")}
    record = export(**folders, format="ctranslate2", quantize=quantize)
    return load_engine(str(tmp_path / "export")), record["comparison"]["random_texts"]


# The encoder and decoder are the same for both tasks.
CASES = [*((name, "translation") for name in CONFIGS), *((f"variant {name}", "classification") for name in VARIANTS)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), CASES)
def test_every_preset_and_variant_computes_the_same(name, task, tmp_path):
    model = random_model(CONFIGS[name](), task)
    engine, compared = exported(model, tmp_path)
    assert compared["greatest_difference"] < 1e-5
    # Not by the comparison's own code: single texts, in another order than by length.
    torch_engine, texts = TorchEngine(model), [[5, 6, 7, 8, 9], [4], [9, 4, 8, 1, 2, 3, 7]]
    if task == "classification":
        assert compared["same_label"] == "26 of 26"
        np.testing.assert_allclose(engine.logits(texts, 2), torch_engine.logits(texts, 1), atol=1e-5)
    else:
        model.generation_config.early_stopping = True
        for beams, limit in ((1, None), (1, 3), (4, None), (4, 3)):
            assert engine.translate(texts, 2, beams, limit) == torch_engine.translate(texts, 1, beams, limit)


def test_torch_keeps_its_threads(tmp_path):
    exported(random_model(CONFIGS["preset base"]()), tmp_path)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        for _ in range(2):
            assert load_engine(str(tmp_path / "export"), num_threads=3).translator.num_translators == 3
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("task", HEADS)
def test_int8_is_near(task, tmp_path):
    """Weights of seven bits, rounded by at most 1/128 of the greatest: without VNNI, too."""
    _, compared = exported(random_model(CONFIGS["variant two-vocabularies"](), task), tmp_path, "int8")
    assert 1e-4 < compared["mean_difference"] < 0.1
    int8, float32 = (tmp_path / name for name in ("export/model.bin", "model/model.safetensors"))
    assert int8.stat().st_size < 0.5 * float32.stat().st_size


@torch.no_grad()
def test_products_of_int8_weights_fit_in_sixteen_bits():
    """Two of them, with inputs up to 255, as processors without VNNI add them."""
    spec = ctranslate2_writer.stack_spec(random_model(CONFIGS["preset base"]()).model.encoder)
    ctranslate2_writer.quantize_weights(spec)
    weights = [value for name, value in spec.variables().items() if name.endswith("/weight")]
    assert {weight.dtype for weight in weights} == {torch.int8}
    assert 2 * 255 * max(weight.int().abs().max() for weight in weights) < 2**15


@pytest.mark.parametrize("activation", ["gelu_new", "silu"])
def test_activations(activation, tmp_path):
    model = random_model(tiny_config(activation_function=activation), "classification")
    _, compared = exported(model, tmp_path)
    assert compared["greatest_difference"] < 1e-5


@pytest.mark.parametrize("fields", [{"activation_function": "mish"}, {"eos_token_id": None}])
def test_what_cannot_be_expressed_is_refused_by_its_field(fields, refuse_export):
    refuse_export(random_model(tiny_config(**fields)), f"^{next(iter(fields))}: ")


@pytest.mark.parametrize(
    "setting",
    [
        *({"no_repeat_ngram_size": 2}, {"encoder_repetition_penalty": 1.3}, {"begin_suppress_tokens": [5]}),
        *({"exponential_decay_length_penalty": (2, 1.5)}, {"stop_strings": ["가"]}, {"min_new_tokens": 3}),
    ],
)
def test_another_search_is_refused(setting, refuse_export):
    model = random_model(tiny_config())
    model.generation_config.update(**setting)
    refuse_export(model, f"^generation_config.{next(iter(setting))}: ")


@pytest.mark.parametrize(
    "setting",
    [
        {"eos_token_id": [3, 10, 18]},
        {"max_new_tokens": 6, "max_length": 5},
        {"max_new_tokens": 300},
        {"decoder_start_token_id": 7, "eos_token_id": [21, 10], "max_new_tokens": 9},
        {"num_beams": 3, "length_penalty": 0.0, "early_stopping": True, "eos_token_id": 15, "max_length": 8},
        {"num_beams": 5, "length_penalty": 3.0, "early_stopping": True, "eos_token_id": 10},
        {"repetition_penalty": 1.0, "min_length": 0, "temperature": 0.7, "top_k": 5, "do_sample": True},
    ],
)
def test_generation_is_set_by_the_folders_generation_config(setting, tmp_path):
    """In torch, in the export, in the program of its card, as in transformers' own `generate`."""
    model = random_model(tiny_config())
    model.lm_head.weight.data *= 3  # translations of many lengths
    model.lm_head.bias.data[7:13] += 2
    model.generation_config.update(**setting)
    engine, _ = exported(model, tmp_path)
    in_torch = TorchEngine.load(str(tmp_path / "model"))
    rows = [[5], [8, 9, 4], [6] * 12, [20, 10]]
    model.generation_config.do_sample = False
    if setting.get("max_new_tokens") == 300:
        model.generation_config.max_new_tokens = 15
    expected = [in_torch.until_end(model.generate(torch.tensor([row]))[0, 1:].tolist()) for row in rows]
    beams = in_torch.facts.num_beams
    assert in_torch.translate(rows, 2, beams) == engine.translate(rows, 2, beams) == [[row] for row in expected]
    assert in_torch.facts == engine.facts
    scores = [one.log_probabilities(rows, expected) for one in (engine, in_torch)]
    np.testing.assert_allclose(*map(np.concatenate, scores), atol=1e-5)
    limit = in_torch.facts.max_new_tokens
    assert min(map(len, expected)) < limit or "eos_token_id" not in setting


def test_the_start_token_alone_is_a_text_and_nothing_a_translation(tmp_path):
    """CTranslate2 has other ideas of both."""
    model = random_model(CONFIGS["preset base"]())
    engine, _ = exported(model, tmp_path)
    texts = [[model.config.decoder_start_token_id]]
    expected = TorchEngine(model).translate(texts, 1)
    assert engine.translate(texts, 1) == expected and expected != [[[]]]
    model.lm_head.bias.data[model.config.eos_token_id] += 99
    engine, _ = exported(model, tmp_path / "silent")
    assert engine.translate([[5, 6, 7]], 1) == [[[]]]


PUBLISHED = str(ROOT / "model_cards" / "nsmc-small")
# Texts that a tokenizer leaves nothing of.
WITHOUT_TOKENS = ["\u200b", "\u200e\u200f", "\x01", "\ufeff"]


@pytest.mark.parametrize("quantize", [None, "int8"])
def test_a_text_without_a_token_is_answered_as_in_torch(quantize, tmp_path):
    folder = tmp_path / "model"
    model = random_model(CONFIGS["variant learned"](), "classification")
    model.save_pretrained(folder)
    train_tokenizer(LINES, vocab_size=29, max_length=16).save_pretrained(folder)
    export(str(folder), output_dir=str(tmp_path / "export"), format="ctranslate2", quantize=quantize)
    expected = Classifier(str(folder)).probabilities(WITHOUT_TOKENS[:1])
    found = Classifier(str(tmp_path / "export")).probabilities(["가 나 다", *WITHOUT_TOKENS, "라 마"])
    np.testing.assert_allclose(found[1:-1], np.repeat(expected, len(WITHOUT_TOKENS), axis=0), atol=1e-6)
    assert np.isfinite(found).all()


@given(texts=st.lists(st.text(max_size=8), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_engines_agree_on_any_text(published, texts):
    texts = [text for text in texts if text.strip() and not re.search("[\ud800-\udfff]", text)]
    expected, found = (one.probabilities(texts) for one in published)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The published classifier and its export."""
    folder = str(tmp_path_factory.mktemp("published") / "export")
    export(PUBLISHED, output_dir=folder, format="ctranslate2")
    return Classifier(PUBLISHED), Classifier(folder)


def test_a_damaged_export_is_named(tmp_path):
    exported(random_model(tiny_config()), tmp_path)
    (tmp_path / "export" / "model.bin").write_bytes(b"\x06\x00")
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / 'export'))}: "):
        load_engine(str(tmp_path / "export"))


@pytest.mark.slow
@pytest.mark.parametrize("text", ["가 나 다", "\u200b"])
def test_the_cards_program_classifies_with_ctranslate2_and_tokenizers_alone(text, tmp_path):
    exported(random_model(CONFIGS["preset base"](), "classification"), tmp_path)
    program = re.sub(r'encode\(".*"\)', f'encode("{text}")', program_of(tmp_path / "export"))
    assert "transformers" not in program and "torch" not in program
    label, probability = run_without_the_package(program, home=tmp_path / "export").split()
    (answer,) = Classifier(str(tmp_path / "export"))(text)
    assert label == answer["label"] and float(probability) == pytest.approx(answer["score"], abs=1e-5)


@pytest.mark.slow
def test_the_cards_program_translates(tmp_path):
    exported(random_model(CONFIGS["variant two-vocabularies"]()), tmp_path)
    program = program_of(tmp_path / "export")
    (text,) = re.findall(r'encode\("(.*)"\)', program)
    (translation,) = Translator(str(tmp_path / "export"))([text])
    assert run_without_the_package(program, home=tmp_path / "export").strip() == translation.strip()


def test_a_model_in_half_precision_is_exported_in_float32(tmp_path):
    model = random_model(tiny_config()).half()
    engine, _ = exported(model, tmp_path)
    texts = [[5, 6, 7]]
    whole = TorchEngine(load_model(str(tmp_path / "model"), dtype="float32").eval())
    np.testing.assert_allclose(*(one.log_probabilities(texts, [[8]])[0] for one in (engine, whole)), atol=1e-5)
