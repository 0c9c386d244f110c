# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Whether a name that is no folder here can be looked for on the Hub."""

from huggingface_hub import get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, HTTPError, OfflineModeIsEnabled


def hub_answers(name: str, repo_type: str = "model") -> bool:
    """Ask the Hub for a repository, once; transformers and datasets repeat the question for half a minute.

    Args:
        name: The repository's name.
        repo_type: `"model"` or `"dataset"`.

    Returns:
        Whether there was an answer, even a refusal; False without a network, and in offline mode.

    Raises:
        huggingface_hub.errors.HFValidationError: no repository can have this name.
    """
    try:
        get_hf_file_metadata(hf_hub_url(name, "README.md", repo_type=repo_type))
    except HfHubHTTPError:
        return True
    except (HTTPError, OfflineModeIsEnabled):
        return False
    return True
