"""Native twins: transformers' own classes compute the same, and the way back gives the same tensors."""

import json
from pathlib import Path

import pytest
import torch
from shared import ROOT, run_without_the_package, tiny_config
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from exports.models import program_of, random_model, save
from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.exports import export, restore
from hf_vanilla_transformer.inference import load_engine
from hf_vanilla_transformer.inference.torch_engine import TorchEngine


PRE_NORM = {"norm_first": True, "final_norm": True}
SINUSOID = {"position_embedding_type": "sinusoidal", "position_offset": 0}
SCALED = {"scale_embedding": True}
SHORTER = {"decoder_max_position_embeddings": 12}
ODD = {"d_model": 15, "encoder_attention_heads": 3, "decoder_attention_heads": 5}
ONE_MATRIX = {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True}
# Each twin, with every variant that it has; a name begins with the twin's class.
CLASSES = {
    "pegasus": "PegasusForConditionalGeneration",
    "blenderbot": "BlenderbotForConditionalGeneration",
    "marian": "MarianMTModel",
}
TWINS = {
    "pegasus": {**PRE_NORM, **SINUSOID, **ONE_MATRIX, **SCALED, "activation_function": "relu"},
    "pegasus, three matrices, no attention bias": {**PRE_NORM, **SINUSOID, **SHORTER, "attention_bias": False},
    "pegasus, shared, an odd number of features": PRE_NORM
    | SINUSOID
    | ODD
    | {"share_encoder_decoder_embeddings": True},
    "pegasus, tied": {**PRE_NORM, **SINUSOID, "tie_word_embeddings": True},
    "blenderbot, sinusoid from 1": PRE_NORM | SCALED,
    "blenderbot, learned": {**PRE_NORM, **ONE_MATRIX, "position_embedding_type": "learned"} | SHORTER,
    "blenderbot, no positions": {**PRE_NORM, "position_embedding_type": "none"},
    "marian": SINUSOID | ONE_MATRIX | SCALED,
    "marian, two vocabularies": {**SINUSOID, "decoder_vocab_size": 31, "decoder_layers": 1, "decoder_ffn_dim": 24},
    "marian, two vocabularies, tied": {**SINUSOID, "decoder_vocab_size": 31, "tie_word_embeddings": True},
    "marian, shared": {**SINUSOID, "share_encoder_decoder_embeddings": True},
    "marian, tied": {**SINUSOID, "tie_word_embeddings": True},
}


# A padded batch, and the beginnings of its translations.
BATCH = {
    "input_ids": torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
}
TARGETS = torch.tensor([[2, 5, 6, 7, 8], [2, 9, 9, 5, 4]])


def twin_config(name):
    return tiny_config(**{"layer_norm_eps": 1e-5, **TWINS[name]})


def export_twin(model, folder: Path):
    """Export a model from the subfolder `model` to the subfolder `twin`; returns the twin."""
    export(save(model, folder / "model"), output_dir=str(folder / "twin"), format="transformers")
    return AutoModelForSeq2SeqLM.from_pretrained(folder / "twin")


def lead_back(folder: Path):
    """The model that the subfolder `twin` leads back to, in the subfolder `back`."""
    restore(str(folder / "twin"), str(folder / "back"))
    return VanillaTransformerForConditionalGeneration.from_pretrained(folder / "back", dtype="float32")


def assert_near(*models):
    """Two models compute the same logits."""
    with torch.no_grad():
        found, expected = (model.eval()(**BATCH, decoder_input_ids=TARGETS).logits for model in models)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def assert_equal(*models):
    """Two models have the same tensors, to the last bit."""
    found, expected = (model.state_dict() for model in models)
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_a_twin_computes_the_same_and_leads_back(name, tmp_path):
    model = random_model(twin_config(name))
    twin = export_twin(model, tmp_path)
    assert type(twin).__name__ == CLASSES[name.split(",")[0]] and type(twin).__module__.startswith("transformers.")
    # Not by the comparison's own code: whole logits of a padded batch, and what `generate` does by itself.
    assert_near(twin, model)
    limit = {"max_length": model.config.max_target_positions}
    for beams in (1, 4):
        expected = model.generate(**BATCH, num_beams=beams, **limit)
        assert torch.equal(twin.generate(**BATCH, num_beams=beams, **limit), expected)

    back = lead_back(tmp_path)
    configs = [config.to_dict() | {"_name_or_path": ""} for config in (model.config, back.config)]
    assert configs[0] == configs[1]
    assert_equal(back, model)
    tokenizer, again = (AutoTokenizer.from_pretrained(tmp_path / name) for name in ("model", "back"))
    assert tokenizer.get_vocab() == again.get_vocab()


