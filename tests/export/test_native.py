"""Native twins: transformers' own classes compute the same, and the way back gives the same tensors."""

import json

import pytest
import torch
from shared import ROOT, run_without_the_package, tiny_config
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from export.models import program_of, random_model, save
from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.engines import load_engine
from hf_vanilla_transformer.export import export, restore
from hf_vanilla_transformer.inference.pytorch import TorchEngine


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
    "pegasus": PRE_NORM | SINUSOID | ONE_MATRIX,
    "pegasus, relu, scaled": {**PRE_NORM, **SINUSOID, **ONE_MATRIX, "activation_function": "relu"} | SCALED,
    "pegasus, three matrices": PRE_NORM | SINUSOID,
    "pegasus, shared": {**PRE_NORM, **SINUSOID, "share_encoder_decoder_embeddings": True},
    "pegasus, tied": {**PRE_NORM, **SINUSOID, "tie_word_embeddings": True},
    "pegasus, an odd number of features": PRE_NORM | SINUSOID | ODD,
    "pegasus, no attention bias": {**PRE_NORM, **SINUSOID, "attention_bias": False} | SHORTER,
    "blenderbot, sinusoid from 1": PRE_NORM | SCALED,
    "blenderbot, learned": {**PRE_NORM, **ONE_MATRIX, "position_embedding_type": "learned"} | SHORTER,
    "blenderbot, no positions": {**PRE_NORM, "position_embedding_type": "none"},
    "marian": SINUSOID | ONE_MATRIX,
    "marian, scaled": SINUSOID | ONE_MATRIX | SCALED,
    "marian, two vocabularies": {**SINUSOID, "decoder_vocab_size": 31, "decoder_layers": 1, "decoder_ffn_dim": 24},
    "marian, two vocabularies, tied": {**SINUSOID, "decoder_vocab_size": 31, "tie_word_embeddings": True},
    "marian, shared": {**SINUSOID, "share_encoder_decoder_embeddings": True},
    "marian, tied": {**SINUSOID, "tie_word_embeddings": True},
}


def twin_config(name):
    return tiny_config(**{"layer_norm_eps": 1e-5, **TWINS[name]})


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_a_twin_computes_the_same_and_leads_back(name, tmp_path):
    model = random_model(twin_config(name))
    folder = save(model, tmp_path / "model")
    proof = export(folder, str(tmp_path / "twin"), "transformers")["proof"]["random_texts"]
    assert proof["greatest_difference"] < 1e-5
    twin = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "twin")
    assert type(twin).__name__ == CLASSES[name.split(",")[0]] and type(twin).__module__.startswith("transformers.")
    # Not by the proof's own code: whole logits of a padded batch, and what `generate` does by itself.
    batch = {
        "input_ids": torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
    }
    target = {"decoder_input_ids": torch.tensor([[2, 5, 6, 7, 8], [2, 9, 9, 5, 4]])}
    with torch.no_grad():
        torch.testing.assert_close(twin(**batch, **target).logits, model(**batch, **target).logits, atol=1e-5, rtol=0)
    limit = {"max_length": model.config.max_target_positions}
    for beams in (1, 4):
        expected = model.generate(**batch, num_beams=beams, **limit)
        assert torch.equal(twin.generate(**batch, num_beams=beams, **limit), expected)

    restore(str(tmp_path / "twin"), str(tmp_path / "back"))
    back = VanillaTransformerForConditionalGeneration.from_pretrained(tmp_path / "back")
    configs = [config.to_dict() | {"_name_or_path": ""} for config in (model.config, back.config)]
    assert configs[0] == configs[1]
    before, after = model.state_dict(), back.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    tokenizer, again = (AutoTokenizer.from_pretrained(path) for path in (folder, tmp_path / "back"))
    assert tokenizer.get_vocab() == again.get_vocab()


