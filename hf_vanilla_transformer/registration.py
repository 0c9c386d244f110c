# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The public names; importing this registers the classes with transformers' Auto classes."""

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTextEncoding,
)

from .configuration_vanilla_transformer import VanillaTransformerConfig
from .conversion import convert_checkpoint as convert_checkpoint
from .conversion import to_source_state_dict as to_source_state_dict
from .modeling_vanilla_transformer import (
    VanillaTransformerEncoderModel,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)
from .modeling_vanilla_transformer import VanillaTransformerPreTrainedModel as VanillaTransformerPreTrainedModel


AutoConfig.register(VanillaTransformerConfig.model_type, VanillaTransformerConfig)
VanillaTransformerConfig.register_for_auto_class()
for auto_class, model_class in (
    (AutoModel, VanillaTransformerModel),
    (AutoModelForSeq2SeqLM, VanillaTransformerForConditionalGeneration),
    (AutoModelForSequenceClassification, VanillaTransformerForSequenceClassification),
    (AutoModelForTextEncoding, VanillaTransformerEncoderModel),
):
    auto_class.register(VanillaTransformerConfig, model_class)
    model_class.register_for_auto_class(auto_class.__name__)
