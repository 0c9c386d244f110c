# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Tokenizers: train a SentencePiece-style vocabulary, or read a SentencePiece `.model` file.

`AutoTokenizer` loads the saved folders without this package. By default, no special tokens are added to a text.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from os import PathLike
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast, SentencePieceBackend

from .errors import DataError, check_at_least


__all__ = ["SPECIAL_TOKENS", "import_sentencepiece", "train_tokenizer"]
logger = logging.getLogger(__name__)

# Ids 0 to 6, in this order.
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "bos_token": "[BOS]",
    "eos_token": "[EOS]",
    "sep_token": "[SEP]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
SPACE_MARK = "▁"
# SentencePiece's defaults: the share of characters that the vocabulary covers, and the maximum length of a piece.
CHARACTER_COVERAGE = 0.9995
MAX_PIECE_LENGTH = 16

# What SentencePiece's default normalization, nmt_nfkc, does besides NFKC.
_CONTROLS = Regex("[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]")
_SPACES = Regex("[\t\n\f\r\u061c\u1680\u200b\u200c\u200e\u200f\u2028\u2029▁\ufeff\ufffd]")
_OUTER_SPACES = Regex(r"\A +| +\z")
_SPACE_RUNS = Regex(" {2,}")
# Between two words of one character each.
_SPACE_BETWEEN_CHARACTERS = "(?<![^ ][^ ]) (?![^ ][^ ])"

# No piece mixes scripts, or letters with digits or signs, as with SentencePiece's split_by_unicode_script and
# split_by_number. Letters of other scripts lie between the matches.
_SCRIPT_RUNS = Regex(
    rf"{SPACE_MARK}?(?:[\p{{Hangul}}\p{{M}}]+|[\p{{Latin}}\p{{M}}]+|[\p{{Han}}\p{{Hiragana}}\p{{Katakana}}ー\p{{M}}]+"
    rf"|\p{{N}}+|[^\p{{L}}\p{{M}}\p{{N}}{SPACE_MARK}]+)"
)
# Splits English much as spaCy, which the tutorials use: man's is `man` `'s`, T-shirt is `T` `-` `shirt`.
_WORDS = Regex(r"(?<=\w)'\w+|\w+|[^\w\s]")


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int = 8007,
    model: str = "bpe",
    lowercase: bool = False,
    max_length: int = 256,
    add_eos: bool = False,
) -> PreTrainedTokenizerFast:
    """Train a SentencePiece-style tokenizer: NFKC, `▁` before words, no byte fallback. Deterministic.

    The rarest characters, at most 0.05 % of the texts, become `[UNK]`. In a vocabulary of words, so does a word that
    occurs once.

    Args:
        texts: The texts to learn from, read twice; those of an iterator are kept in memory.
        vocab_size: Number of pieces and special tokens together. The log warns if the texts yield fewer.
        model: `"bpe"`, `"unigram"`, or `"word"`: whole words, endings like `'s`, and single signs.
        max_length: Maximum number of tokens with `truncation=True`.
        add_eos: Whether to end every text with `[EOS]`, as translation needs.

    Returns:
        A tokenizer with `[PAD] [UNK] [BOS] [EOS] [SEP] [CLS] [MASK]` as ids 0 to 6.

    Raises:
        ValueError: `model` is unknown, `max_length` is less than 1, the texts are empty, or `vocab_size` cannot hold
            the special tokens and the texts' characters.
    """
    if model not in ("bpe", "unigram", "word"):
        raise DataError(f"model must be 'bpe', 'unigram' or 'word', not {model!r}")
    check_at_least(1, max_length=max_length)
    normalizer = _normalizer(lowercase)
    if isinstance(texts, Iterator):
        texts = list(texts)  # they are read twice
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalizer.normalize_str(text))
    del counts[" "]
    if not counts:
        raise DataError("there are no texts to train a tokenizer on")
    rare = _rare_characters(counts)
    minimum = len(SPECIAL_TOKENS) + (0 if model == "word" else len(counts) - len(rare) + len(SPACE_MARK))
    if vocab_size < minimum:
        raise DataError(f"vocab_size is {vocab_size}, but special tokens and the texts' characters need {minimum}")

    tokenizer, trainer = _untrained_tokenizer(model, vocab_size)
    tokenizer.normalizer = normalizer
    if add_eos:
        eos, eos_id = SPECIAL_TOKENS["eos_token"], list(SPECIAL_TOKENS).index("eos_token")
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {eos}", pair=f"$A {eos} $B:1 {eos}:1", special_tokens=[(eos, eos_id)]
        )
    blanks = dict.fromkeys(rare, " ")
    tokenizer.train_from_iterator((normalizer.normalize_str(text).translate(blanks) for text in texts), trainer)
    if model == "unigram":
        _settle_unigram(tokenizer)
    if (size := tokenizer.get_vocab_size()) < vocab_size:
        logger.warning("The texts yield a vocabulary of %d, fewer than the %d asked for.", size, vocab_size)
    return _with_settings(PreTrainedTokenizerFast, SPECIAL_TOKENS, max_length, tokenizer_object=tokenizer)


