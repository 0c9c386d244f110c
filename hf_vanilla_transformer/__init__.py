# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The vanilla Transformer (Vaswani et al. 2017) as a Hugging Face model.

Importing the package registers its classes with transformers' Auto classes, and has their code saved beside every
model, so that a saved folder also loads without the package (`trust_remote_code=True`).
"""

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTextEncoding,
)

from .configuration_vanilla_transformer import VanillaTransformerConfig
from .conversion import convert_checkpoint, to_source_state_dict
from .modeling_vanilla_transformer import (
    VanillaTransformerEncoderModel,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
    VanillaTransformerPreTrainedModel,
)


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

__version__ = "0.1.0"

__all__ = [
    "VanillaTransformerConfig",
    "VanillaTransformerEncoderModel",
    "VanillaTransformerForConditionalGeneration",
    "VanillaTransformerForSequenceClassification",
    "VanillaTransformerModel",
    "VanillaTransformerPreTrainedModel",
    "convert_checkpoint",
    "to_source_state_dict",
]
