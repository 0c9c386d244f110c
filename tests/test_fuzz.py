"""Any configuration works or is refused by the name of its field; padding anywhere changes nothing.

Any text: tests/test_tokenizer.py.
"""

import tempfile

import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import tiny_config
from test_conversion import AUTO_CLASSES
from transformers.activations import ACT2FN

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.configuration_vanilla_transformer import (
    INIT_SCHEMES,
    LAYER_NORM_TYPES,
    POSITION_EMBEDDING_TYPES,
)


LENGTH = 4
TOKENS = 8

some_tokens = st.integers(TOKENS, TOKENS + 3)
token_ids = st.sampled_from([*range(TOKENS), -1, TOKENS, TOKENS + 3])
FIELDS = {
    "vocab_size": some_tokens,
    "decoder_vocab_size": st.none() | some_tokens,
    "d_model": st.sampled_from([1, 5, 6, 12, 18]),
    **dict.fromkeys(["encoder_layers", "decoder_layers"], st.integers(1, 2)),
    **dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], st.integers(1, 3)),
    **dict.fromkeys(["encoder_ffn_dim", "decoder_ffn_dim"], st.integers(1, 5)),
    "head_dim": st.none() | st.integers(1, 5),
    "max_position_embeddings": st.integers(LENGTH, LENGTH + 2),
    "decoder_max_position_embeddings": st.none() | st.integers(LENGTH, LENGTH + 2),
    "activation_function": st.sampled_from(sorted(ACT2FN)),
    **dict.fromkeys(["dropout", "attention_dropout", "activation_dropout", "embedding_dropout"], st.floats(0, 0.9)),
    **dict.fromkeys(["attention_bias", "norm_first", "final_norm", "scale_embedding", "use_cache"], st.booleans()),
    **dict.fromkeys(["share_encoder_decoder_embeddings", "tie_word_embeddings"], st.booleans()),
    "layer_norm_type": st.sampled_from(LAYER_NORM_TYPES),
    "layer_norm_eps": st.sampled_from([1e-12, 1e-5, 1]),
    "position_embedding_type": st.sampled_from(POSITION_EMBEDDING_TYPES),
    "position_offset": st.integers(0, 3),
    "init_scheme": st.sampled_from(INIT_SCHEMES),
    **dict.fromkeys(["pad_token_id", "bos_token_id"], st.none() | token_ids),
    "eos_token_id": st.none() | token_ids | st.lists(token_ids, min_size=1, max_size=2),
    "decoder_start_token_id": token_ids,
}
wrong = st.sampled_from([0, -1, 1.5, -0.1, float("nan"), "none such", "", None, [], True])


def test_every_field_is_drawn():
    assert set(VanillaTransformerConfig.__annotations__) - {"is_encoder_decoder"} == set(FIELDS)


def outputs(model, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    answer = model(input_ids=ids, attention_mask=mask, decoder_input_ids=ids, decoder_attention_mask=mask)
    return answer["last_hidden_state" if type(model) is VanillaTransformerModel else "logits"]


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    fields=st.fixed_dictionaries(FIELDS),
    mistake=st.none() | st.tuples(st.sampled_from(sorted(FIELDS)), wrong),
    model_class=st.sampled_from([*AUTO_CLASSES]),
    attention=st.sampled_from(["eager", "sdpa"]),
)
def test_a_configuration_works_or_is_refused_by_name(fields, mistake, model_class, attention):
    refused = FIELDS.keys()
    try:
        config = VanillaTransformerConfig(**fields)
        if mistake is not None:
            refused = {mistake[0]}  # all others are right
            config = VanillaTransformerConfig(**{**fields, mistake[0]: mistake[1]})
    except StrictDataclassError as error:
        assert any(name in str(error) for name in refused)
        return
    torch.manual_seed(0)
    model = model_class._from_config(config, attn_implementation=attention)
    ids = torch.tensor([[4, 5, 6, 7], [7, 6, 5, 4]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])

    assert outputs(model.train(), ids, mask).isfinite().all()
    # In training, dropout can make all features equal, and the gradient of a norm unbounded there.
    outputs(model.eval(), ids, mask).sum().backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients and all(gradient.isfinite().all() for gradient in gradients)

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = model_class.from_pretrained(folder, attn_implementation=attention)
    assert {name: getattr(again.config, name) for name in FIELDS} == {name: getattr(config, name) for name in FIELDS}
    assert torch.equal(outputs(again, ids, mask), outputs(model, ids, mask))


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    masks=st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=4),
    variant=st.fixed_dictionaries(
        {name: FIELDS[name] for name in ("norm_first", "final_norm", "layer_norm_type", "position_embedding_type")}
    ),
)
def test_padding_anywhere_changes_nothing(attention, masks, variant):
    """Padding on the left, on the right, in between, or alone, in source and target."""
    torch.manual_seed(0)
    config = tiny_config(max_position_embeddings=7, **variant)
    model = VanillaTransformerForSequenceClassification._from_config(config, attn_implementation=attention).eval()
    mask = torch.tensor(masks).long()
    ids = torch.randint(7, config.vocab_size, mask.shape)
    with torch.no_grad():
        both = outputs(model, ids, mask)
        source = model(input_ids=ids, attention_mask=mask).logits
    assert both.isfinite().all() and source.isfinite().all()
    for row, real in enumerate(mask.bool()):
        if not real.any():
            continue
        alone = ids[row, real].unsqueeze(0)
        with torch.no_grad():
            torch.testing.assert_close(both[row : row + 1], outputs(model, alone, torch.ones_like(alone)))
            torch.testing.assert_close(source[row : row + 1], model(input_ids=alone).logits)
