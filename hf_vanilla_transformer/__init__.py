# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The vanilla Transformer (Vaswani et al. 2017) as a Hugging Face model.

What a command does, a function does: `train_classifier`, `train_translator`, `pretrain`, `evaluate`, `export`.
`Classifier` and `Translator` answer texts with a model, or with an export of it.

The names are imported at their first use. The first of a model's classes also registers all of them with transformers'
Auto classes, and has their code saved beside every model, so that a saved folder also loads without the package
(`trust_remote_code=True`); `import hf_vanilla_transformer.inference.registration` does that alone.
"""

from .data.imports import lazy_names


__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
