# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""R-Drop (Liang et al. 2021): two passes through the model, with different dropout, learn to agree."""

from typing import Any

import torch
from torch import nn
from transformers import Trainer

from hf_vanilla_transformer.errors import DataError


class RDrop:
    """Adds R-Drop to a class of trainers; comes before it among the bases."""

    rdrop_alpha: float  # weight of the divergence between the two passes

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """As in `Trainer`; in training, with R-Drop (Eq. 4).

        Each row goes through the model twice, each time with other dropout. Added to the mean of the two losses is
        alpha / 2 times the mean of the Kullback-Leibler divergences of either prediction from the other. This needs
        labels and `num_items_in_batch`; Trainer gives both to models that, as ours, take the latter.

        Raises:
            ValueError: in training, the labels are not classes or tokens but numbers.
        """
        if not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if inputs["labels"].is_floating_point():
            raise DataError("R-Drop needs one label for each row or token, an integer")
        is_predicted = inputs["labels"] != -100
        twice = {name: torch.cat([tensor, tensor]) for name, tensor in inputs.items()}
        loss, outputs = super().compute_loss(model, twice, True, 2 * num_items_in_batch)
        one, other = outputs["logits"].float().log_softmax(dim=-1).chunk(2)
        divergence = ((one.exp() - other.exp()) * (one - other)).sum(dim=-1)  # of both directions together
        divergence = divergence[is_predicted].sum() / num_items_in_batch
        # Trainer divides by the items of all processes, and averages over these.
        processes = self.accelerator.num_processes if self.args.average_tokens_across_devices else 1
        loss = loss + processes * self.rdrop_alpha / 4 * divergence
        return (loss, outputs) if return_outputs else loss


def with_rdrop(trainer_class: type[Trainer], alpha: float) -> type[Trainer]:
    """A subclass of a trainer that trains with R-Drop."""
    return type(f"RDrop{trainer_class.__name__}", (RDrop, trainer_class), {"rdrop_alpha": alpha})
