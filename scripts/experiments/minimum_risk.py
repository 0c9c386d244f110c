# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Minimum risk training (Shen et al. 2016): a translator learns which of its own translations are like the reference.

Of each training text there are several translations, as `vanilla-transformer translate --num_return_sequences 10`
writes them. The risk is their expected error, 1 - BLEU of the sentence, under the model's probabilities.
"""

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sacrebleu.metrics import BLEU
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import DataCollatorForSeq2Seq, PreTrainedTokenizerBase, Seq2SeqTrainer

from hf_vanilla_transformer import DataError
from hf_vanilla_transformer.data.lines import iterate_lines
from hf_vanilla_transformer.inference.batches import pad


# What the mean log-probability of a translation's tokens is multiplied with, before the softmax over the translations
# of a text: with 1, all would weigh nearly the same.
_SHARPNESS = 8.0
# Tokens whose logits are in float32 at once.
_ROWS = 256


def add_candidates(rows: Dataset, file: str | Path, tokenizer: PreTrainedTokenizerBase) -> Dataset:
    """Add the translations in a file to tokenized pairs, each once, with their errors.

    Args:
        rows: With `labels`, the references' ids.
        file: A line for each row, its translations separated by tabs.
        tokenizer: The target's.

    Returns:
        The rows with the columns `candidates` (lists of ids) and `errors`, from 0 to 1.

    Raises:
        DataError: the file has another number of lines, or a row has no translation.
    """
    lines = list(iterate_lines(file))
    if len(lines) != len(rows):
        raise DataError(
            f"{file}: {len(lines):,} lines, for {len(rows):,} training pairs; those with an empty side are none"
        )
    bleu = BLEU(effective_order=True)  # for single sentences
    references = tokenizer.batch_decode(rows["labels"][:], skip_special_tokens=True)
    candidates, errors = [], []
    for number, (line, reference) in enumerate(zip(lines, references, strict=True), 1):
        texts = [text for text in dict.fromkeys(line.split("\t")) if text.strip()]
        if not texts:
            raise DataError(f"{file}, line {number}: no translation")
        candidates.append(tokenizer(texts, truncation=True)["input_ids"])
        errors.append([1 - bleu.sentence_score(text, [reference]).score / 100 for text in texts])
    return rows.add_column("candidates", candidates).add_column("errors", errors)


def describe_candidates(rows: Dataset) -> str:
    """What `add_candidates` added; a file in another order, or one with scores in it, shows in the BLEU."""
    errors = rows["errors"][:]
    first, best = (100 - 100 * sum(map(of, errors)) / len(errors) for of in (itemgetter(0), min))
    mean = sum(map(len, errors)) / len(errors)
    return f"candidates: {mean:.1f} of each text; mean sentence BLEU of the first {first:.1f}, of the best {best:.1f}"


class CandidateCollator:
    """A batch of pairs as `collate` makes it, with the candidates (N, T), -100 after their ends, their `errors` (N,),
    and the row that each is `of` (N,). Of rows without candidates, it is that batch alone.
    """

    def __init__(self, collate: DataCollatorForSeq2Seq):
        self.collate = collate

    def __call__(self, features: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        own = ("candidates", "errors")
        batch = self.collate([{name: row[name] for name in row if name not in own} for row in features])
        if "candidates" in features[0]:
            candidates, mask = map(torch.from_numpy, pad([ids for row in features for ids in row["candidates"]], 0))
            batch["candidates"] = candidates.masked_fill(mask == 0, -100)
            batch["errors"] = torch.tensor([error for row in features for error in row["errors"]])
            batch["of"] = torch.tensor([place for place, row in enumerate(features) for _ in row["errors"]])
        return batch


class MinimumRisk:
    """Adds the risk to a class of translators' trainers; comes before it among the bases."""

    risk_weight: float  # the share of the risk in the loss; the rest is the cross-entropy

    def __init__(self, *, data_collator: DataCollatorForSeq2Seq, **kwargs: Any):
        super().__init__(data_collator=CandidateCollator(data_collator), **kwargs)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """As in `Trainer`; in training, with the risk, in the mean over the rows.

        The probability of a translation is in proportion to the exponential of its tokens' mean log-probability, as
        Edunov et al. 2018 have it, times 8. This needs `num_items_in_batch`, which Trainer gives to our models.
        """
        if "candidates" not in inputs:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        pairs = dict(inputs)
        candidates, errors, of = (pairs.pop(name) for name in ("candidates", "errors", "of"))
        loss, outputs = super().compute_loss(model, pairs, True, num_items_in_batch)
        logits = model(
            attention_mask=inputs["attention_mask"][of],
            encoder_outputs=(outputs["encoder_last_hidden_state"][of],),
            decoder_input_ids=self.model.prepare_decoder_input_ids_from_labels(candidates),
            use_cache=False,
        ).logits
        risk = expected_errors(logits, candidates, errors, of).mean()
        # As Trainer weighs the losses of the parts of a step, and of the processes.
        share = (inputs["labels"] != -100).sum() / num_items_in_batch
        processes = self.accelerator.num_processes if self.args.average_tokens_across_devices else 1
        loss = (1 - self.risk_weight) * loss + self.risk_weight * risk * share * processes
        return (loss, outputs) if return_outputs else loss


def expected_errors(
    logits: torch.Tensor, candidates: torch.Tensor, errors: torch.Tensor, of: torch.Tensor
) -> torch.Tensor:
    """The expected error of each row, float32, (rows,).

    Args:
        logits: Of the candidates' tokens, (N, T, V).
        candidates: Their ids, (N, T), -100 after the ends.
        errors: Of each, (N,).
        of: The row of each, (N,), int64, in order.
    """
    inside = candidates != -100
    parts = zip(logits[inside].split(_ROWS), candidates[inside].split(_ROWS), strict=True)
    # What the gradient needs is computed again, part by part: this takes half the time of one pass over all logits.
    losses = torch.cat([checkpoint(_token_losses, *part, use_reentrant=False) for part in parts])
    losses = torch.zeros_like(candidates, dtype=torch.float32).masked_scatter(inside, losses)
    scores = -_SHARPNESS * losses.sum(1) / inside.sum(1)
    sizes = of.bincount().tolist()
    of_rows = zip(scores.split(sizes), errors.split(sizes), strict=True)
    return torch.stack([score.softmax(0) @ error for score, error in of_rows])


def _token_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits.float(), labels, reduction="none")


def with_minimum_risk(trainer_class: type[Seq2SeqTrainer], weight: float) -> type[Seq2SeqTrainer]:
    """A subclass of a trainer that trains on the risk of the rows' candidates, too."""
    return type(f"MinimumRisk{trainer_class.__name__}", (MinimumRisk, trainer_class), {"risk_weight": weight})
