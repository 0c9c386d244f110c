# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Weights in int8 with which no processor overflows.

Without VNNI, an x86 processor multiplies bytes with VPMADDUBSW: unsigned inputs times signed weights, and the sum of
two products in 16 bits, which saturates. Weights of seven bits keep it exact: 2 * 255 * 64 < 2**15. See oneDNN,
"Nuances of int8 computations".
"""

import torch


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
