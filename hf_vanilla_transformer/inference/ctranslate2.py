# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of models in CTranslate2's format."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import DataError
from .engine import Engine, config_of, end_tokens, import_extra
from .folder import named_errors, search_settings


class CTranslate2Engine(Engine):
    """Computes on the CPU, as many batches at a time as torch would use threads, with one thread each.

    CTranslate2 translates a source of the end token alone into nothing. It cannot classify a text without a token, so
    the record has the logits of one.
    """

    def __init__(self, folder: str, export: dict[str, Any]):
        ctranslate2 = import_extra("ctranslate2", "CTranslate2", "ctranslate2")
        self.config = config_of(folder, export)
        compute_type = export["quantize"] or "float32"
        if compute_type not in (known := ctranslate2.get_supported_compute_types("cpu")):
            raise DataError(f"{folder}: in {compute_type}, but this CPU computes in {', '.join(sorted(known))} only")
        threads = torch.get_num_threads()
        with named_errors(folder, "model"):
            self.translator = ctranslate2.Translator(
                str(folder), compute_type=compute_type, inter_threads=threads, intra_threads=1
            )
        torch.set_num_threads(threads)  # `intra_threads` (CTranslate2 4.8) would hold for torch, too
        # With 0 itself, CTranslate2 searches in another way.
        generation = search_settings(str(folder), export["generation"] or {}, self.config.target_vocab_size)
        self.length_penalty = generation.get("length_penalty", 1.0) or 1e-9
        self.num_beams = generation.get("num_beams") or 1
        self.source_tokens, self.target_tokens = (
            _vocabulary(Path(folder), f"{side}_vocabulary.json") for side in ("source", "target")
        )
        self.folder, self.logits_without_tokens = folder, export.get("logits_without_tokens")
        self.target_ids = {token: token_id for token_id, token in enumerate(self.target_tokens)}

    def logits(self, input_ids: list[list[int]], batch_size: int) -> np.ndarray:
        logits = np.empty((len(input_ids), self.config.num_labels), dtype=np.float32)
        places = [place for place, row in enumerate(input_ids) if row]
        if len(places) < len(input_ids):
            if self.logits_without_tokens is None:
                raise DataError(f"{self.folder}: cannot answer a text without a token: export the model again")
            logits[:] = self.logits_without_tokens
        sources = self.sources([input_ids[place] for place in places])
        results = self._answer(sources, batch_size, beam_size=1, max_decoding_length=1, return_logits_vocab=True)
        for place, result in zip(places, results, strict=True):
            logits[place] = np.array(result.logits[0][0])[: self.config.num_labels]
        return logits

    def translate(
        self, input_ids: list[list[int]], batch_size: int, num_beams: int = 1, max_new_tokens: int | None = None
    ) -> list[list[int]]:
        results = self._answer(
            self.sources(input_ids),
            batch_size,
            beam_size=num_beams,
            length_penalty=self.length_penalty,
            # The start token is one of the target positions.
            max_decoding_length=max_new_tokens or self.config.max_target_positions - 1,
            end_token=end_tokens(self.config),
        )
        special = {self.config.decoder_start_token_id, *end_tokens(self.config), self.config.pad_token_id}
        rows = ([self.target_ids[token] for token in result.hypotheses[0]] for result in results)
        return [[token for token in row if token not in special] for row in rows]

    def sources(self, input_ids: list[list[int]]) -> list[list[str]]:
        """The texts' tokens, as CTranslate2 takes them."""
        return [[self.source_tokens[token] for token in row] for row in input_ids]

    def _answer(self, sources: list[list[str]], batch_size: int, **options: Any) -> list[Any]:
        try:
            return self.translator.translate_batch(
                sources, max_batch_size=batch_size, max_input_length=0, min_decoding_length=0, **options
            )
        except RuntimeError as error:  # a text that is too long
            raise DataError(str(error)) from error


def _vocabulary(folder: Path, name: str) -> list[str]:
    """The tokens by id; CTranslate2 keeps one file where source and target are the same."""
    file = folder / name
    file = file if file.is_file() else folder / "shared_vocabulary.json"
    return json.loads(file.read_text(encoding="utf-8"))
