# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A loss that transformers does not have: the Annotated Transformer's label smoothing."""

import torch
from torch import nn
from transformers.modeling_outputs import Seq2SeqLMOutput

from ..errors import DataError


def smoothed_targets(targets: torch.Tensor, vocab_size: int, smoothing: float, pad_token_id: int) -> torch.Tensor:
    """§5.4, the Annotated Transformer's `LabelSmoothing`: return the distribution in place of the one-hot targets.

    Args:
        targets: (N,), int64: token ids.
        vocab_size: V.
        smoothing: The probability of all other tokens together; the padding token gets none, so they are V - 2.

    Returns:
        (N, V), float32; rows whose target is padding are zero.
    """
    distribution = torch.full((len(targets), vocab_size), smoothing / (vocab_size - 2), device=targets.device)
    distribution.scatter_(1, targets.unsqueeze(1), 1 - smoothing)
    distribution[:, pad_token_id] = 0
    return distribution.masked_fill((targets == pad_token_id).unsqueeze(1), 0)


class LabelSmoothingLoss:
    """The Annotated Transformer's loss, a `compute_loss_func` for Trainer: KL divergence from smoothed targets.

    transformers' own `label_smoothing_factor` spreads the probability over all V tokens and takes the cross-entropy.
    """

    def __init__(self, smoothing: float, pad_token_id: int):
        self.smoothing = smoothing
        self.pad_token_id = pad_token_id

    def __call__(
        self,
        outputs: Seq2SeqLMOutput,
        labels: torch.Tensor,
        num_items_in_batch: int | torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the sum over the batch's tokens, divided by their number.

        Args:
            outputs: With `logits` (B, T, V). Trainer does not pass the labels to the model, so the collator must make
                `decoder_input_ids`, as `DataCollatorForSeq2Seq(tokenizer, model=model)` does.
            labels: (B, T), int64, -100 where nothing is predicted.
            num_items_in_batch: The number to divide by, with gradient accumulation.

        Raises:
            DataError: a label is the padding token.
        """
        if (labels == self.pad_token_id).any():
            raise DataError(f"a label is the pad, {self.pad_token_id}: where nothing is predicted it must be -100")
        targets = labels.flatten()
        targets = targets.masked_fill(targets == -100, self.pad_token_id)
        log_probabilities = outputs.logits.flatten(0, 1).float().log_softmax(dim=-1)
        expected = smoothed_targets(targets, log_probabilities.shape[-1], self.smoothing, self.pad_token_id)
        loss = nn.functional.kl_div(log_probabilities, expected, reduction="sum")
        if num_items_in_batch is None:
            num_items_in_batch = (labels != -100).sum().clamp(min=1)
        return loss / num_items_in_batch
