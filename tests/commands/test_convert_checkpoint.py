"""`vanilla-transformer convert-checkpoint`: both ways, and refusals."""

import json

import pytest
import torch
from test_conversion import (
    AUTO_CLASSES,
    FILES,
    assert_identical,
    checkpoint,
    convert,
    model_inputs,
    read,
)

from hf_vanilla_transformer.conversion import load_source_state_dict


@pytest.mark.parametrize(
    ("file", "suffix"), [("transformer-evolution-classification", ".pt"), ("pytorch-seq2seq", ".safetensors")]
)
def test_a_checkpoint_goes_both_ways(succeed, file, suffix, tmp_path):
    state_dict, (source, fields, model_class) = checkpoint(file), FILES[file]
    torch.save({"model_state_dict": state_dict}, tmp_path / "there.pt")
    told = ["--source", source, "--checkpoint", tmp_path / "there.pt", "--config", json.dumps(fields)]
    out = succeed("convert-checkpoint", *told, "--output_dir", tmp_path / "here")
    assert model_class.__name__ in out
    loaded = AUTO_CLASSES[model_class].from_pretrained(tmp_path / "here")
    inputs = model_inputs(read(file), loaded.config.pad_token_id)
    assert torch.equal(loaded(**inputs).logits, convert(file)(**inputs).logits)

    back = tmp_path / f"back{suffix}"
    out = succeed("convert-checkpoint", "--source", source, "--checkpoint", back, "--model", tmp_path / "here")
    assert f"{len(state_dict)} tensors" in out
    assert_identical(load_source_state_dict(str(back)), state_dict)
