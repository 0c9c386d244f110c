# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""§5.3: the learning rate of the paper, which transformers' `inverse_sqrt` schedule computes."""


def noam_peak(d_model: float, warmup_steps: float, factor: float = 1.0) -> float:
    """§5.3, Eq. 3: return the peak learning rate, that of update `warmup_steps`, of the tutorials' schedule "Noam".

    The schedule, factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), is transformers' `inverse_sqrt`
    with this value as its learning rate; `factor` is 2 in the Annotated Transformer's table of models.
    """
    return factor * d_model**-0.5 * warmup_steps**-0.5
