"""transformers' tests of models and configurations, on ours and, in the same harness, on BART.

A test that fails on both is transformers' own fault, or this harness's.
"""

import unittest

import pytest
from transformers import BartConfig, BartForConditionalGeneration, BartForSequenceClassification, BartModel
from transformers.models.auto import modeling_auto
from transformers_tests.generation.test_utils import GenerationTesterMixin
from transformers_tests.test_configuration_common import ConfigTester
from transformers_tests.test_modeling_common import ModelTesterMixin, ids_tensor

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.inference.registration import MODELS


@pytest.fixture(autouse=True)
def known_by_name(monkeypatch):
    """The tables by which these tests tell a classifier from a translator, which `register` does not fill in."""
    for table, model_class in (
        ("MODEL_MAPPING_NAMES", VanillaTransformerModel),
        ("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES", VanillaTransformerForSequenceClassification),
        ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", VanillaTransformerForConditionalGeneration),
    ):
        monkeypatch.setitem(getattr(modeling_auto, table), VanillaTransformerConfig.model_type, model_class.__name__)


class Sizes:
    """What transformers' tests ask for: sizes, a small configuration, inputs."""

    batch_size, seq_length, vocab_size = 13, 7, 99
    hidden_size, num_hidden_layers, num_attention_heads = 16, 2, 4
    is_training = True

    def __init__(self, config_class: type, **fields):
        self.config_class, self.fields = config_class, fields

    def get_config(self):
        sizes = {
            **{"vocab_size": self.vocab_size, "d_model": self.hidden_size, "max_position_embeddings": 50},
            **{f"{stack}_layers": self.num_hidden_layers for stack in ("encoder", "decoder")},
            **{f"{stack}_attention_heads": self.num_attention_heads for stack in ("encoder", "decoder")},
            **{f"{stack}_ffn_dim": 32 for stack in ("encoder", "decoder")},
            **{"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2},
        }
        return self.config_class(**sizes, **self.fields)

    def prepare_config_and_inputs_for_common(self):
        inputs = {}
        for prefix in ("", "decoder_"):
            ids = ids_tensor([self.batch_size, self.seq_length], self.vocab_size).clamp(3)
            ids[:, -1] = 2  # BART's classifier reads this token
            inputs |= {f"{prefix}input_ids": ids, f"{prefix}attention_mask": ids.ne(1).long()}
        return self.get_config(), inputs


class Contract(ModelTesterMixin, GenerationTesterMixin):
    """An encoder-decoder."""

    config_class: type = VanillaTransformerConfig
    all_model_classes = (VanillaTransformerModel, *(model for name, model in MODELS.items() if "For" in name))
    fields: dict = {}
    is_encoder_decoder = True
    has_attentions = True

    def setUp(self):
        self.model_tester = Sizes(self.config_class, **self.fields)

    def test_config(self):
        ConfigTester(self, config_class=self.config_class).run_common_tests()

    def test_inputs_embeds_matches_input_ids(self):
        if not self.model_tester.get_config().share_encoder_decoder_embeddings:
            self.skipTest("feeds vectors of the encoder's embedding to the decoder, which has its own")
        super().test_inputs_embeds_matches_input_ids()


class TestBart(Contract, unittest.TestCase):
    config_class = BartConfig
    all_model_classes = (BartModel, BartForConditionalGeneration, BartForSequenceClassification)
    test_inputs_embeds_matches_input_ids = ModelTesterMixin.test_inputs_embeds_matches_input_ids

    def test_inputs_embeds(self):
        self.skipTest("BART's classifier takes no vectors in place of ids")


class TestPostNorm(Contract, unittest.TestCase):
    pass


class TestPreNorm(Contract, unittest.TestCase):
    fields = {"norm_first": True, "final_norm": True, "scale_embedding": True}


class TestTied(Contract, unittest.TestCase):
    fields = {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True}
