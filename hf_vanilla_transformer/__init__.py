# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The vanilla Transformer (Vaswani et al. 2017) as a Hugging Face model.

Importing the package registers its classes with transformers' Auto classes, and has their code saved beside every
model, so that a saved folder also loads without the package (`trust_remote_code=True`).
"""

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any


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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(".registration", __name__), name)


# The program `vanilla-transformer` lists its commands, and refuses what is mistyped, before it imports torch, which
# takes seconds. While `python -m` looks for a module, sys.argv[0] is "-m".
if TYPE_CHECKING or not (
    Path(sys.argv[0]).name in ("vanilla-transformer", "vanilla-transformer.exe")
    or (sys.argv[0] == "-m" and __name__ in sys.orig_argv)
):
    from .registration import (
        VanillaTransformerConfig,
        VanillaTransformerEncoderModel,
        VanillaTransformerForConditionalGeneration,
        VanillaTransformerForSequenceClassification,
        VanillaTransformerModel,
        VanillaTransformerPreTrainedModel,
        convert_checkpoint,
        to_source_state_dict,
    )
