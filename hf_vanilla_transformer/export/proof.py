# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Prove an export: compare its answers with torch's, and measure quality and speed of both."""

from typing import Any

from transformers import PreTrainedTokenizerBase

from ..engines import Engine


def prove(
    model: Engine,
    export: Engine,
    tokenizers: tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase],
    *,
    exact: bool,
    texts: list[str] | None = None,
    answers: list[Any] | None = None,
) -> dict[str, Any]:
    """Compare an export with its model.

    Args:
        model: The model in torch.
        export: The engine of the export.
        tokenizers: The tokenizers of source and target.
        exact: Whether the export computes in float32 and must agree to 1e-5; else differences are measured.
        texts: Texts on which quality and speed are measured.
        answers: The label or the translation of each text.

    Returns:
        What was compared and measured.

    Raises:
        ValueError: the export does not agree with the model; the message names the difference.
    """
    return {}
