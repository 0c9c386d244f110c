# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What can be set: the settings of functions and commands, recipes by name, and how both are read."""
