# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The commands of `vanilla-transformer`: one module each, with a function `main(argv=None)`."""