def test_a_twin_that_was_saved_again_computes_the_same(tmp_path):
    """Marian does not save its positions."""
    for name in ("marian", "blenderbot, learned"):
        model = random_model(twin_config(name))
        export(save(model, tmp_path / name / "model"), str(tmp_path / name / "twin"), "transformers")
        AutoModelForSeq2SeqLM.from_pretrained(tmp_path / name / "twin").save_pretrained(tmp_path / name / "again")
        again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / name / "again").eval()
        batch = {"input_ids": torch.tensor([[5, 6, 7]]), "decoder_input_ids": torch.tensor([[2, 5, 6]])}
        with torch.no_grad():
            torch.testing.assert_close(again(**batch).logits, model(**batch).logits, atol=1e-5, rtol=0)


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
def test_a_model_without_a_twin_is_refused_by_its_field(fields, field, tmp_path):
    model = random_model(tiny_config(**{"layer_norm_eps": 1e-5, **PRE_NORM, **SINUSOID, **fields}))
    folder = save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=f"^{field}: "):
        export(folder, str(tmp_path / "twin"), "transformers")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_the_generation_settings_are_the_model_s(tmp_path):
    model = random_model(twin_config("pegasus"))
    model.generation_config.num_beams, model.generation_config.length_penalty = 3, 0.4
    model.generation_config.max_length = 9
    export(save(model, tmp_path / "model"), str(tmp_path / "twin"), "transformers")
    settings = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "twin").generation_config
    assert (settings.num_beams, settings.length_penalty, settings.max_length) == (3, 0.4, 9)
    assert settings.forced_eos_token_id is None
    restore(str(tmp_path / "twin"), str(tmp_path / "back"))
    back = VanillaTransformerForConditionalGeneration.from_pretrained(tmp_path / "back").generation_config
    assert (back.num_beams, back.length_penalty, back.max_length) == (3, 0.4, 9)


def test_a_twin_that_was_trained_further_leads_back(tmp_path):
    """What the twin learned, the model knows."""
    export(save(random_model(twin_config("marian")), tmp_path / "model"), str(tmp_path / "twin"), "transformers")
    twin = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "twin").eval()
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            parameter.mul_(1.0 if "embed_positions" in name else 1.1)
    twin.save_pretrained(tmp_path / "twin")
    restore(str(tmp_path / "twin"), str(tmp_path / "back"))
    back = VanillaTransformerForConditionalGeneration.from_pretrained(tmp_path / "back").eval()
    batch = {"input_ids": torch.tensor([[5, 6, 7]]), "decoder_input_ids": torch.tensor([[2, 5, 6]])}
    with torch.no_grad():
        torch.testing.assert_close(back(**batch).logits, twin(**batch).logits, atol=1e-5, rtol=0)


def test_positions_that_only_the_twin_can_learn_are_told(tmp_path):
    model = random_model(twin_config("blenderbot, sinusoid from 1"))
    export(save(model, tmp_path / "model"), str(tmp_path / "twin"), "transformers")
    twin = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "twin")
    twin.model.decoder.embed_positions.weight.data[3] += 0.1
    twin.save_pretrained(tmp_path / "twin")
    with pytest.raises(ValueError, match="model.decoder.embed_positions.weight was trained"):
        restore(str(tmp_path / "twin"), str(tmp_path / "back"))


def test_only_a_twin_leads_back(tmp_path):
    folder = save(random_model(twin_config("marian")), tmp_path / "model")
    with pytest.raises(ValueError, match="no export in the format 'transformers'"):
        restore(folder, str(tmp_path / "back"))
    assert not (tmp_path / "back").exists()


USE = """
import json, sys
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForSeq2SeqLM.from_pretrained(sys.argv[1])
print(json.dumps(model.generate(**tokenizer([sys.argv[2]], return_tensors="pt"), num_beams=2).tolist()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pegasus", "blenderbot, learned", "marian, two vocabularies"])
def test_a_stranger_loads_a_twin_without_code_and_package(name, tmp_path):
    model = random_model(twin_config(name))
    folder = save(model, tmp_path / "model")
    export(folder, str(tmp_path / "twin"), "transformers")
    text = "가 나 다"
    printed = run_without_the_package(USE, tmp_path / "twin", text, home=tmp_path)
    source = AutoTokenizer.from_pretrained(folder)([text], return_tensors="pt")
    expected = model.generate(**source, num_beams=2, max_length=model.config.max_target_positions)
    assert json.loads(printed.splitlines()[-1]) == expected.tolist()
    run_without_the_package(program_of(tmp_path / "twin"), home=tmp_path / "twin")


@pytest.mark.slow
def test_the_published_translator(tmp_path):
    folder = str(ROOT / "model_cards" / "multi30k-de-en")
    proof = export(folder, str(tmp_path / "twin"), "transformers")["proof"]["random_texts"]
    assert proof["longest"] == 128 and proof["greatest_difference"] < 2e-5
    printed = run_without_the_package(program_of(tmp_path / "twin"), home=tmp_path / "twin")
    assert printed == "Two dogs play in the snow.\n"
    restore(str(tmp_path / "twin"), str(tmp_path / "back"))
    before, after = (
        VanillaTransformerForConditionalGeneration.from_pretrained(path, dtype="float32").state_dict()
        for path in (folder, tmp_path / "back")
    )
    assert all(torch.equal(before[name], after[name]) for name in before)
    twin, model = load_engine(str(tmp_path / "twin")), load_engine(folder)
    assert isinstance(twin, TorchEngine)
    assert twin.translate([[9, 8, 7, 3]], 1, 5) == model.translate([[9, 8, 7, 3]], 1, 5)