def _normalizer(lowercase: bool) -> normalizers.Normalizer:
    """Return SentencePiece's default normalization: nmt_nfkc, and no extra spaces."""
    lower = [normalizers.Lowercase()] if lowercase else []
    # Runs first: the other is quadratic in the length of a run.
    spaces = [normalizers.Replace(_SPACE_RUNS, " "), normalizers.Replace(_OUTER_SPACES, "")]
    changed = [normalizers.Replace(_CONTROLS, ""), normalizers.Replace(_SPACES, " ")]
    return normalizers.Sequence([*changed, normalizers.NFKC(), *lower, *spaces])


def _untrained_tokenizer(model: str, vocab_size: int) -> tuple[Tokenizer, trainers.Trainer]:
    special_tokens, unk_token = list(SPECIAL_TOKENS.values()), SPECIAL_TOKENS["unk_token"]
    options: Any = {"vocab_size": vocab_size, "special_tokens": special_tokens, "show_progress": False}
    if model == "word":
        tokenizer = Tokenizer(models.WordLevel(unk_token=unk_token))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(_WORDS, "removed", invert=True)
        return tokenizer, trainers.WordLevelTrainer(min_frequency=2, **options)
    if model == "bpe":
        tokenizer = Tokenizer(models.BPE(unk_token=unk_token, fuse_unk=True))
        trainer = trainers.BpeTrainer(min_frequency=2, max_token_length=MAX_PIECE_LENGTH, **options)
    else:
        tokenizer = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(unk_token=unk_token, max_piece_length=MAX_PIECE_LENGTH, **options)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(SPACE_MARK), pre_tokenizers.Split(_SCRIPT_RUNS, "isolated")]
    )
    tokenizer.decoder = decoders.Metaspace(SPACE_MARK)
    return tokenizer, trainer


def join_spaced_characters(tokenizer: PreTrainedTokenizerBase) -> None:
    """Make a fast tokenizer join words of one character: `최 고 다 ! !` is read as `최고다!!`.

    This changes 3 % of NSMC's reviews as written, mostly `줄 수 있는` to `줄수 있는`.
    """
    if tokenizer.is_fast and json.dumps(_SPACE_BETWEEN_CHARACTERS) not in tokenizer.backend_tokenizer.to_str():
        backend = tokenizer.backend_tokenizer
        join = normalizers.Replace(Regex(_SPACE_BETWEEN_CHARACTERS), "")
        backend.normalizer = normalizers.Sequence([backend.normalizer, join]) if backend.normalizer else join


def has_capitals(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Return whether a tokenizer distinguishes upper and lower case."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    return normalizer is None or normalizer.normalize_str("A") == "A"


def _rare_characters(counts: Counter) -> set[int]:
    """Return the code points of the rarest characters, together at most 0.05 % of all."""
    ordered = sorted(counts.items(), key=lambda item: (item[1], item[0]))
    allowance = (1 - CHARACTER_COVERAGE) * counts.total()
    sums = accumulate(count for _, count in ordered)
    return {ord(character) for (character, _), total in zip(ordered, sums, strict=True) if total <= allowance}


def _settle_unigram(tokenizer: Tokenizer) -> None:
    """Make the trained vocabulary the same in every run: round its scores, and give rare characters the lowest.

    `UnigramTrainer` iterates over hash tables: scores differ in their last digits from run to run. It adds the
    characters that only coverage needs in random order, in steps of 0.0001 from the lowest score upwards.
    """
    vocabulary = [(piece, score) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]]
    special, learned = vocabulary[: len(SPECIAL_TOKENS)], vocabulary[len(SPECIAL_TOKENS) :]
    lowest = min(score for _, score in learned)
    end = lowest + 0.0001 * (1 + sum(len(piece) == 1 for piece, _ in learned))
    settled = [(piece, round(lowest if len(piece) == 1 and score < end else score, 4)) for piece, score in learned]
    settled.sort(key=lambda item: (-item[1], item[0]))
    tokenizer.model = models.Unigram(special + settled, unk_id=list(SPECIAL_TOKENS).index("unk_token"))


def import_sentencepiece(path: str | PathLike, max_length: int = 256) -> SentencePieceBackend:
    """Make a tokenizer from a SentencePiece `.model` file, with the ids of the `sentencepiece` library.

    The library itself splits the texts, so `AutoTokenizer` needs it for the saved folder, too. Special tokens are the
    file's own. Unlike the library, the tokenizer also reads a special token that is written out in a text.

    Args:
        max_length: Maximum number of tokens with `truncation=True`.

    Raises:
        ImportError: `sentencepiece` is not installed.
        OSError: The file cannot be read.
        RuntimeError: It is not a SentencePiece model.
    """
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_file=str(path))
    ids = {f"{name}_token": getattr(processor, f"{name}_id")() for name in ("pad", "unk", "bos", "eos")}
    for name in ("sep", "cls", "mask"):  # SentencePiece has no such names
        written = (processor.piece_to_id(piece) for piece in (f"[{name.upper()}]", f"<{name}>"))
        ids[f"{name}_token"] = next((number for number in written if number != processor.unk_id()), -1)
    special_tokens = {name: processor.id_to_piece(number) for name, number in ids.items() if number >= 0}
    return _with_settings(SentencePieceBackend, special_tokens, max_length, vocab_file=str(path))


def _with_settings(tokenizer_class: type, special_tokens: dict[str, str], max_length: int, **source) -> Any:
    """Wrap a tokenizer: `tokenizer(texts, padding=True, truncation=True)` is the input of our models."""
    return tokenizer_class(
        **source,
        **special_tokens,
        model_max_length=max_length,
        padding_side="right",
        truncation_side="right",
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
