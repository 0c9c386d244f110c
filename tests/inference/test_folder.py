"""Models and tokenizers from folders: what is refused, and by which line."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from shared import tiny_config

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.inference import load_engine
from hf_vanilla_transformer.inference.folder import (
    load_to_train,
    load_tokenizer_to_train,
)
from hf_vanilla_transformer.tokenizer import train_tokenizer


def test_a_tokenizer_without_a_token_that_is_needed_is_refused(tmp_path):
    tokenizer = train_tokenizer(["가나다"], vocab_size=29)
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="the tokenizer has no mask_token"):
        load_tokenizer_to_train(str(tmp_path), None, ["pad_token", "mask_token"], 8)
    assert load_tokenizer_to_train(str(tmp_path), None, ["pad_token"], 8).model_max_length == 8


def test_only_heads_may_be_missing(tmp_path):
    translator = VanillaTransformerForConditionalGeneration(tiny_config(norm_first=True)).half()
    translator.save_pretrained(tmp_path)
    model = load_to_train(VanillaTransformerForSequenceClassification, str(tmp_path), translator.config)
    assert model.dtype == torch.float32
    assert torch.equal(
        model.model.decoder.layers[0].feed_forward.fc1.weight,
        translator.model.decoder.layers[0].feed_forward.fc1.weight.float(),
    )
    weights = load_file(tmp_path / "model.safetensors")
    incomplete = {name: weight for name, weight in weights.items() if ".encoder.layers.1." not in name}
    save_file(incomplete, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks model\.encoder\.layers\.1\.feed_forward\.fc1\.bias, .*v_proj"):
        load_to_train(VanillaTransformerForConditionalGeneration, str(tmp_path), translator.config)
    save_file(
        {**weights, "model.encoder.layers.0.feed_forward.fc1.bias": torch.zeros(3)},
        tmp_path / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(ValueError, match="lacks model.encoder.layers.0.feed_forward.fc1.bias$"):
        load_to_train(
            VanillaTransformerForSequenceClassification, str(tmp_path), translator.config, ignore_mismatched_sizes=True
        )


def test_weights_that_hold_code_are_one_line(tmp_path):
    """Which is not run."""
    model = VanillaTransformerForSequenceClassification(tiny_config())
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()

    class Code:
        def __reduce__(self):
            return (tmp_path / "was_here").touch, ()

    torch.save(Code(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=f"^{tmp_path}: no model can be read here .a file of torch that holds code.$"):
        load_engine(str(tmp_path))
    assert not (tmp_path / "was_here").exists()
