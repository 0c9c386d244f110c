# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The classes of models; importing this registers the classes with transformers' Auto classes."""

import transformers

from .. import modeling_vanilla_transformer
from ..configuration_vanilla_transformer import AUTO_MAP, VanillaTransformerConfig
from ..modeling_vanilla_transformer import *  # noqa: F403


# The classes of models by name.
MODELS = {name: getattr(modeling_vanilla_transformer, name) for name in modeling_vanilla_transformer.__all__}

transformers.AutoConfig.register(VanillaTransformerConfig.model_type, VanillaTransformerConfig)
VanillaTransformerConfig.register_for_auto_class()
for name, place in AUTO_MAP.items():
    if name != "AutoConfig":
        model_class = MODELS[place.partition(".")[2]]
        getattr(transformers, name).register(VanillaTransformerConfig, model_class)
        model_class.register_for_auto_class(name)
