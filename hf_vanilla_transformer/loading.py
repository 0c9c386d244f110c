# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Documented names of `inference.folder`."""

from .inference.folder import (
    DROPOUT_FIELDS,
    EXPORT_FILE,
    TARGET_TOKENIZER,
    Model,
    check_exists,
    labels_of,
    load_config,
    load_model,
    load_target_tokenizer,
    load_to_train,
    load_tokenizer,
    load_tokenizer_to_train,
)


__all__ = ["DROPOUT_FIELDS", "EXPORT_FILE", "TARGET_TOKENIZER", "Model", "check_exists", "labels_of", "load_config"]
__all__ += ["load_model", "load_target_tokenizer", "load_to_train", "load_tokenizer", "load_tokenizer_to_train"]
