"""The page's training: its gradients are torch's, and it learns to copy."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration

from .node import needs_node, run_node


pytestmark = needs_node


@pytest.fixture(scope="module")
def printed() -> dict:
    return json.loads(run_node(Path(__file__).with_name("copy_task.mjs")))


def test_gradients(printed):
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = VanillaTransformerConfig.from_preset(
        "annotated-transformer", vocab_size=11, **sizes, **heads, norm_first=False, final_norm=False,
        layer_norm_type="standard", layer_norm_eps=1e-5, max_position_embeddings=11, pad_token_id=0,
    )  # fmt: skip
    model = VanillaTransformerForConditionalGeneration(config).eval()
    weights = {
        name: torch.tensor(weight["data"]).reshape(weight["shape"]) for name, weight in printed["weights"].items()
    }
    model.load_state_dict(weights)
    sequences = torch.tensor(printed["sequences"])
    shifted = torch.cat([torch.ones_like(sequences[:, :1]), sequences[:, :-1]], dim=1)
    logits = model(sequences, decoder_input_ids=shifted).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), sequences.flatten(), label_smoothing=0.1)
    loss.backward()
    assert printed["loss"] == pytest.approx(loss.item(), abs=1e-5)
    for name, parameter in model.named_parameters():
        found = np.array(printed["weights"][name]["grad"]).reshape(parameter.shape)
        np.testing.assert_allclose(found, parameter.grad, atol=1e-5, err_msg=name)


def test_it_learns_to_copy(printed):
    updates = printed["updates"]
    assert [update["update"] for update in updates] == [*range(1, 121)]
    losses = [update["loss"] for update in updates]
    assert losses[0] > 2.5 and np.mean(losses[-5:]) < 1.0
    assert updates[-1]["share"] > 0.1 and updates[9]["share"] == 0
    assert updates[-1]["written"] == updates[-1]["source"]
    # It looks at the symbol that it copies.
    assert np.mean(np.argmax(updates[-1]["attention"], axis=1) == np.arange(10)) > 0.7
