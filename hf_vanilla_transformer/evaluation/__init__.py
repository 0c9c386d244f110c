# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Metrics, and `evaluate`, which measures a model on a split."""
