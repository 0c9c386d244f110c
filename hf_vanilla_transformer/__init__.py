# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The vanilla Transformer (Vaswani et al. 2017) as a Hugging Face model.

`train_classifier`, `train_translator`, `pretrain`, `evaluate` and `export` do what the commands of these names do.
`Classifier` and `Translator` answer texts with a model, or with an export of it.

The names are imported at their first use. A model's class registers all of them with transformers' Auto classes; saved
folders then contain their code, and load without the package (`trust_remote_code=True`). To register and nothing else,
`import hf_vanilla_transformer.inference.registration`.
"""

from .data.imports import lazy_names


__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
