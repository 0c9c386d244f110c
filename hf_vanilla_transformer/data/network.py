# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Whether the Hub can be reached, and the names there."""

import re

from huggingface_hub import get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, HTTPError, OfflineModeIsEnabled


HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?")


def hub_answers(name: str, repo_type: str = "model") -> bool:
    """Whether the Hub can be reached; a refusal counts as an answer. False offline.

    It is asked once: transformers and datasets would retry for half a minute.

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
