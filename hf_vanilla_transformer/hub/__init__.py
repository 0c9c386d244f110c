# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Sharing: a run's record, its model card, and its folder as a Hub repository."""

from .model_card import make_model_card, save_model_card
from .upload import repository_files, upload


__all__ = ["make_model_card", "repository_files", "save_model_card", "upload"]
