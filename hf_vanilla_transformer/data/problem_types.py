# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The names of the kinds of labels, as transformers has them; apart, because `predict` starts without `datasets`."""

SINGLE, MULTI, REGRESSION = "single_label_classification", "multi_label_classification", "regression"
PROBLEM_TYPES = (SINGLE, MULTI, REGRESSION)
