# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What computes a model's answers: torch, CTranslate2 or onnxruntime, as the model's folder says."""

from .engine import (
    EXPORT_FILE,
    Engine,
    check_kind,
    end_tokens,
    import_extra,
    load_engine,
    read_export,
)


__all__ = [
    "EXPORT_FILE",
    "Engine",
    "check_kind",
    "end_tokens",
    "import_extra",
    "load_engine",
    "read_export",
]
