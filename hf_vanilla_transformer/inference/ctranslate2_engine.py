# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of models in CTranslate2's format."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..data.errors import named_errors
from .engine import Engine, Export, Rows


class CTranslate2Engine(Engine):
    """Computes on the CPU, as many batches at a time as there are threads, with one thread each.

    CTranslate2 translates a source of the end token alone into nothing. It cannot classify a text without a token, so
    the record has the logits of one.
    """

    def __init__(self, folder: str, export: Export, num_threads: int):
        import ctranslate2

        self.facts, self.precision = export.facts, export.quantize or "float32"
        torch = sys.modules.get("torch")
        torch_threads = torch.get_num_threads() if torch else None
        with named_errors(folder, "model"):
            self.translator = ctranslate2.Translator(
                str(folder),
                compute_type=self.precision,
                inter_threads=num_threads,
                intra_threads=1,
            )
        if torch:  # `intra_threads` (CTranslate2 4.8) would hold for it, too
            torch.set_num_threads(torch_threads)
        # With 0 itself, CTranslate2 searches in another way.
        self.length_penalty = self.facts.length_penalty or 1e-9
        self.source_tokens, self.target_tokens = (_vocabulary(Path(folder), side) for side in ("source", "target"))
        self.logits_without_tokens = export.logits_without_tokens
        self.target_ids = {token: token_id for token_id, token in enumerate(self.target_tokens)}

    def logits(self, input_ids: Rows, batch_size: int) -> np.ndarray:
        logits = np.empty((len(input_ids), len(self.facts.labels)), dtype=np.float32)
        places = [place for place, row in enumerate(input_ids) if row]
        if len(places) < len(input_ids):
            logits[:] = self.logits_without_tokens
        sources = self.sources([input_ids[place] for place in places])
        results = self._answer(sources, batch_size, beam_size=1, max_decoding_length=1, return_logits_vocab=True)
        for place, result in zip(places, results, strict=True):
            logits[place] = np.array(result.logits[0][0])[: len(self.facts.labels)]
        return logits

    def translate(
        self, input_ids: Rows, batch_size: int, num_beams: int = 1, max_new_tokens: int | None = None, n_best: int = 1
    ) -> list[Rows]:
        results = self._answer(
            self.sources(input_ids),
            batch_size,
            beam_size=num_beams,
            num_hypotheses=n_best,
            length_penalty=self.length_penalty,
            max_decoding_length=max_new_tokens or self.facts.max_new_tokens,
            end_token=self.facts.end_token_ids,
        )
        return [
            [self.until_end([self.target_ids[token] for token in row]) for row in result.hypotheses]
            for result in results
        ]

    def log_probabilities(self, input_ids: Rows, target_ids: Rows) -> list[np.ndarray]:
        targets = [[self.target_tokens[token] for token in row] for row in target_ids]
        results = self.translator.score_batch(self.sources(input_ids), targets, max_input_length=0)
        return [np.array(result.log_probs, dtype=np.float32) for result in results]

    def sources(self, input_ids: Rows) -> list[list[str]]:
        """Return the texts' tokens, as CTranslate2 takes them."""
        return [[self.source_tokens[token] for token in row] for row in input_ids]

    def _answer(self, sources: list[list[str]], batch_size: int, **options: Any) -> list[Any]:
        return self.translator.translate_batch(
            sources, max_batch_size=batch_size, max_input_length=0, min_decoding_length=0, **options
        )


def _vocabulary(folder: Path, side: str) -> list[str]:
    """Return the tokens by id; CTranslate2 writes one file if source and target are the same."""
    file = folder / f"{side}_vocabulary.json"
    file = file if file.is_file() else folder / "shared_vocabulary.json"
    return json.loads(file.read_text(encoding="utf-8"))
