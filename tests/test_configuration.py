import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.configuration_vanilla_transformer import PRESETS


# Wrong values of single fields: each check once.
WRONG = {
    **dict.fromkeys(["head_dim", "max_position_embeddings", "decoder_max_position_embeddings"], [0]),
    **dict.fromkeys(["encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim"], [0, 1.5]),
    **dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], [0, 3]),
    **{"vocab_size": [0, None], "decoder_vocab_size": [-1], "d_model": ["256", True]},
    "activation_function": ["gleu"],
    "dropout": [1.1],
    "attention_dropout": [-0.1],
    "activation_dropout": [float("nan")],
    "embedding_dropout": ["0.1"],
    "norm_first": ["yes"],
    "layer_norm_type": ["rms"],
    "layer_norm_eps": [0.0, -1e-5],
    "position_embedding_type": ["rotary"],
    "position_offset": [-1],
    "init_scheme": ["zeros"],
    "problem_type": ["x"],
    "eos_token_id": ["3", []],
    "bos_token_id": [-1],
    "is_encoder_decoder": [False],
}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        *((name, {name: value}) for name, values in WRONG.items() for value in values),
        ("layer_norm_type", {"layer_norm_type": "unbiased_std", "d_model": 1, "encoder_attention_heads": 1}),
        ("share_encoder_decoder_embeddings", {"share_encoder_decoder_embeddings": True, "decoder_vocab_size": 9}),
        # Outside the vocabulary.
        ("eos_token_id", {"eos_token_id": [3, 100], "vocab_size": 100}),
        ("pad_token_id", {"pad_token_id": 50, "vocab_size": 99, "decoder_vocab_size": 50}),
        ("decoder_start_token_id", {"decoder_start_token_id": 7, "decoder_vocab_size": 6}),
        ("id2label.* 7", {"id2label": {0: "a", 7: "b"}}),
    ],
)
def test_a_contradictory_config_is_refused_by_the_name_of_its_field(name, fields):
    with pytest.raises((StrictDataclassError, ValueError), match=name):
        VanillaTransformerConfig(**fields)


def test_the_decoder_side_sees_its_own_sizes():
    config = VanillaTransformerConfig(decoder_max_position_embeddings=9, decoder_layers=2, decoder_attention_heads=8)
    config.vocab_size = 60  # of both sides, unless there are two vocabularies
    assert config.target_vocab_size == config.get_text_config(decoder=True).vocab_size == 60
    config.decoder_vocab_size = 70
    decoder = config.get_text_config(decoder=True)
    assert (decoder.vocab_size, decoder.max_position_embeddings) == (70, 9)
    assert (decoder.num_hidden_layers, decoder.num_attention_heads) == (2, 8)
    encoder = config.get_text_config(encoder=True)
    assert (encoder.vocab_size, encoder.max_position_embeddings) == (60, 256)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_the_way_through_json(name, tmp_path):
    config = VanillaTransformerConfig.from_preset(name, dropout=0.25)
    config.save_pretrained(tmp_path)

    assert config.dropout == 0.25
    assert AutoConfig.from_pretrained(tmp_path).to_json_string() == config.to_json_string()


def test_the_published_sizes():
    def parameters(name):
        with torch.device("meta"):
            model = VanillaTransformerForConditionalGeneration(VanillaTransformerConfig.from_preset(name))
        return model.num_parameters()

    assert parameters("pytorch-seq2seq") == 9_038_341  # printed by the tutorial
    assert parameters("base") == pytest.approx(65e6, rel=0.03)  # Table 3
    assert parameters("big") == pytest.approx(213e6, rel=0.03)


def test_the_tutorials_preset_is_the_default():
    for name in ("transformer-evolution", "transformer-evolution-half"):
        assert VanillaTransformerConfig.from_preset(name).to_dict() == VanillaTransformerConfig().to_dict()


def test_an_unknown_preset_or_field_is_refused_by_name():
    with pytest.raises(ValueError, match="no preset 'bert'; there are transformer-evolution, .*big"):
        VanillaTransformerConfig.from_preset("bert")
    for name, suggested in (
        ("layers", "encoder_layers"),
        ("n_heads", "encoder_attention_heads"),
        ("dropuot", "dropout"),
    ):
        with pytest.raises(ValueError, match=f"no such field: {name}; did you mean {suggested}"):
            VanillaTransformerConfig.from_preset("base", **{name: 3})


def test_a_misspelt_field_is_warned_of_and_a_saved_one_is_not(tmp_path, caplog):
    of_transformers = {"attn_implementation": "eager", "torch_dtype": "float32", "name_or_path": "here"}
    config = VanillaTransformerConfig(dropuot=0.5, hidden_size=64, num_beams=2, num_labels=3, **of_transformers)
    (message,) = caplog.messages
    assert "'dropuot'" in message and "did you mean dropout?" in message
    caplog.clear()
    config.save_pretrained(tmp_path)  # as a version with other fields has written it
    AutoConfig.from_pretrained(tmp_path)
    VanillaTransformerConfig.from_dict(config.to_dict())
    assert not caplog.messages


def test_labels_are_numbered_at_once(tmp_path):
    """Keys are text in JSON; wrong ones fail where they are set, not when a trained model is saved."""
    labels = {"1": "good", "0": "bad", "2": "so-so"}
    config = VanillaTransformerConfig(id2label=labels)
    assert config.id2label == {0: "bad", 1: "good", 2: "so-so"} and config.num_labels == 3
    VanillaTransformerConfig().save_pretrained(tmp_path)
    assert AutoConfig.from_pretrained(tmp_path, id2label=labels).id2label == config.id2label
    for wrong in ({"1": "good", "2": "bad"}, {"good": "0"}, {0: "bad", "0": "good"}, {-1: "bad", 0: "good"}, ["bad"]):
        with pytest.raises(ValueError, match="id2label"):
            config.id2label = wrong
