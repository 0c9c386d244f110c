# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""§5.3: the learning rate of the paper, which transformers' `inverse_sqrt` schedule computes."""

from ..errors import DataError


def noam_peak(d_model: float, warmup_steps: float, factor: float = 1.0) -> float:
    """§5.3, Eq. 3: the peak learning rate of the schedule that the Annotated Transformer calls Noam.

    The schedule, factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), is transformers' `inverse_sqrt`
    with this value as its learning rate.

    Returns:
        The learning rate of update `warmup_steps`; `factor` is 2 in the Annotated Transformer's table of models.

    Raises:
        ValueError: an argument is not above 0.
    """
    if not min(d_model, warmup_steps, factor) > 0:
        raise DataError(f"d_model {d_model}, warmup_steps {warmup_steps} and factor {factor} must be above 0")
    return factor * d_model**-0.5 * warmup_steps**-0.5