@pytest.mark.parametrize(
    "fields, field",
    [
        ({"layer_norm_type": "unbiased_std"}, "layer_norm_type"),
        ({"layer_norm_eps": 1e-6}, "layer_norm_eps"),
        ({"head_dim": 5}, "head_dim"),
        ({"norm_first": False}, "final_norm"),
        ({"final_norm": False}, "final_norm"),
        ({"decoder_vocab_size": 31}, "decoder_vocab_size"),
        ({"norm_first": False, "final_norm": False, "position_offset": 1}, "position_offset"),
        ({"norm_first": False, "final_norm": False, "position_embedding_type": "learned"}, "position_embedding_type"),
        ({"norm_first": False, "final_norm": False, "position_embedding_type": "none"}, "position_embedding_type"),
    ],
)
def test_a_model_without_a_twin_is_refused_by_its_field(fields, field, refuse_export):
    model = random_model(tiny_config(**{"layer_norm_eps": 1e-5, **PRE_NORM, **SINUSOID, **fields}))
    refuse_export(model, f"^{field}: ")


def test_the_generation_settings_are_the_model_s(tmp_path):
    model = random_model(twin_config("pegasus"))
    chosen = {"num_beams": 3, "length_penalty": 0.4, "max_length": 9}
    model.generation_config.update(**chosen)
    settings = export_twin(model, tmp_path).generation_config
    assert settings.to_dict().items() >= chosen.items() and settings.forced_eos_token_id is None
    assert lead_back(tmp_path).generation_config.to_dict().items() >= chosen.items()


@pytest.mark.parametrize("name", ["marian", "blenderbot, learned"])
def test_a_twin_that_was_trained_further_leads_back(name, tmp_path):
    """What the twin learned, the model knows."""
    twin = export_twin(random_model(twin_config(name)), tmp_path)
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            parameter.mul_(1.0 if "embed_positions" in name else 1.1)
    twin.save_pretrained(tmp_path / "twin")
    assert_near(lead_back(tmp_path), twin)


def test_positions_that_only_the_twin_can_learn_are_told(tmp_path):
    twin = export_twin(random_model(twin_config("blenderbot, sinusoid from 1")), tmp_path)
    twin.model.decoder.embed_positions.weight.data[3] += 0.1
    twin.save_pretrained(tmp_path / "twin")
    with pytest.raises(ValueError, match="model.decoder.embed_positions.weight was trained"):
        lead_back(tmp_path)


USE = """
import sys
print(model.generate(**tokenizer([sys.argv[1]], return_tensors="pt"), num_beams=2).tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pegasus", "blenderbot, learned", "marian, two vocabularies"])
def test_a_stranger_loads_a_twin_without_code_and_package(name, tmp_path):
    model, text = random_model(twin_config(name)), "가 나 다"
    export_twin(model, tmp_path)
    printed = run_without_the_package(program_of(tmp_path / "twin") + USE, text, home=tmp_path / "twin")
    source = AutoTokenizer.from_pretrained(tmp_path / "model")([text], return_tensors="pt")
    expected = model.generate(**source, num_beams=2, max_length=model.config.max_target_positions)
    assert json.loads(printed.splitlines()[-1]) == expected.tolist()


@pytest.mark.slow
def test_the_published_translator(tmp_path):
    folder = str(ROOT / "model_cards" / "multi30k-de-en")
    record = export(folder, output_dir=str(tmp_path / "twin"), format="transformers")
    compared = record["comparison"]["random_texts"]
    assert compared["longest"] == 128 and compared["greatest_difference"] < 2e-5
    printed = run_without_the_package(program_of(tmp_path / "twin"), home=tmp_path / "twin")
    assert printed == "Two dogs play in the snow.\n"
    assert_equal(
        lead_back(tmp_path), VanillaTransformerForConditionalGeneration.from_pretrained(folder, dtype="float32")
    )
    twin, model = load_engine(str(tmp_path / "twin")), load_engine(folder)
    assert isinstance(twin, TorchEngine)
    assert twin.translate([[9, 8, 7, 3]], 1, 5) == model.translate([[9, 8, 7, 3]], 1, 5)
