"""Saving and loading: bit for bit, by the Auto classes, on the meta device; other libraries; vocabularies."""

import importlib
from pathlib import Path

import huggingface_hub
import pytest
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from accelerate import Accelerator, dispatch_model, load_checkpoint_in_model
from huggingface_hub.errors import StrictDataclassError
from safetensors import safe_open
from shared import read_json, tiny_config
from test_conversion import AUTO_CLASSES
from torch import nn
from transformers import AutoModel, AutoModelForSeq2SeqLM, AutoModelForTextEncoding
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerEncoderModel,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.configuration_vanilla_transformer import INIT_SCHEMES
from hf_vanilla_transformer.inference import registration
from hf_vanilla_transformer.modeling_vanilla_transformer import sinusoid_table


IDS = torch.tensor([[7, 8, 9, 10]])


def outputs(model) -> torch.Tensor:
    out = model.eval()(input_ids=IDS, decoder_input_ids=IDS)
    return out.last_hidden_state if "last_hidden_state" in out else out.logits


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("tie", [False, True])
def test_tied_embeddings_are_one_tensor_and_saved_once(share, tie, tmp_path):
    config = tiny_config(share_encoder_decoder_embeddings=share, tie_word_embeddings=tie)
    model = VanillaTransformerForConditionalGeneration(config)
    model.config.tie_word_embeddings = False  # as peft does when it merges an adapter, and leaves the matrices tied
    model.save_pretrained(tmp_path)
    model = VanillaTransformerForConditionalGeneration.from_pretrained(tmp_path)
    source, target = model.model.encoder.embed_tokens.weight, model.model.decoder.embed_tokens.weight
    assert (source is target) == share
    assert (model.lm_head.weight is target) == tie
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        saved = {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"}
        assert len(saved & set(file.keys())) == 3 - share - tie


@pytest.mark.parametrize("model_class", [*AUTO_CLASSES, VanillaTransformerEncoderModel])
def test_the_encoder_loads_from_every_checkpoint(model_class, tmp_path):
    model = model_class(tiny_config(share_encoder_decoder_embeddings=True)).eval()
    model.save_pretrained(tmp_path)
    encoder, info = AutoModelForTextEncoding.from_pretrained(tmp_path, output_loading_info=True)
    assert type(encoder) is VanillaTransformerEncoderModel
    assert not (info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"])
    expected = model.base_model.encoder(input_ids=IDS).last_hidden_state
    assert torch.equal(encoder(input_ids=IDS).last_hidden_state, expected)
    for other in AUTO_CLASSES:  # another class's head is expected
        assert not other.from_pretrained(tmp_path, output_loading_info=True)[1]["unexpected_keys"]


def test_an_encoders_vocabulary_can_grow(tmp_path):
    VanillaTransformerModel(tiny_config(share_encoder_decoder_embeddings=True)).save_pretrained(tmp_path)
    encoder = AutoModelForTextEncoding.from_pretrained(tmp_path)
    assert encoder.resize_token_embeddings(33).num_embeddings == encoder.config.vocab_size == 33
    encoder.set_input_embeddings(torch.nn.Embedding(3, encoder.config.d_model))
    assert encoder(input_ids=torch.tensor([[2]])).last_hidden_state.shape == (1, 1, 16)


def test_each_module_can_be_offloaded_by_itself(config, tmp_path):
    """accelerate's hooks are on `forward`, so a layer must call the forward of every module that has weights."""
    model = VanillaTransformerModel(config).eval()
    expected = outputs(model)
    device_map = {
        name: "disk" if name.endswith("_norm") else "cpu"
        for name, module in model.named_modules()
        if not list(module.children())
    }
    dispatch_model(model, device_map, main_device="cpu", offload_dir=tmp_path, force_hooks=True)
    residual = model.decoder.layers[0].encoder_attn_residual
    assert all(parameter.is_meta for parameter in residual.parameters())
    assert torch.equal(outputs(model), expected)


@pytest.mark.parametrize(
    ("dtype", "device_map"), [(torch.float32, None), (torch.bfloat16, None), (torch.float16, "cpu")]
)
def test_the_sinusoid_is_right_after_loading(dtype, device_map, tmp_path):
    model = VanillaTransformerModel(tiny_config())
    assert torch.equal(model.to(dtype).encoder.embed_positions.weight, sinusoid_table(17, 16).to(dtype))
    model.float().save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        assert not any("embed_positions" in name for name in file.keys())  # noqa: SIM118 - a file, not a dict
    model = AutoModel.from_pretrained(tmp_path, dtype=dtype, device_map=device_map)
    for stack in (model.encoder, model.decoder):
        assert torch.equal(stack.embed_positions.weight, sinusoid_table(17, 16).to(dtype))


@pytest.mark.parametrize("assign", [False, True])
def test_a_model_of_the_meta_device_takes_a_state_dict(config, assign):
    model = VanillaTransformerForConditionalGeneration(config)
    with torch.device("meta"):
        other = VanillaTransformerForConditionalGeneration(config)
    if not assign:
        other.to_empty(device="cpu")
    other.load_state_dict(model.state_dict(), assign=assign)
    other.tie_weights()
    assert torch.equal(outputs(other), outputs(model))
    assert len(list(other.parameters())) == len(list(model.parameters()))  # tied weights stay tied


def test_each_module_of_the_meta_device_resets_itself(config):
    """FSDP calls `reset_parameters` of each module that has weights or a table."""
    with torch.device("meta"):
        model = VanillaTransformerModel(config)
    model.to_empty(device="cpu")
    for module in model.modules():
        if [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            module.reset_parameters()
    assert outputs(model).isfinite().all()
    if config.position_embedding_type == "sinusoidal":
        expected = VanillaTransformerModel(config).encoder.embed_positions.weight
        assert torch.equal(model.encoder.embed_positions.weight, expected)


@pytest.mark.parametrize("init_scheme", INIT_SCHEMES)
def test_initialisation_schemes(init_scheme):
    model = VanillaTransformerForConditionalGeneration(
        VanillaTransformerConfig(vocab_size=2000, encoder_layers=1, decoder_layers=1, init_scheme=init_scheme)
    )
    embedding, linear = model.model.encoder.embed_tokens.weight, model.model.encoder.layers[0].feed_forward.fc1
    glorot = (6 / (256 + 1024)) ** 0.5
    deviation, bound, bias_bound = {  # a uniform distribution's deviation is its bound / sqrt(3)
        "torch": (1.0, 256**-0.5, 256**-0.5),
        "xavier_uniform": ((2 / 2256) ** 0.5, glorot, 256**-0.5),
        "tensor2tensor": (256**-0.5, glorot, 0.0),
    }[init_scheme]
    assert embedding.std().item() == pytest.approx(deviation, rel=0.01)
    assert linear.weight.abs().max().item() == pytest.approx(bound, rel=0.01)
    assert linear.bias.abs().max().item() == pytest.approx(bias_bound, rel=0.02)


@pytest.mark.parametrize(
    "variant",
    [
        {"tie_word_embeddings": True},
        {"share_encoder_decoder_embeddings": True, "decoder_vocab_size": 29},
        {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True},
    ],
)
@pytest.mark.parametrize("size", [40, 20])
def test_one_vocabulary_is_resized_on_both_sides(variant, size, tmp_path):
    model = VanillaTransformerForConditionalGeneration(tiny_config(scale_embedding=True, **variant))
    before = outputs(model)
    model.resize_token_embeddings(size, mean_resizing=False)
    assert model.config.vocab_size == model.config.target_vocab_size == size
    for embedding in (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens):
        assert embedding.num_embeddings == len(embedding.weight) == size
    torch.testing.assert_close(outputs(model)[..., :20], before[..., :20])
    assert model(input_ids=IDS, labels=IDS).loss.isfinite()
    assert model.generate(IDS, max_new_tokens=3, do_sample=False).shape[1] <= 4
    model.save_pretrained(tmp_path)
    assert torch.equal(outputs(AutoModelForSeq2SeqLM.from_pretrained(tmp_path)), outputs(model))
    model.resize_token_embeddings(3)
    with pytest.raises(StrictDataclassError, match="`eos_token_id` must be in the vocabulary of 3 tokens"):
        model.save_pretrained(tmp_path)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_new_input_embeddings_are_scaled(share, scale, tmp_path):
    model = VanillaTransformerModel(tiny_config(share_encoder_decoder_embeddings=share, scale_embedding=scale))
    expected = outputs(model)
    new = torch.nn.Embedding(29, model.config.d_model)
    new.weight.data.copy_(model.get_input_embeddings().weight)
    model.set_input_embeddings(new)
    assert model.get_input_embeddings() is model.encoder.embed_tokens is new
    assert (model.decoder.embed_tokens is new) == share
    assert torch.equal(outputs(model), expected)
    model.resize_token_embeddings(29)
    model.save_pretrained(tmp_path)
    assert torch.equal(outputs(AutoModel.from_pretrained(tmp_path)), expected)
    target = torch.nn.Embedding.from_pretrained(model.decoder.embed_tokens.weight.detach().clone())
    model.decoder.set_input_embeddings(target)
    assert model.decoder.get_input_embeddings() is target
    assert torch.equal(outputs(model), expected)


@pytest.mark.parametrize("tie", [False, True])
def test_of_two_vocabularies_the_sources_is_resized(tie, tmp_path):
    model = VanillaTransformerForConditionalGeneration(tiny_config(decoder_vocab_size=31, tie_word_embeddings=tie))
    model.resize_token_embeddings(50)
    assert len(model.model.encoder.embed_tokens.weight) == model.config.vocab_size == 50
    assert len(model.model.decoder.embed_tokens.weight) == model.lm_head.out_features == 31
    assert (model.lm_head.weight is model.model.decoder.embed_tokens.weight) == tie
    assert (model.config.vocab_size, model.config.decoder_vocab_size) == (50, 31)
    model.save_pretrained(tmp_path)
    assert torch.equal(outputs(AutoModelForSeq2SeqLM.from_pretrained(tmp_path)), outputs(model))


def test_a_folder_knows_its_code_and_a_subclass_keeps_its_own(tmp_path):
    config = tiny_config()
    config.auto_map = {"AutoModel": "mine.Mine", "AutoModelForSeq2SeqLM": "someone/else--theirs.Theirs"}
    config.save_pretrained(tmp_path)
    module = "modeling_vanilla_transformer"
    assert read_json(tmp_path / "config.json")["auto_map"] == {
        "AutoConfig": "configuration_vanilla_transformer.VanillaTransformerConfig",
        "AutoModel": "mine.Mine",
        "AutoModelForSeq2SeqLM": f"{module}.VanillaTransformerForConditionalGeneration",
        "AutoModelForSequenceClassification": f"{module}.VanillaTransformerForSequenceClassification",
        "AutoModelForTextEncoding": f"{module}.VanillaTransformerEncoderModel",
    }


def test_a_clash_of_model_types_is_not_hidden(monkeypatch):
    """As if transformers itself had this model type."""
    monkeypatch.setitem(CONFIG_MAPPING._mapping, "vanilla_transformer", "BartConfig")
    with pytest.raises(ValueError, match="vanilla_transformer"):
        importlib.reload(registration)


TIED = {
    "untied": {},
    "shared and tied": {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True},
    "two vocabularies, tied": {"decoder_vocab_size": 31, "tie_word_embeddings": True},
}


def accelerate_state(model: nn.Module, other: nn.Module, folder: Path) -> None:
    accelerator = Accelerator(cpu=True)
    prepared = accelerator.prepare(model)
    accelerator.save_state(folder)
    with torch.no_grad():
        for weight in prepared.parameters():
            weight.zero_()
    accelerator.load_state(folder)
    other.load_state_dict(prepared.state_dict())


def accelerate_model(model: nn.Module, other: nn.Module, folder: Path) -> None:
    Accelerator(cpu=True).save_model(model, folder)
    load_checkpoint_in_model(other, folder)


def safetensors_model(model: nn.Module, other: nn.Module, folder: Path) -> None:
    safetensors.torch.save_model(model, str(folder / "model.safetensors"))
    assert safetensors.torch.load_model(other, folder / "model.safetensors") == (set(), [])


def hub(model: nn.Module, other: nn.Module, folder: Path) -> None:
    huggingface_hub.save_torch_model(model, folder)
    huggingface_hub.load_torch_model(other, folder)


def of_transformers(model: nn.Module, other: nn.Module, folder: Path) -> None:
    """The file of `save_pretrained`, read by the others."""
    model.save_pretrained(folder)
    safetensors.torch.load_model(other, folder / "model.safetensors")


def distributed(model: nn.Module, other: nn.Module, folder: Path) -> None:
    dcp.save(model.state_dict(), checkpoint_id=folder)
    state = other.state_dict()
    dcp.load(state, checkpoint_id=folder)
    other.load_state_dict(state)


@pytest.mark.parametrize(
    "way", [accelerate_state, accelerate_model, safetensors_model, hub, of_transformers, distributed]
)
@pytest.mark.parametrize("fields", TIED.values(), ids=TIED)
def test_weights_come_back_and_stay_tied(fields, way, tmp_path):
    model, other, new = (VanillaTransformerForConditionalGeneration(tiny_config(**fields)).eval() for _ in range(3))
    expected = {name: weight.clone() for name, weight in model.state_dict().items()}
    way(model, other, tmp_path)
    torch.testing.assert_close(dict(other.state_dict()), expected, rtol=0, atol=0)
    assert len(list(other.parameters())) == len(list(new.parameters()))


@pytest.mark.parametrize("fields", TIED.values(), ids=TIED)
def test_missing_weights_are_reported(fields):
    model = VanillaTransformerForConditionalGeneration(tiny_config(**fields))
    state = model.state_dict()
    missing = ["lm_head.weight", "model.decoder.embed_tokens.weight"]
    for name in missing:
        del state[name]
    assert set(model.load_state_dict(state, strict=False).missing_keys) == set(missing)
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict(state)
