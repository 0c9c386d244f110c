# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of models in torch."""

from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..precision import inference_dtype
from .batches import BatchEngine
from .folder import load_model, named_errors, on_accelerator


class TorchEngine(BatchEngine):
    """Computes with a model in torch, on the device where it is.

    Args:
        model: A classifier or a translator, in evaluation mode.
        config: The configuration of this package's model, where `model` is a native twin of another class.
    """

    model: Any  # whether it can generate depends on its class

    def __init__(self, model: PreTrainedModel, config: VanillaTransformerConfig | None = None):
        own: Any = model.config
        self.model, self.config = model, config or own

    @property
    def model_class(self) -> str:
        own = isinstance(self.model.config, VanillaTransformerConfig)
        return type(self.model).__name__ if own else super().model_class

    @classmethod
    def load(cls, folder: str, export: dict[str, Any] | None, dtype: str) -> "TorchEngine":
        if export is None:
            config, model = None, load_model(folder, dtype=inference_dtype(dtype))
        else:
            config = VanillaTransformerConfig.from_dict(export["config"])
            with named_errors(folder, "model"):
                model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=inference_dtype(dtype))
        return cls(on_accelerator(model), config)

    @torch.inference_mode()
    def batch_logits(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> np.ndarray:
        ids, mask = self._on_device(input_ids, attention_mask)
        return self.model(ids, attention_mask=mask).logits.float().cpu().numpy()

    @torch.inference_mode()
    def generate(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, num_beams: int, max_length: int
    ) -> torch.Tensor:
        ids, mask = self._on_device(input_ids, attention_mask)
        return self.model.generate(
            ids, attention_mask=mask, num_beams=num_beams, do_sample=False, max_length=max_length
        )

    @torch.inference_mode()
    def target_logits(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, decoder_input_ids: torch.Tensor
    ) -> torch.Tensor:
        """Score the next token after each token of given translations (B, T): (B, T, V), on the CPU."""
        ids, mask, target = self._on_device(input_ids, attention_mask, decoder_input_ids)
        return self.model(ids, attention_mask=mask, decoder_input_ids=target).logits.cpu()

    def _on_device(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        return [tensor.to(self.model.device) for tensor in tensors]
