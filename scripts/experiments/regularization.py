# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""R-Drop and BPE-dropout as settings of a training script."""

from collections.abc import Mapping
from dataclasses import dataclass

from bpe_dropout import draw_segmentations
from datasets import Dataset
from rdrop import with_rdrop
from transformers import PreTrainedTokenizerBase, Trainer
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.errors import DataError


@dataclass
class RegularizationArguments:
    """Settings that both training scripts have."""

    rdrop_alpha: float = HfArg(
        default=0.0, help="Weight of R-Drop's divergence between two passes; 0 is a single pass."
    )
    bpe_dropout: float = HfArg(
        default=0.0, help="Share of the merges left out at random in training texts; 0 is none."
    )
    segmentations: int | None = HfArg(
        default=None,
        help="With --bpe_dropout, the number of ways in which each training text is cut, by default 10; "
        "an epoch goes through all of them.",
    )

    def __post_init__(self):
        if self.rdrop_alpha < 0:
            raise DataError(f"--rdrop_alpha: at least 0, not {self.rdrop_alpha}")
        if not 0 <= self.bpe_dropout < 1:
            raise DataError(f"--bpe_dropout: at least 0 and below 1, not {self.bpe_dropout}")
        if self.segmentations is not None and (not self.bpe_dropout or self.segmentations < 1):
            raise DataError("--segmentations: at least 1, and with --bpe_dropout")

    def trainer_class(self, base: type[Trainer]) -> type[Trainer]:
        """`base`, with R-Drop if it is asked for."""
        return with_rdrop(base, self.rdrop_alpha) if self.rdrop_alpha else base

    def segment(
        self, rows: Dataset, tokenizers: Mapping[str, PreTrainedTokenizerBase], max_length: int, seed: int
    ) -> Dataset:
        """Training rows cut anew, as in `draw_segmentations`, if BPE-dropout is asked for."""
        if not self.bpe_dropout:
            return rows
        return draw_segmentations(
            rows, tokenizers, rate=self.bpe_dropout, copies=self.segmentations or 10, max_length=max_length, seed=seed
        )
