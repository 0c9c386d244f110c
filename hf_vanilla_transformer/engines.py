# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Documented names of `inference.engine`."""

from .inference.engine import Engine, load_engine


__all__ = ["Engine", "load_engine"]
