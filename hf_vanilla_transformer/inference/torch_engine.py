# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of models in torch."""

import copy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from .alignments import alignment_layer
from .batches import answer_by_length, pad
from .engine import Engine, ModelFacts
from .folder import load_model, on_accelerator
from .precision import inference_dtype
from .search import search_settings


class TorchEngine(Engine):
    """Computes with a model in torch, on the device where it is."""

    def __init__(self, model: Any):
        # The model's class now, not the one that its configuration was saved with.
        self.model, self.facts = (
            model,
            ModelFacts.of(model.config.to_dict() | {"architectures": [type(model).__name__]}),
        )
        self.num_beams = getattr(getattr(model, "generation_config", None), "num_beams", None) or 1

    @classmethod
    def load(
        cls, folder: str, export: dict[str, Any] | None, *, dtype: str = "float32", num_threads: int | None = None
    ) -> "TorchEngine":
        model = load_model(folder, dtype=inference_dtype(dtype))
        engine = cls(on_accelerator(model))
        if generation := getattr(model, "generation_config", None):
            kept = search_settings(folder, generation.to_diff_dict(), engine.facts.target_vocab_size)
            model.generation_config = GenerationConfig(**kept)
            engine.num_beams = kept.get("num_beams", 1)
        return engine

    @torch.inference_mode()
    def logits(self, input_ids: list[list[int]], batch_size: int) -> np.ndarray:
        def answer(*batch: np.ndarray) -> np.ndarray:
            ids, mask = self._tensors(*batch)
            return self.model(ids, attention_mask=mask).logits.float().cpu().numpy()

        return np.stack(answer_by_length(input_ids, batch_size, self.facts.pad_token_id, answer))

    @torch.inference_mode()
    def translate(
        self,
        input_ids: list[list[int]],
        batch_size: int,
        num_beams: int = 1,
        max_new_tokens: int | None = None,
        num_return_sequences: int = 1,
    ) -> list[list[list[int]]]:
        # `max_length`, which counts the start token, too: next to a model's own, `max_new_tokens` makes a warning.
        limit = self.facts.max_target_positions if max_new_tokens is None else 1 + max_new_tokens

        def answer(*batch: np.ndarray) -> list[list[list[int]]]:
            ids, mask = self._tensors(*batch)
            written = self.model.generate(
                ids,
                attention_mask=mask,
                num_beams=num_beams,
                num_return_sequences=num_return_sequences,
                do_sample=False,
                max_length=limit,
            )
            rows = map(self.until_end, written[:, 1:].tolist())
            return [list(translations) for translations in zip(*[rows] * num_return_sequences, strict=True)]

        return answer_by_length(input_ids, batch_size, self.facts.pad_token_id, answer)

    @torch.inference_mode()
    def log_probabilities(self, input_ids: list[list[int]], target_ids: list[list[int]]) -> list[np.ndarray]:
        start, end, padding = self.facts.start_token_id, self.facts.end_token_ids[0], self.facts.pad_token_id
        decoder_input_ids, _ = pad([[start, *ids] for ids in target_ids], padding)
        labels, in_target = pad([[*ids, end] for ids in target_ids], padding)
        ids, mask, decoder_input_ids, labels = self._tensors(*pad(input_ids, padding), decoder_input_ids, labels)
        logits = self.model(ids, attention_mask=mask, decoder_input_ids=decoder_input_ids).logits.float()
        chosen = logits.log_softmax(dim=-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1).cpu().numpy()
        return [one[inside > 0] for one, inside in zip(chosen, in_target, strict=True)]

    @torch.inference_mode()
    def cross_attention(self, input_ids: list[list[int]], target_ids: list[list[int]]) -> list[np.ndarray]:
        start, padding = self.facts.start_token_id, self.facts.pad_token_id
        decoder_input_ids, _ = pad([[start, *ids] for ids in target_ids], padding)
        ids, mask, decoder_input_ids = self._tensors(*pad(input_ids, padding), decoder_input_ids)
        outputs = self._eager(ids, attention_mask=mask, decoder_input_ids=decoder_input_ids, output_attentions=True)
        layers = outputs.cross_attentions
        means = layers[alignment_layer(len(layers))].float().mean(1).cpu().numpy()  # (B, T, S)
        sizes = zip(means, target_ids, input_ids, strict=True)
        return [one[: len(target), : len(source)] for one, target, source in sizes]

    @cached_property
    def _eager(self) -> Any:
        """The model with the attention that keeps its probabilities; the weights are the same ones."""
        tensors = (*self.model.parameters(), *self.model.buffers())
        model = copy.deepcopy(self.model, {id(tensor): tensor for tensor in tensors})
        model.set_attn_implementation("eager")
        return model

    def _tensors(self, *arrays: Any) -> list[torch.Tensor]:
        return [torch.from_numpy(array).to(self.model.device) for array in arrays]
