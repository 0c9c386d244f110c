# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The vanilla Transformer (Vaswani et al. 2017) as a Hugging Face model.

What a command does, a function does: `train_classifier`, `train_translator`, `pretrain`, `evaluate`, `export`.
`Classifier` and `Translator` answer texts with a model, or with an export of it.

The names are imported at their first use. The first of a model's classes also registers all of them with transformers'
Auto classes, and has their code saved beside every model, so that a saved folder also loads without the package
(`trust_remote_code=True`); `import hf_vanilla_transformer.registration` does that alone.
"""

import importlib
from typing import TYPE_CHECKING, Any


__version__ = "0.1.0"

__all__ = [
    "Classifier",
    "Run",
    "Translator",
    "VanillaTransformerConfig",
    "VanillaTransformerEncoderModel",
    "VanillaTransformerForConditionalGeneration",
    "VanillaTransformerForSequenceClassification",
    "VanillaTransformerModel",
    "VanillaTransformerPreTrainedModel",
    "convert_checkpoint",
    "evaluate",
    "export",
    "pretrain",
    "to_source_state_dict",
    "train_classifier",
    "train_translator",
]
# The modules of the names that are not in `registration`.
_MODULES = {
    "Classifier": "inference",
    "Run": "training.run",
    "Translator": "inference",
    "evaluate": "evaluation",
    "export": "exports",
    "pretrain": "training.pretraining",
    "train_classifier": "training.classifier",
    "train_translator": "training.translator",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f".{_MODULES.get(name, 'registration')}", __name__), name)
    except ImportError as error:
        from .errors import missing_extra

        if message := missing_extra(error):
            raise ImportError(message) from error
        raise


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from .evaluation import evaluate
    from .exports import export
    from .inference import Classifier, Translator
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
    from .training.classifier import train_classifier
    from .training.pretraining import pretrain
    from .training.run import Run
    from .training.translator import train_translator
