# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Which word of the source each word of a translation comes from, as cross-attention has it."""

import numpy as np


def alignment_layer(decoder_layers: int) -> int:
    """The decoder layer, from 0, whose cross-attention aligns words: the last of the lower half.

    In the published translators it is the best for function words, and level with the next one for others
    (`scripts/experiments/LOG.md`). Garg et al. 2019, "Jointly Learning to Align and Translate", take the last but one.
    """
    return max(0, decoder_layers // 2 - 1)


def align(attention: np.ndarray, source_words: list[int], target_words: list[int]) -> list[int]:
    """The source word that each target word reads most.

    Args:
        attention: What each target token reads of the source tokens when it is written, (T, S).
        source_words, target_words: The number of each token's word, from 0; -1 for a token that belongs to none.

    Returns:
        For each target word the number of a source word.
    """
    of_source = np.array(source_words)[:, None] == np.arange(1 + max(source_words))  # (S, words)
    of_target = np.arange(1 + max(target_words, default=-1))[:, None] == np.array(target_words)  # (words, T)
    return (of_target @ attention @ of_source).argmax(1).tolist() if of_target.size else []


def last_word(text: str) -> int:
    """The number, from 0, of a text's last word; behind a space, one begins. Words are what white space separates."""
    return len(f"{text}.".split()) - 1
