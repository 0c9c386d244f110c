# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of models in torch."""

from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSeq2SeqLM, GenerationConfig

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from .batches import answer_by_length
from .engine import Engine, config_of, end_tokens
from .folder import load_model, load_weights, on_accelerator, search_settings
from .precision import inference_dtype


class TorchEngine(Engine):
    """Computes with a model in torch, on the device where it is.

    `config` is the configuration of this package's model, where `model` is a native twin of another class.
    """

    def __init__(self, model: Any, config: VanillaTransformerConfig | None = None):
        self.model, self.config = model, config or model.config
        self.num_beams = getattr(getattr(model, "generation_config", None), "num_beams", None) or 1

    @property
    def model_class(self) -> str:
        own = isinstance(self.model.config, VanillaTransformerConfig)
        return type(self.model).__name__ if own else super().model_class

    @classmethod
    def load(cls, folder: str, export: dict[str, Any] | None, dtype: str) -> "TorchEngine":
        """Load a model, or the native twin that an export with this record is; `dtype` as in `load_engine`."""
        if export is None:
            config, model = None, load_model(folder, dtype=inference_dtype(dtype))
        else:
            config = config_of(folder, export)
            model, _ = load_weights(AutoModelForSeq2SeqLM, folder, dtype=inference_dtype(dtype))
        if generation := getattr(model, "generation_config", None):
            size = (config or model.config).target_vocab_size
            model.generation_config = GenerationConfig(**search_settings(folder, generation.to_diff_dict(), size))
        return cls(on_accelerator(model), config)

    @torch.inference_mode()
    def logits(self, input_ids: list[list[int]], batch_size: int) -> np.ndarray:
        def answer(ids: torch.Tensor, mask: torch.Tensor) -> np.ndarray:
            ids, mask = ids.to(self.model.device), mask.to(self.model.device)
            return self.model(ids, attention_mask=mask).logits.float().cpu().numpy()

        return np.stack(answer_by_length(input_ids, batch_size, self.config.pad_token_id, answer))

    @torch.inference_mode()
    def translate(
        self, input_ids: list[list[int]], batch_size: int, num_beams: int = 1, max_new_tokens: int | None = None
    ) -> list[list[int]]:
        # `max_length`, which counts the start token, too: next to a model's own, `max_new_tokens` makes a warning.
        limit = self.config.max_target_positions if max_new_tokens is None else 1 + max_new_tokens
        special = {self.config.decoder_start_token_id, *end_tokens(self.config), self.config.pad_token_id}

        def answer(ids: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
            ids, mask = ids.to(self.model.device), mask.to(self.model.device)
            written = self.model.generate(
                ids, attention_mask=mask, num_beams=num_beams, do_sample=False, max_length=limit
            )
            return [[token for token in row if token not in special] for row in written.tolist()]

        return answer_by_length(input_ids, batch_size, self.config.pad_token_id, answer)
