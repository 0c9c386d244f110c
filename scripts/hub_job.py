# /// script
# requires-python = ">=3.11"
# dependencies = ["hf-vanilla-transformer[train] @ git+https://github.com/OWNER/hf_vanilla_transformer"]
# ///
# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a classifier on a machine of the Hub, and upload it.

    hf jobs uv run --flavor t4-small --secrets HF_TOKEN scripts/hub_job.py USER/NAME \\
        --data USER/DATASET --text_column text

`uv` installs what the header names. Further arguments are those of `train-classifier`.
"""

import sys

from hf_vanilla_transformer.commands.push_to_hub import main as push
from hf_vanilla_transformer.commands.train_classifier import main as train


if __name__ == "__main__":
    if len(sys.argv) < 2 or "/" not in sys.argv[1]:
        sys.exit(__doc__)
    repository, *settings = sys.argv[1:]
    sys.argv = ["vanilla-transformer train-classifier", *settings]  # error messages begin with the program's name
    train(["few-rows", *settings, "--output_dir", "run"])
    push(["run", "--repo_id", repository])
