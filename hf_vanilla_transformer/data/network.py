# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Whether a name that is no folder here can be looked for on the Hub."""

from huggingface_hub import get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, HTTPError, OfflineModeIsEnabled


def hub_answers(name: str, repo_type: str = "model") -> bool:
    """Whether the Hub answers a question for a repository, even by a refusal; not without a network, or offline.

    It is asked once; transformers and datasets repeat the question for half a minute.

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
