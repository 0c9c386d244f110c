# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a model in the format of another engine, and compare it with torch."""

from .exporting import export


__all__ = ["export"]
