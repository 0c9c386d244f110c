# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Denoising pretraining: a corpus of plain text, and the corruption that an encoder-decoder learns to undo.

BART (Lewis et al. 2020, §2.2, "Text Infilling") replaces spans of tokens by one mask each and has the decoder write
the whole text; T5 (Raffel et al. 2020, §3.1.4, with the spans of §3.3.4) has it write only what is missing.
"""

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
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase, TrainerCallback

from .configuration_vanilla_transformer import VanillaTransformerConfig
from .data import DataError, iterate_lines
from .modeling_vanilla_transformer import shift_tokens_right
from .record import file_checksum


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
    if not validation > 0 or (validation > 1 and validation % 1 != 0):  # also where it is NaN, or infinite
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
        if "labels" in features[0]:
            pairs = [(feature["input_ids"], feature["labels"]) for feature in features]
        elif (epoch := int(self._epoch)) >= 0:
            pairs = [self.corrupt(feature["input_ids"], feature["row"], epoch) for feature in features]
        else:
            raise ValueError("the collator does not know the epoch: give its `callback` to the trainer")
        inputs, labels = (
            [torch.as_tensor(ids, dtype=torch.long) for ids in side] for side in zip(*pairs, strict=True)
        )
        labels = pad_sequence(labels, batch_first=True, padding_value=-100)
        return {
            "input_ids": pad_sequence(inputs, batch_first=True, padding_value=self.pad_token_id),
            "attention_mask": pad_sequence([torch.ones_like(ids) for ids in inputs], batch_first=True),
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

        def corrupt(row: dict[str, Any]) -> dict[str, np.ndarray]:
            inputs, labels = self.corrupt(row["input_ids"], row["row"], epoch=0)
            return {"input_ids": inputs, "labels": labels}

        return rows.map(
            corrupt,
            remove_columns=rows.column_names,
            features=Features({name: datasets.List(Value("int32")) for name in ("input_ids", "labels")}),
            # The collator's own state is not what the result depends on.
            new_fingerprint=Hasher.hash(
                (rows._fingerprint, self.mask_token_id, self.eos_token_id)
                + (self.mask_rate, self.mean_span_length, self.target, self.seed)
            ),
            desc="Corrupting",
        )

    def corrupt(self, ids: Sequence[int], row: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Corrupt a text.

        Args:
            ids: Its tokens, n of them.
            row: Its number.
            epoch: 0 or more.

        Returns:
            The encoder's input and the labels, int64.
        """
        ids = np.asarray(ids, dtype=np.int64)
        generator = np.random.default_rng([self.seed, epoch, row])
        hidden = int(len(ids) * self.mask_rate + generator.random())
        hidden = min(max(hidden, 1), len(ids))

        most_spans = min(hidden, max(len(ids) - hidden, 1))
        spans, left = [], hidden
        for length in generator.poisson(self.mean_span_length, most_spans).tolist():
            spans.append(min(length, left))
            left -= spans[-1]
            if left == 0:
                break
        spans[-1] += left
        spans = generator.permutation(spans)  # the one that is cut to fit is not always the last

        # A text becomes slots, of which each gives one token of the input: one that is left, or a mask for a span.
        slots = len(ids) - hidden + len(spans)
        is_span = np.zeros(slots, dtype=bool)
        is_span[generator.choice(slots, size=len(spans), replace=False)] = True
        sizes = np.ones(slots, dtype=np.int64)
        sizes[is_span] = spans
        starts = np.cumsum(sizes) - sizes
        # An empty span at the end starts after the last token.
        inputs = np.where(is_span, self.mask_token_id, np.append(ids, self.mask_token_id)[starts])

        if self.target == "text":
            return inputs, np.append(ids, self.eos_token_id)
        pieces = [ids[start : start + size] for start, size in zip(starts[is_span], spans, strict=True)]
        labels = [part for piece in pieces for part in ([self.mask_token_id], piece)]
        return inputs, np.concatenate([*labels, [self.eos_token_id]])


class _EpochCallback(TrainerCallback):
    """Tells a collator which epoch begins, after a resumption, too."""

    def __init__(self, collator: SpanInfilling):
        self.collator = collator

    def on_epoch_begin(self, args, state, control, **kwargs):
        # A float that counts the steps: 1.25 after a quarter of the second epoch.
        self.collator.set_epoch(int(state.epoch or 0))
