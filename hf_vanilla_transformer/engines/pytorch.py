# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of models in torch."""

from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..loading import load_model, named_errors
from .batches import answer_by_length, pad
from .engine import Engine, end_tokens


class TorchEngine(Engine):
    """Computes with a model in torch, on the device where it is.

    Args:
        model: A classifier or a translator, in evaluation mode.
        config: The configuration of this package's model, where `model` is a native twin of another class.
    """

    def __init__(self, model: PreTrainedModel, config: VanillaTransformerConfig | None = None):
        self.model = model
        self.config = model.config if config is None else config

    @property
    def model_class(self) -> str:
        own = isinstance(self.model.config, VanillaTransformerConfig)
        return type(self.model).__name__ if own else super().model_class

    @classmethod
    def load(cls, folder: str, export: dict[str, Any] | None, dtype: str) -> "TorchEngine":
        if export is None:
            config, model = None, load_model(folder, dtype=dtype)
        else:
            config = VanillaTransformerConfig.from_dict(export["config"])
            with named_errors(folder, "model"):
                model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype)
        if torch.accelerator.is_available():
            model.to(torch.accelerator.current_accelerator())
        return cls(model.eval(), config)

    @torch.inference_mode()
    def logits(self, input_ids: list[list[int]], batch_size: int) -> np.ndarray:
        def answer(rows: list[list[int]]) -> list[np.ndarray]:
            ids, mask = self._pad(rows)
            return list(self.model(ids, attention_mask=mask).logits.float().cpu().numpy())

        return np.stack(answer_by_length(input_ids, batch_size, answer))

    @torch.inference_mode()
    def translate(
        self, input_ids: list[list[int]], batch_size: int, num_beams: int = 1, max_new_tokens: int | None = None
    ) -> list[list[int]]:
        # `max_length`, which counts the start token, too: next to a model's own, `max_new_tokens` makes a warning.
        limit = self.config.max_target_positions if max_new_tokens is None else 1 + max_new_tokens
        special = {self.config.decoder_start_token_id, *end_tokens(self.config), self.config.pad_token_id}

        def answer(rows: list[list[int]]) -> list[list[int]]:
            ids, mask = self._pad(rows)
            ids = self.model.generate(ids, attention_mask=mask, num_beams=num_beams, do_sample=False, max_length=limit)
            return [[token for token in row if token not in special] for row in ids.tolist()]

        return answer_by_length(input_ids, batch_size, answer)

    @torch.inference_mode()
    def log_probabilities(
        self, input_ids: list[list[int]], target_ids: list[list[int]], batch_size: int
    ) -> list[np.ndarray]:
        start, end = self.config.decoder_start_token_id, end_tokens(self.config)[0]
        scores = []
        for begin in range(0, len(input_ids), batch_size):
            rows = slice(begin, begin + batch_size)
            source, mask = self._pad(input_ids[rows])
            decoder_input_ids, _ = self._pad([[start, *ids] for ids in target_ids[rows]])
            labels, in_target = self._pad([[*ids, end] for ids in target_ids[rows]])
            logits = self.model(source, attention_mask=mask, decoder_input_ids=decoder_input_ids).logits
            chosen = logits.float().log_softmax(dim=-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
            scores += [one[inside.bool()].cpu().numpy() for one, inside in zip(chosen, in_target, strict=True)]
        return scores

    def _pad(self, rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """`pad`, on the model's device."""
        ids, mask = pad(rows, self.config.pad_token_id)
        return ids.to(self.model.device), mask.to(self.model.device)
