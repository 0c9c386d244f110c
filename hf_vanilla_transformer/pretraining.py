# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Denoising pretraining: a corpus of plain text, and the corruption that an encoder-decoder learns to undo.

BART (Lewis et al. 2020, §2.2, "Text Infilling") replaces spans of tokens by one mask each and has the decoder write
the whole text; T5 (Raffel et al. 2020, §3.1.4, with the spans of §3.3.4) has it write only what is missing.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import datasets
import numpy as np
import torch
from datasets import Dataset, DatasetDict, Features, IterableDataset, Value
from datasets.exceptions import DatasetsError
from datasets.fingerprint import Hasher
from torch import nn
from transformers import EvalPrediction, PreTrainedTokenizerBase, TrainerCallback

from .configuration_vanilla_transformer import VanillaTransformerConfig
from .data import DataError, iterate_lines
from .modeling_vanilla_transformer import shift_tokens_right


logger = logging.getLogger(__name__)

TARGETS = ("text", "spans")
# Lines that streaming holds in memory to draw the next one from.
SHUFFLE_BUFFER = 10_000


# --- The corpus ---


def load_corpus(
    files: Sequence[str | os.PathLike],
    *,
    validation: float = 0.01,
    seed: int = 42,
    cache_dir: str | os.PathLike | None = None,
) -> DatasetDict:
    """Load the lines of text files, memory-mapped, as the splits `train` and `validation`.

    The files are read once; `datasets` keeps the lines in its cache, by the files' content.

    Args:
        files: As `iterate_lines` reads them, one after the other.
        validation: What is held back for validation: a share of the lines, or from 1 on their number.
        seed: Seed of the choice; the same lines for the same seed.
        cache_dir: The folder of the cache; by default that of `datasets`.

    Returns:
        The two splits, with the column `text` (string); lines without text are still there.

    Raises:
        OSError: A file cannot be read.
        DataError: There is something wrong in a file, or too few lines are in them to hold any back.
    """
    files = tuple(os.fspath(file) for file in files)
    checksums = tuple(file_checksum(file) for file in files)
    if next(chain.from_iterable(map(iterate_lines, files)), None) is None:
        raise DataError(f"{', '.join(files)}: no line")
    try:
        lines = Dataset.from_generator(
            _text_rows,
            features=Features({"text": Value("string")}),
            gen_kwargs={"files": files, "checksums": checksums},
            cache_dir=None if cache_dir is None else os.fspath(cache_dir),
        )
    except DatasetsError as error:
        # `datasets` wraps what the generator raises.
        if isinstance(error.__cause__, (DataError, OSError)):
            raise error.__cause__ from None
        raise
    size = held_back(validation, len(lines), ", ".join(files))
    is_validation = np.zeros(len(lines), dtype=bool)
    is_validation[np.random.default_rng(seed).permutation(len(lines))[:size]] = True
    return DatasetDict(
        {
            "train": lines.select(np.flatnonzero(~is_validation)),
            "validation": lines.select(np.flatnonzero(is_validation)),
        }
    )


