# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of models in torch."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..loading import load_model, named_errors
from .engine import Engine, end_tokens


Answer = TypeVar("Answer")


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
        def answer(batch: dict[str, torch.Tensor]) -> list[np.ndarray]:
            return list(self.model(**batch).logits.float().cpu().numpy())

        return np.stack(self._answer_by_length(input_ids, batch_size, answer))

    @torch.inference_mode()
    def translate(
        self, input_ids: list[list[int]], batch_size: int, num_beams: int = 1, max_new_tokens: int | None = None
    ) -> list[list[int]]:
        # `max_length`, which counts the start token, too: next to a model's own, `max_new_tokens` makes a warning.
        limit = self.config.max_target_positions if max_new_tokens is None else 1 + max_new_tokens
        special = {self.config.decoder_start_token_id, *end_tokens(self.config), self.config.pad_token_id}

        def answer(batch: dict[str, torch.Tensor]) -> list[list[int]]:
            ids = self.model.generate(**batch, num_beams=num_beams, do_sample=False, max_length=limit)
            return [[token for token in row if token not in special] for row in ids.tolist()]

        return self._answer_by_length(input_ids, batch_size, answer)

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
        """The ids (B, L), right-padded, and their mask (B, L), on the model's device."""
        tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
        ids = pad_sequence(tensors, batch_first=True, padding_value=self.config.pad_token_id or 0)
        mask = pad_sequence([torch.ones_like(row) for row in tensors], batch_first=True)
        return ids.to(self.model.device), mask.to(self.model.device)

    def _answer_by_length(
        self, input_ids: list[list[int]], batch_size: int, answer: Callable[[dict[str, torch.Tensor]], list[Answer]]
    ) -> list[Answer]:
        """Answer texts in batches of similar length, which have few pads.

        Args:
            input_ids: The token ids of each text.
            batch_size: Maximum number of texts in a batch.
            answer: Takes `input_ids` and `attention_mask` (B, S) and returns B answers.

        Returns:
            The answers in the order of `input_ids`.
        """
        order = sorted(range(len(input_ids)), key=lambda place: len(input_ids[place]))
        answers = [None] * len(order)
        for begin in range(0, len(order), batch_size):
            places = order[begin : begin + batch_size]
            ids, mask = self._pad([input_ids[place] for place in places])
            batch = {"input_ids": ids, "attention_mask": mask}
            for place, one in zip(places, answer(batch), strict=True):
                answers[place] = one
        return answers
