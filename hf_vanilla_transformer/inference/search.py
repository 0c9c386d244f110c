# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What a search takes from a folder's generation configuration, within bounds."""

import logging
import re
from typing import Any

from ..errors import DataError


logger = logging.getLogger(__name__)
# The least and the greatest value of each setting; of ids of tokens, the vocabulary says it.
SEARCH: dict[str, Any] = {"num_beams": (1, 100), "length_penalty": (-10.0, 10.0), "repetition_penalty": (0.1, 10.0)}
SEARCH |= dict.fromkeys(["min_length", "no_repeat_ngram_size", "early_stopping"], (0, 1000))
TOKENS = [f"{name}_token_id" for name in ("pad", "bos", "eos", "decoder_start", "forced_bos", "forced_eos")]
# What changes no search of beams, or is given with every call.
WITHOUT_EFFECT = re.compile("^_|assistant|lookbehind|sample|temperature|^top_|_p$|cutoff|max_length|use_cache|version")


def search_settings(folder: str, given: dict[str, Any], vocab_size: int) -> dict[str, Any]:
    """What a search takes from a generation configuration, or a DataError; the log names what is ignored."""
    bounds = SEARCH | dict.fromkeys(TOKENS, (0, vocab_size - 1))
    kept = {name: given[name] for name in bounds if given.get(name) is not None}
    for name, value in kept.items():
        (low, high), several = bounds[name], name in TOKENS and isinstance(value, list)
        for one in value if several else [value]:
            if not isinstance(one, int if isinstance(low, int) else int | float) or not low <= one <= high:
                raise DataError(f"{folder}: {name} of the generation is {value!r}, not between {low} and {high}")
    set_here = {name for name, value in given.items() if value is True or value not in (None, False, 0, 1)}
    if ignored := sorted(name for name in set_here - bounds.keys() if not WITHOUT_EFFECT.search(name)):
        logger.warning(f"{folder}: ignored of the generation: {', '.join(ignored)}")
    return kept
