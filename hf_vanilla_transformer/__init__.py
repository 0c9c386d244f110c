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

_MODULES = {
    "Classifier": "inference",
    "DataError": "errors",
    "Run": "training.run",
    "Translator": "inference",
    "VanillaTransformerConfig": "registration",
    "VanillaTransformerEncoderModel": "registration",
    "VanillaTransformerForConditionalGeneration": "registration",
    "VanillaTransformerForSequenceClassification": "registration",
    "VanillaTransformerModel": "registration",
    "VanillaTransformerPreTrainedModel": "registration",
    "convert_checkpoint": "conversion",
    "evaluate": "evaluation.evaluate",
    "export": "exports",
    "load_source_state_dict": "conversion",
    "pretrain": "training.pretraining",
    "to_source_state_dict": "conversion",
    "train_classifier": "training.classifier",
    "train_translator": "training.translator",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    except ImportError as error:
        from .errors import missing_extra

        if message := missing_extra(error):
            raise ImportError(message) from error
        raise


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from .conversion import convert_checkpoint as convert_checkpoint
    from .conversion import load_source_state_dict as load_source_state_dict
    from .conversion import to_source_state_dict as to_source_state_dict
    from .errors import DataError as DataError
    from .evaluation.evaluate import evaluate as evaluate
    from .exports import export as export
    from .inference import Classifier as Classifier
    from .inference import Translator as Translator
    from .registration import *  # noqa: F403
    from .registration import VanillaTransformerConfig as VanillaTransformerConfig
    from .training.classifier import train_classifier as train_classifier
    from .training.pretraining import pretrain as pretrain
    from .training.run import Run as Run
    from .training.translator import train_translator as train_translator
