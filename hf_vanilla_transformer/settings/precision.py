# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The precision to compute in: what this machine is faster in, measured, not assumed.

bfloat16 doubles the speed of CPUs that have it in hardware, and divides that of others by a dozen.
"""

import functools

import torch
from torch.utils.benchmark import Timer
from transformers.utils import is_torch_bf16_gpu_available


@functools.cache
def bfloat16_speedup() -> float:
    """Measure, once, the speed of a matrix product in bfloat16 relative to float32, on one core of this CPU."""
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        # It computes on one thread: threads that wait for one another are slow on a busy machine.
        timer = Timer("torch.mm(matrix, matrix)", globals={"matrix": torch.ones(256, 256, dtype=dtype)})
        seconds[dtype] = min(timer.timeit(1).median for _ in range(3))
    return seconds[torch.float32] / seconds[torch.bfloat16]


def choose_precision(precision: str, use_cpu: bool = False) -> str:
    """Resolve "auto": bfloat16 on an accelerator that has it; on a CPU, or with `use_cpu`, the faster of the two."""
    if precision != "auto":
        return precision
    if torch.accelerator.is_available() and not use_cpu:
        return "bfloat16" if is_torch_bf16_gpu_available() else "float32"
    return "bfloat16" if bfloat16_speedup() > 1 else "float32"
