# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Errors in the user's data."""


class DataError(ValueError):
    """A problem in the user's data; the message names the file, and the line where there is one."""
