# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of models in torch."""

import logging
from typing import Any

import numpy as np
import torch

from ..data.errors import user_errors
from ..settings.precision import choose_precision
from .batches import batches_by_length, pad
from .engine import Engine, ModelFacts, Rows
from .folder import load_model


logger = logging.getLogger(__name__)


class TorchEngine(Engine):
    """Computes with a model in torch, on the device where it is."""

    def __init__(self, model: Any):
        # A configuration names the class that the model had when it was saved.
        self.model = model
        generation = getattr(model, "generation_config", None)  # a classifier has none
        self.facts = ModelFacts.of(model.config.to_dict() | {"architectures": [type(model).__name__]}, generation)
        self.precision = str(model.dtype).removeprefix("torch.")
        device = model.device
        self.device = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type

    @classmethod
    def load(cls, folder: str, dtype: str = "float32") -> "TorchEngine":
        """Load a model's folder or Hub name, onto the accelerator if there is one; `dtype` as in `load_engine`."""
        chosen = choose_precision(dtype)
        if dtype == "auto":
            logger.warning("Computing in %s", chosen)
        model: Any = load_model(folder, dtype=getattr(torch, chosen)).eval()
        if torch.accelerator.is_available():
            model.to(torch.accelerator.current_accelerator())
        return cls(model)

    @torch.inference_mode()
    def logits(self, input_ids: Rows, batch_size: int) -> np.ndarray:
        logits = np.empty((len(input_ids), len(self.facts.labels)), dtype=np.float32)
        for places, *batch in batches_by_length(input_ids, batch_size, self.facts.pad_token_id):
            ids, mask = self._tensors(*batch)
            logits[places] = self.model(ids, attention_mask=mask, return_dict=True).logits.float().cpu().numpy()
        return logits

    @torch.inference_mode()
    def translate(
        self, input_ids: Rows, batch_size: int, num_beams: int = 1, max_new_tokens: int | None = None, n_best: int = 1
    ) -> list[Rows]:
        translations: list[Rows] = [[]] * len(input_ids)
        # None: `generate` would warn of a model's own `max_new_tokens` beside this length.
        search = {"max_length": 1 + (max_new_tokens or self.facts.max_new_tokens), "max_new_tokens": None}
        search |= {"num_beams": num_beams, "num_return_sequences": n_best, "do_sample": False}
        for places, *batch in batches_by_length(input_ids, batch_size, self.facts.pad_token_id):
            ids, mask = self._tensors(*batch)
            with user_errors():  # of a generation configuration
                written = self.model.generate(ids, attention_mask=mask, return_dict_in_generate=False, **search)
            rows = list(map(self.until_end, written[:, 1:].tolist()))
            for number, place in enumerate(places):
                translations[place] = rows[number * n_best : (number + 1) * n_best]
        return translations

    @torch.inference_mode()
    def log_probabilities(self, input_ids: Rows, target_ids: Rows) -> list[np.ndarray]:
        start, end, padding = self.facts.start_token_id, self.facts.end_token_ids[0], self.facts.pad_token_id
        decoder_input_ids, _ = pad([[start, *ids] for ids in target_ids], padding)
        labels, in_target = pad([[*ids, end] for ids in target_ids], padding)
        ids, mask, decoder_input_ids, labels = self._tensors(*pad(input_ids, padding), decoder_input_ids, labels)
        outputs = self.model(ids, attention_mask=mask, decoder_input_ids=decoder_input_ids, return_dict=True)
        chosen = outputs.logits.float().log_softmax(dim=-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1).cpu().numpy()
        return [one[inside > 0] for one, inside in zip(chosen, in_target, strict=True)]

    def _tensors(self, *arrays: Any) -> list[torch.Tensor]:
        return [torch.from_numpy(array).to(self.model.device) for array in arrays]
