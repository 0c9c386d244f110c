"""Saving and loading by other libraries, with tied weights, too."""

from pathlib import Path

import huggingface_hub
import pytest
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from accelerate import Accelerator, load_checkpoint_in_model
from shared import tiny_config
from torch import nn

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration


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