def _text_rows(files: tuple[str, ...], checksums: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """The lines as rows. The checksums are there for the cache, which goes by a generator's arguments."""
    for text in chain.from_iterable(map(iterate_lines, files)):
        yield {"text": text}


def file_checksum(file: str | os.PathLike) -> str:
    """SHA-256 of a file as it lies there, hexadecimal.

    Args:
        file: Any file.

    Returns:
        The checksum.

    Raises:
        OSError: The file cannot be read.
    """
    digest = hashlib.sha256()
    with open(file, "rb") as content:
        while block := content.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def held_back(validation: float, lines: int, name: str) -> int:
    """The number of lines that are held back for validation.

    Args:
        validation: As in `load_corpus`.
        lines: How many there are.
        name: What the corpus is called in the message.

    Returns:
        At least one, and fewer than there are.

    Raises:
        DataError: It cannot be so.
    """
    if validation <= 0 or (validation > 1 and validation != int(validation)):
        raise DataError(f"validation must be a share of the lines or their number, not {validation}")
    size = int(validation) if validation >= 1 else max(1, round(validation * lines))
    if size >= lines:
        raise DataError(f"{name}: {lines:,} lines, of which {size:,} cannot be held back for validation")
    return size


def tokenize_corpus(corpus: DatasetDict, tokenizer: PreTrainedTokenizerBase, max_length: int) -> DatasetDict:
    """Turn lines into token ids, once: `datasets` keeps them in its cache.

    Args:
        corpus: What `load_corpus` returned.
        tokenizer: Any tokenizer; the special tokens that it puts round a text are left out.
        max_length: The number of tokens that a line is cut to.

    Returns:
        The splits with the columns `input_ids` (int32), `row` (the line's place in its split, by which it is
        corrupted) and `length` (with the end of the text, which the decoder writes, too). Lines that give no token
        are dropped, and the log says how many.

    Raises:
        DataError: A split has no line with a token.
    """
    tokenized = DatasetDict()
    for split, lines in corpus.items():
        tokenized[split] = lines.map(
            _tokenize_rows,
            batched=True,
            with_indices=True,
            remove_columns=["text"],
            features=Features(
                {"input_ids": datasets.List(Value("int32")), "row": Value("int64"), "length": Value("int32")}
            ),
            fn_kwargs={"tokenizer": tokenizer, "max_length": max_length},
            new_fingerprint=Hasher.hash((lines._fingerprint, _tokenizer_content(tokenizer), max_length)),
            desc="Tokenizing",
        )
    for split, rows in tokenized.items():
        if not len(rows):
            raise DataError(f"{split}: no line has a text")
        if dropped := len(corpus[split]) - len(rows):
            logger.warning(f"{split}: {dropped:,} of {len(corpus[split]):,} lines have no text and are dropped")
    return tokenized


def _tokenizer_content(tokenizer: PreTrainedTokenizerBase) -> Any:
    """What the tokens depend on: where the tokenizer was loaded from, and how it cut or padded last, is not of it."""
    if not tokenizer.is_fast:
        return tokenizer
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    return {**content, "truncation": None, "padding": None}


def _tokenize_rows(
    batch: dict[str, list], rows: list[int], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> dict[str, list]:
    encoded = tokenizer(
        batch["text"],
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    kept = [(row, ids[:max_length]) for row, ids in zip(rows, encoded, strict=True) if ids]
    return {
        "input_ids": [ids for _, ids in kept],
        "row": [row for row, _ in kept],
        "length": [len(ids) + 1 for _, ids in kept],
    }


def stream_corpus(
    files: Sequence[str | os.PathLike],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    *,
    validation: int,
    seed: int = 42,
) -> tuple[IterableDataset, Dataset]:
    """Read and tokenize a corpus while training, for one that is too large to be kept twice on the disk.

    The stream has no end: after the last line comes the first. Its order is drawn from a buffer of `SHUFFLE_BUFFER`
    lines, so the files should not be sorted. It is read by one process and one worker; resuming reads it again from
    the start.

    Args:
        files: As in `load_corpus`.
        tokenizer: As in `tokenize_corpus`.
        max_length: As in `tokenize_corpus`.
        validation: The number of lines held back for validation, the first of the stream.
        seed: Seed of the order.

    Returns:
        The stream and the validation split, with the columns of `tokenize_corpus`; a line that comes again has
        another `row`.

    Raises:
        OSError: A file cannot be read.
        DataError: There is something wrong in the first file, or too few lines are in them.
    """
    files = tuple(os.fspath(file) for file in files)
    lines = chain.from_iterable(map(iterate_lines, files))
    first = [text for _, text in zip(range(int(validation) + 1), lines, strict=False)]
    size = held_back(max(1, validation), len(first), ", ".join(files))
    kwargs = {"tokenizer": tokenizer, "max_length": max_length}
    held = Dataset.from_dict(_tokenize_rows({"text": first[:size]}, list(range(size)), **kwargs))
    if not len(held):
        raise DataError("validation: no line has a text")
    stream = IterableDataset.from_generator(_endless_text_rows, gen_kwargs={"files": files, "start": size})
    stream = stream.shuffle(seed=seed, buffer_size=SHUFFLE_BUFFER)
    stream = stream.map(_tokenize_rows, batched=True, with_indices=True, remove_columns=["text"], fn_kwargs=kwargs)
    return stream, held


def _endless_text_rows(files: tuple[str, ...], start: int) -> Iterator[dict[str, str]]:
    found = True
    while found:
        found = False
        for number, text in enumerate(chain.from_iterable(map(iterate_lines, files))):
            if number >= start and text.strip():
                found = True
                yield {"text": text}
    raise DataError(f"{', '.join(files)}: no line with a text after those held back for validation")


# --- The corruption ---


class SpanInfilling:
    """A collator that hides spans of tokens, each behind one mask, and asks for what was there.

    Of n tokens n * mask_rate are hidden (rounded up or down at random, so that the mean is right; at least one), in
    spans whose lengths are drawn from a Poisson distribution, the last one cut to fit, at places drawn uniformly. As
    in BART, a span may be empty: a mask where nothing is missing. There are never more spans than hidden tokens or
    than tokens left, so no input is longer than its text; where so few spans hide too little, the last takes the rest.

    What happens to a row depends on the seed, the epoch and the row's number alone, not on the batch that it comes in
    nor on the batches before: a resumed run sees what an uninterrupted one sees. Trainer tells the epoch by
    `callback`, and must be told to keep the columns (`remove_unused_columns=False`).

    Args:
        tokenizer: Has a mask, an end of text and a pad.
        config: The model's, which says how decoder inputs start.
        mask_rate: Share of the tokens that are hidden: 0.3 in BART, 0.15 in T5.
        mean_span_length: Mean of the Poisson distribution, at least 1; 3 in both.
        target: What the decoder writes. `"text"`: all of it (BART); `"spans"`: each hidden span behind a mask, in
            their order (T5, whose masks are numbered). The end of text follows.
        seed: Seed of the corruption.

    Raises:
        ValueError: A rate, length or target is impossible, or the tokenizer lacks a token.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        config: VanillaTransformerConfig,
        mask_rate: float = 0.3,
        mean_span_length: float = 3.0,
        target: str = "text",
        seed: int = 0,
    ):
        if not 0 < mask_rate < 1:
            raise ValueError(f"mask_rate must lie between 0 and 1, not be {mask_rate}")
        if not 1 <= mean_span_length <= 100:
            raise ValueError(f"mean_span_length must lie between 1 and 100, not be {mean_span_length}")
        if target not in TARGETS:
            raise ValueError(f"target must be {' or '.join(TARGETS)}, not {target!r}")
        for name in ("mask_token", "eos_token", "pad_token"):
            if getattr(tokenizer, name) is None:
                raise ValueError(f"the tokenizer has no {name}")
        self.mask_token_id = tokenizer.mask_token_id
        self.eos_token_id = tokenizer.eos_token_id
        self.pad_token_id = tokenizer.pad_token_id
        self.decoder_start_token_id = config.decoder_start_token_id
        self.mask_rate = mask_rate
        self.mean_span_length = mean_span_length
        self.target = target
        self.seed = seed
        # Shared, so that the loader's worker processes learn of it, too. -1: nobody has said.
        self._epoch = torch.full((1,), -1).share_memory_()
        lengths = np.arange(1, int(mean_span_length + 12 * mean_span_length**0.5) + 12)
        probabilities = np.exp(-mean_span_length) * np.cumprod(np.append(1.0, mean_span_length / lengths))
        self._poisson = np.cumsum(probabilities)

    def set_epoch(self, epoch: int) -> None:
        """Have the next batches corrupted as this epoch's.

        Args:
            epoch: 0 or more.
        """
        self._epoch[0] = epoch

    @property
    def callback(self) -> TrainerCallback:
        """What makes Trainer tell the epoch."""
        return _EpochCallback(self)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Make a batch.

        Args:
            features: B rows with `input_ids` (n tokens each, n at least 1) and `row`; or, already corrupted, with
                `input_ids` and `labels`.

        Returns:
            `input_ids` and `attention_mask` (B, S), `labels` (B, T) with -100 for pads and `decoder_input_ids`
            (B, T), all int64.

        Raises:
            ValueError: The rows are to be corrupted, but nobody has told the epoch.
        """
        inputs, input_lengths = _flatten(features, "input_ids")
        if "labels" in features[0]:
            labels, label_lengths = _flatten(features, "labels")
        else:
            epoch = int(self._epoch)
            if epoch < 0:
                raise ValueError("the collator does not know the epoch: give its `callback` to the trainer")
            rows = np.fromiter((feature["row"] for feature in features), dtype=np.uint64, count=len(features))
            inputs, input_lengths, labels, label_lengths = self._corrupt(inputs, input_lengths, rows, epoch)
        labels = torch.from_numpy(_pad(labels, label_lengths, -100))
        return {
            "input_ids": torch.from_numpy(_pad(inputs, input_lengths, self.pad_token_id)),
            "attention_mask": torch.from_numpy(_pad(np.ones_like(inputs), input_lengths, 0)),
            "labels": labels,
            "decoder_input_ids": shift_tokens_right(labels, self.pad_token_id, self.decoder_start_token_id),
        }

    def corrupted(self, rows: Dataset) -> Dataset:
        """Corrupt rows once and for all, for a validation loss that can be compared.

        Args:
            rows: With the columns `input_ids` and `row`.

        Returns:
            The rows with `input_ids` and `labels`, corrupted as in epoch 0.
        """

        def corrupt(batch: dict[str, list]) -> dict[str, list]:
            features = [{"input_ids": ids} for ids in batch["input_ids"]]
            numbers = np.array(batch["row"], dtype=np.uint64)
            inputs, input_lengths, labels, label_lengths = self._corrupt(
                *_flatten(features, "input_ids"), numbers, epoch=0
            )
            return {
                "input_ids": np.split(inputs, np.cumsum(input_lengths)[:-1]),
                "labels": np.split(labels, np.cumsum(label_lengths)[:-1]),
            }

        return rows.map(
            corrupt,
            batched=True,
            remove_columns=rows.column_names,
            features=Features({name: datasets.List(Value("int32")) for name in ("input_ids", "labels")}),
            # The collator's own state is not what the result depends on.
            new_fingerprint=Hasher.hash(
                (rows._fingerprint, self.mask_token_id, self.eos_token_id)
                + (self.mask_rate, self.mean_span_length, self.target, self.seed)
            ),
            desc="Corrupting",
        )

    def _corrupt(
        self, ids: np.ndarray, lengths: np.ndarray, rows: np.ndarray, epoch: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Corrupt B texts.

        Args:
            ids: (N,), int64: the tokens of all texts, one after the other.
            lengths: (B,), int64: how many each has.
            rows: (B,), uint64: each text's number.
            epoch: 0 or more.

        Returns:
            Inputs and their lengths, labels and their lengths, in the same form.
        """
        places = np.arange(len(lengths))
        keys = _mix(_mix(_mix(np.array([self.seed], dtype=np.uint64)) + np.uint64(epoch)) + rows)

        # How many tokens are hidden, and in how many spans at most.
        hidden = np.floor(lengths * self.mask_rate + _uniform(keys, 0, 0)).astype(np.int64)
        hidden = np.minimum(np.maximum(hidden, 1), lengths)
        limits = np.minimum(hidden, np.maximum(lengths - hidden, 1))

        # The lengths of the spans, until they hide enough: as many draws a text as its limit, one after the other.
        text = np.repeat(places, limits)
        number = _places_within(limits)
        spans = np.searchsorted(self._poisson, _uniform(keys[text], 1, number), side="right")
        before = np.cumsum(spans) - spans
        before -= np.repeat(before[np.cumsum(limits) - limits], limits)
        is_used = before < hidden[text]
        left = hidden[text] - before
        is_last = number == limits[text] - 1
        spans = np.where(is_last, left, np.minimum(spans, left))[is_used]
        number_of_spans = np.bincount(text[is_used], minlength=len(lengths))

        # A text becomes slots, of which each gives one token of the input: one that is left, or a mask for a span. The
        # slots with the smallest random numbers are the spans.
        input_lengths = lengths - hidden + number_of_spans
        slots = np.repeat(places, input_lengths)
        random = _random(keys[slots], 2, _places_within(input_lengths))
        order = np.argsort((slots.astype(np.uint64) << np.uint64(40)) | (random >> np.uint64(24)), kind="stable")
        chosen = order[_places_within(input_lengths) < np.repeat(number_of_spans, input_lengths)]
        is_span = np.zeros(len(slots), dtype=bool)
        is_span[chosen] = True
        consumed = np.ones(len(slots), dtype=np.int64)
        consumed[chosen] = spans
        starts = np.cumsum(consumed) - consumed
        # An empty span at the end starts after the last token.
        inputs = np.where(is_span, self.mask_token_id, ids[np.minimum(starts, len(ids) - 1)])

        if self.target == "text":
            labels = np.insert(ids, np.cumsum(lengths), self.eos_token_id)
            return inputs, input_lengths, labels, lengths + 1
        # Behind which hidden token each mask and each end of text goes, a text's end after its masks.
        ends = np.cumsum(consumed * is_span)
        positions = np.append((ends - consumed)[is_span], np.cumsum(hidden))
        owners = np.append(slots[is_span], places)
        order = np.argsort(owners, kind="stable")
        signs = np.append(np.full(is_span.sum(), self.mask_token_id), np.full(len(lengths), self.eos_token_id))
        labels = np.insert(ids[np.repeat(is_span, consumed)], positions[order], signs[order])
        return inputs, input_lengths, labels, hidden + number_of_spans + 1


class _EpochCallback(TrainerCallback):
    """Tells a collator which epoch begins, after a resumption, too."""

    def __init__(self, collator: SpanInfilling):
        self.collator = collator

    def on_epoch_begin(self, args, state, control, **kwargs):
        # A float that counts the steps: 1.25 after a quarter of the second epoch.
        self.collator.set_epoch(int(state.epoch or 0))


def _flatten(features: list[dict[str, Any]], name: str) -> tuple[np.ndarray, np.ndarray]:
    """One column's tokens, one row after the other, (N,), and the rows' lengths, (B,), both int64."""
    columns = [feature[name] for feature in features]
    lengths = np.fromiter(map(len, columns), dtype=np.int64, count=len(columns))
    return np.fromiter(chain.from_iterable(columns), dtype=np.int64, count=lengths.sum()), lengths


def _pad(flat: np.ndarray, lengths: np.ndarray, value: int) -> np.ndarray:
    """(N,) to (B, L): each row at the left."""
    padded = np.full((len(lengths), lengths.max()), value, dtype=np.int64)
    padded[np.arange(lengths.max()) < lengths[:, None]] = flat
    return padded


def _places_within(lengths: np.ndarray) -> np.ndarray:
    """0, 1, ... for each of B groups, one after the other: (N,) from (B,)."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _mix(numbers: np.ndarray) -> np.ndarray:
    """SplitMix64's next number after each state (Steele, Lea and Flood 2014, Figure 16): uint64 to uint64.

    A generator of numpy for each row would take longer than all the rest.
    """
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _random(keys: np.ndarray, purpose: int, numbers: np.ndarray | int) -> np.ndarray:
    """Random uint64, by key, by what they are for, and by their number among these."""
    counters = np.asarray(numbers, dtype=np.uint64) + np.uint64(purpose << 32)
    return _mix(keys + counters * np.uint64(0x9E3779B97F4A7C15))


def _uniform(keys: np.ndarray, purpose: int, numbers: np.ndarray | int) -> np.ndarray:
    """The same between 0 and 1, 1 excluded, with 53 random bits."""
    return (_random(keys, purpose, numbers) >> np.uint64(11)) * 2.0**-53


# --- Metrics ---


def token_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Reduce an evaluation's logits while they are at hand (Trainer's `preprocess_logits_for_metrics`).

    Args:
        logits: (B, T, V).
        labels: (B, T), -100 for pads.

    Returns:
        (B, 2), float: each row's sum of losses and number of tokens.
    """
    losses = nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none")
    return torch.stack([losses.view_as(labels).sum(dim=1), (labels != -100).sum(dim=1)], dim=1)


def compute_perplexity(prediction: EvalPrediction) -> dict[str, float]:
    """Measure an evaluation: over all its tokens, where Trainer's `eval_loss` is a mean of batches' means.

    Args:
        prediction: What `token_losses` returned for all rows, (rows, 2).

    Returns:
        `token_loss`, the mean loss of a token without any label smoothing, and its exponential, `perplexity`.
    """
    losses, tokens = prediction.predictions.astype(np.float64).sum(axis=0)
    return {"token_loss": float(losses / tokens), "perplexity": float(np.exp(losses / tokens))}
