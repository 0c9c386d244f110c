# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Weights in int8 with which no processor overflows, and a model in torch that rounds in the same way.

Without VNNI, an x86 processor multiplies bytes with VPMADDUBSW: unsigned inputs times signed weights, and the sum of
two products in 16 bits, which saturates. Weights of seven bits keep it exact: 2 * 255 * 64 < 2**15. See oneDNN,
"Nuances of int8 computations".
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel


GREATEST_WEIGHT = 64
# Keeps the scale of zeros, such as the embedding of padding, finite.
SMALLEST = 1e-30


def quantize_rows(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantize each row of (rows, columns) with its own scale.

    Returns:
        The integers (rows, columns), int8, -64 to 64, and the scales (rows,) with which they are `matrix * scale`.
    """
    scale = GREATEST_WEIGHT / matrix.abs().amax(dim=1).clamp(min=SMALLEST)
    return (matrix * scale.unsqueeze(1)).round().to(torch.int8), scale


def round_rows(matrix: torch.Tensor) -> torch.Tensor:
    """`quantize_rows` and back: (rows, columns)."""
    integers, scale = quantize_rows(matrix)
    return integers / scale.unsqueeze(1)


def rounded(
    model: VanillaTransformerPreTrainedModel,
    round_input: Callable[[torch.Tensor], torch.Tensor],
    round_table: dict[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]],
) -> VanillaTransformerPreTrainedModel:
    """A copy of a model in float32 with the weights and inputs of its linear layers rounded as in int8.

    Sums in float32 differ in their last bits from an engine's. So an input near a half may be rounded to another
    integer there.

    Args:
        model: It stays as it is.
        round_input: Takes a linear layer's input (..., columns) and returns the values that its integers stand for.
        round_table: Does so for the `weight` (tokens or positions, features) of modules of each class.
    """
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(round_rows(module.weight.detach()))
            module.register_forward_pre_hook(lambda _, inputs: tuple(map(round_input, inputs)))
        elif (round_weight := round_table.get(type(module))) is not None:
            weight: Any = module.weight
            module.weight = nn.Parameter(round_weight(weight.detach()))
    return model
