# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a model in the format of another engine, and prove that it still computes the same."""

from .exporting import FORMATS, export, restore


__all__ = ["FORMATS", "export", "restore"]
