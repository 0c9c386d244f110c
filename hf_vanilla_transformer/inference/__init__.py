# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""From a folder to an answer: load a model, choose its engine, classify and translate texts."""

from .classifier import Classifier
from .engine import Engine, load_engine
from .translator import Translator


__all__ = ["Classifier", "Engine", "Translator", "load_engine"]
