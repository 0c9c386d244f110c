# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Tokenizers: train a SentencePiece-style vocabulary, or import a SentencePiece `.model` file.

`AutoTokenizer` loads the saved folders without this package. By default, no special tokens are added to a text.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast, SentencePieceBackend

from .characters import part_that_matters, tokenizer_errors
from .errors import DataError


__all__ = [
    "SPECIAL_TOKENS",
    "encode",
    "import_sentencepiece",
    "split_words",
    "train_tokenizer",
]
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
# split_by_number. Letters of other scripts are what lies between the matches.
_SCRIPT_RUNS = Regex(
    rf"{SPACE_MARK}?(?:[\p{{Hangul}}\p{{M}}]+|[\p{{Latin}}\p{{M}}]+|[\p{{Han}}\p{{Hiragana}}\p{{Katakana}}ー\p{{M}}]+"
    rf"|\p{{N}}+|[^\p{{L}}\p{{M}}\p{{N}}{SPACE_MARK}]+)"
)
# Splits English much as spaCy, which the tutorials use: man's is `man` `'s`, T-shirt is `T` `-` `shirt`.
_WORDS = Regex(r"(?<=\w)'\w+|\w+|[^\w\s]")
_WORD_SPLIT = pre_tokenizers.Split(_WORDS, "removed", invert=True)


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int = 8007,
    model: str = "bpe",
    lowercase: bool = False,
    max_length: int = 256,
    add_eos: bool = False,
) -> PreTrainedTokenizerFast:
    """Train a SentencePiece-style tokenizer: NFKC, `▁` before words, no byte fallback. Deterministic.

    The rarest characters, at most 0.05 % of the texts, become `[UNK]`; in a vocabulary of words, so does a word that
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
        ValueError: `model` is unknown, `max_length` is less than 1, the texts are empty, or `vocab_size` is too
            large, or cannot hold the special tokens and the texts' characters.
    """
    if model not in ("bpe", "unigram", "word"):
        raise DataError(f"model must be 'bpe', 'unigram' or 'word', not {model!r}")
    if isinstance(texts, str):
        raise DataError("texts must be several strings, not a single one")
    if max_length < 1:
        raise DataError(f"max_length must be at least 1, not {max_length}")
    if vocab_size > 10**8:  # the library would end the process
        raise DataError(f"vocab_size: {vocab_size} is too large, it takes {256 * vocab_size:,} bytes")
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
    least = len(SPECIAL_TOKENS) + (0 if model == "word" else len(counts) - len(rare) + len(SPACE_MARK))
    if vocab_size < least:
        raise DataError(f"vocab_size is {vocab_size}, but special tokens and the texts' characters need {least}")

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
    """SentencePiece's default normalization: nmt_nfkc, and no extra spaces."""
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
        tokenizer.pre_tokenizer = _WORD_SPLIT
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
    """Have a fast tokenizer join words of one character: `최 고 다 ! !` is read as `최고다!!`.

    This changes 3 % of NSMC's reviews as written, mostly `줄 수 있는` to `줄수 있는`.
    """
    if tokenizer.is_fast and json.dumps(_SPACE_BETWEEN_CHARACTERS) not in tokenizer.backend_tokenizer.to_str():
        backend = tokenizer.backend_tokenizer
        join = normalizers.Replace(Regex(_SPACE_BETWEEN_CHARACTERS), "")
        backend.normalizer = normalizers.Sequence([backend.normalizer, join]) if backend.normalizer else join


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: list[str], tokens: float, **options: Any) -> Any:
    """What a tokenizer makes of the characters of each text that can still matter to so many tokens."""
    with tokenizer_errors(tokenizer.name_or_path):
        return tokenizer(part_that_matters(texts, tokens, tokenizer.truncation_side), **options)


def encode(texts: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int | None = None) -> list[list[int]]:
    """Turn texts into token ids, at least one per text, since the model needs one.

    Args:
        max_length: The number of tokens that a text is truncated to; by default `tokenizer.model_max_length`.

    Returns:
        The ids of each text. A text without tokens (zero-width characters, say) becomes the unknown token.

    Raises:
        ValueError: The tokenizer has no unknown token.
    """
    if tokenizer.unk_token_id is None:
        raise DataError("the tokenizer has no unk_token")
    unused = {"return_attention_mask": False, "return_token_type_ids": False}
    limit = max_length or tokenizer.model_max_length
    encoded = tokenize(tokenizer, texts, limit, truncation=True, max_length=max_length, **unused)
    return [ids or [tokenizer.unk_token_id] for ids in encoded["input_ids"]]


def split_words(text: str) -> list[str]:
    """Cut a text as `train_tokenizer(model="word")` does: words, endings like `'s`, and single signs."""
    return [word for word, _ in _WORD_SPLIT.pre_tokenize_str(text)]


def has_capitals(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether a tokenizer distinguishes upper and lower case."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    return normalizer is None or normalizer.normalize_str("A") == "A"


def _rare_characters(counts: Counter) -> set[int]:
    """The code points of the rarest characters, which together are at most 0.05 % of all."""
    ordered = sorted(counts.items(), key=lambda item: (item[1], item[0]))
    allowance = (1 - CHARACTER_COVERAGE) * counts.total()
    sums = accumulate(count for _, count in ordered)
    return {ord(character) for (character, _), total in zip(ordered, sums, strict=True) if total <= allowance}


def _settle_unigram(tokenizer: Tokenizer) -> None:
    """Make the trained vocabulary the same in every run: round its scores, and give rare characters the lowest.

    `UnigramTrainer` iterates over hash tables: scores differ in their last digits from run to run. Characters that are
    there only for coverage come in random order, 0.0001 apart from the lowest score upwards.
    """
    vocabulary = [(piece, score) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]]
    special, learned = vocabulary[: len(SPECIAL_TOKENS)], vocabulary[len(SPECIAL_TOKENS) :]
    lowest = min(score for _, score in learned)
    end = lowest + 0.0001 * (1 + sum(len(piece) == 1 for piece, _ in learned))
    settled = [(piece, round(lowest if len(piece) == 1 and score < end else score, 4)) for piece, score in learned]
    settled.sort(key=lambda item: (-item[1], item[0]))
    tokenizer.model = models.Unigram(special + settled, unk_id=list(SPECIAL_TOKENS).index("unk_token"))


def import_sentencepiece(
    path: str | PathLike, max_length: int = 256, backend: str | None = None
) -> PreTrainedTokenizerBase:
    """Make a tokenizer from a SentencePiece `.model` file (a path), with the ids of the `sentencepiece` library.

    A BPE model becomes a `PreTrainedTokenizerFast`. A Unigram model keeps the library by default, in transformers'
    `SentencePieceBackend` (`AutoTokenizer` then needs `sentencepiece`): where the same pieces fit in two orders, the
    library's 32-bit sums break the tie by rounding, and the 64-bit sums of `tokenizers` may break it otherwise.

    Special tokens are the file's own. Written out in a text they are recognised, as in any tokenizer of transformers;
    the library recognises only user-defined symbols. The fast tokenizer differs from the library in four more points:

    - A text that is exactly one user-defined symbol gets no `▁` before it.
    - A model that folds case finds user-defined symbols in any case.
    - Several combining marks on one letter, or one on a ligature, may be combined or reordered.
    - A text of control characters alone has no token, instead of `▁`, if the model keeps extra spaces.

    Args:
        max_length: Maximum number of tokens with `truncation=True`.
        backend: `"tokenizers"`, `"sentencepiece"`, or None: the former if its ids always equal the library's, else
            the latter. `"tokenizers"` breaks a Unigram model's ties in its own way.

    Raises:
        ImportError: `sentencepiece` or `protobuf` is not installed.
        OSError: the file cannot be read.
        ValueError: it is not a SentencePiece model, or one of type WORD or CHAR; `max_length` is less than 1;
            `backend` is unknown; or `backend="tokenizers"` cannot follow a setting of the model.
    """
    if max_length < 1:
        raise DataError(f"max_length must be at least 1, not {max_length}")
    if backend not in (None, "tokenizers", "sentencepiece"):
        raise DataError(f"backend must be 'tokenizers' or 'sentencepiece', not {backend!r}")
    proto, processor = _read_sentencepiece(path)
    obstacle, special_tokens = _obstacle_to_fast(proto), _special_tokens(proto, processor)
    if backend == "tokenizers" and obstacle:
        raise DataError(f"{path}: {obstacle} is not possible with backend='tokenizers'")
    is_bpe = proto.trainer_spec.model_type == proto.trainer_spec.BPE
    if backend == "sentencepiece" or (backend is None and (obstacle or not is_bpe)):
        return _with_settings(SentencePieceBackend, special_tokens, max_length, vocab_file=str(path))
    tokenizer = _fast_tokenizer(proto, processor, special_tokens)
    return _with_settings(PreTrainedTokenizerFast, special_tokens, max_length, tokenizer_object=tokenizer)


def _read_sentencepiece(path: str | PathLike):
    """The file as a protocol buffer and as the library's processor."""
    try:
        from google.protobuf.message import DecodeError
        from sentencepiece import SentencePieceProcessor
        from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]  # made at import
    except ImportError as error:
        command = "pip install 'hf-vanilla-transformer[sentencepiece]'"
        raise ImportError(f"a SentencePiece model needs two more packages: {command}") from error

    content = Path(path).read_bytes()
    try:
        proto = ModelProto.FromString(content)
        proto.pieces[0]  # an IndexError where there are none
        processor = SentencePieceProcessor(model_proto=content)
    except (DecodeError, IndexError, RuntimeError, ValueError) as error:
        raise DataError(f"{path}: not a SentencePiece model") from error
    spec = proto.trainer_spec
    if (name := type(spec).ModelType.Name(spec.model_type)) not in ("UNIGRAM", "BPE"):
        raise DataError(f"{path}: a SentencePiece model of type {name}; only BPE and UNIGRAM can be imported")
    return proto, processor


def _obstacle_to_fast(proto) -> str | None:
    """The model's first setting, if any, that `tokenizers` cannot express."""
    rules = proto.normalizer_spec
    if proto.trainer_spec.treat_whitespace_as_suffix or not rules.escape_whitespaces:
        return "treat_whitespace_as_suffix" if rules.escape_whitespaces else "escape_whitespaces=false"
    is_known = rules.name in ("nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf", "identity")
    return f"the normalisation rule {rules.name!r}" if rules.precompiled_charsmap and not is_known else None


def _special_tokens(proto, processor) -> dict[str, str]:
    """The model's special tokens by transformers' names."""
    ids = {name: getattr(processor, f"{name}_id")() for name in ("pad", "unk", "bos", "eos")}
    special_tokens = {f"{name}_token": proto.pieces[index].piece for name, index in ids.items() if index >= 0}
    symbols = {
        piece.piece.lower().strip("[]<>"): piece.piece
        for piece in proto.pieces
        if piece.type in (piece.CONTROL, piece.USER_DEFINED) and re.fullmatch(r"\[.*\]|<.*>", piece.piece)
    }
    return special_tokens | {f"{name}_token": symbols[name] for name in ("sep", "cls", "mask") if name in symbols}


def _fast_tokenizer(proto, processor, special_tokens: dict[str, str]) -> Tokenizer:
    """Convert a BPE or Unigram model to `tokenizers`.

    transformers' `SpmConverter` (5.24) leaves Hangul letters uncombined: other ids for 152 of NSMC's 200,000 reviews.
    """
    spec = proto.trainer_spec
    if spec.model_type == spec.BPE:
        ids = {piece.piece: index for index, piece in enumerate(proto.pieces)}
        options = {"unk_token": special_tokens["unk_token"], "fuse_unk": True, "byte_fallback": spec.byte_fallback}
        model = models.BPE(vocab=ids, merges=_merges(proto), **options)
    else:
        scored = [(piece.piece, piece.score) for piece in proto.pieces]
        model = models.Unigram(scored, unk_id=processor.unk_id(), byte_fallback=spec.byte_fallback)
    symbols = [piece.piece for piece in proto.pieces if piece.type == piece.USER_DEFINED]
    hidden = [piece.piece for piece in proto.pieces if piece.type in (piece.CONTROL, piece.UNKNOWN)]

    # No pre-tokenizer: as in SentencePiece, pieces may contain spaces.
    tokenizer = Tokenizer(model)
    normalization = _normalization(proto, processor)
    normalized_symbols = [normalizers.Sequence(normalization).normalize_str(symbol) for symbol in symbols]
    tokenizer.normalizer = normalizers.Sequence(normalization + _space_marks(proto, normalized_symbols))
    strip = [decoders.Strip(" ", left=1)] if proto.normalizer_spec.add_dummy_prefix else []
    steps = [decoders.Replace(SPACE_MARK, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    tokenizer.decoder = decoders.Sequence(steps)
    # Found in the normalized text, so that the spaces round them stay.
    tokenizer.add_special_tokens([AddedToken(piece, normalized=False, special=True) for piece in hidden])
    named = set(special_tokens.values())
    tokenizer.add_tokens([AddedToken(piece, normalized=True, special=piece in named) for piece in symbols])
    return tokenizer


def _merges(proto) -> list[tuple[str, str]]:
    """All pairs of pieces that make a piece, the highest-scoring result first, as SentencePiece ranks merges."""
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type == piece.NORMAL}
    ranked = sorted(scores, key=scores.__getitem__, reverse=True)
    halves = ((whole[:cut], whole[cut:]) for whole in ranked for cut in range(1, len(whole)))
    return [pair for pair in halves if scores.keys() >= set(pair)]


def _normalization(proto, processor) -> list[normalizers.Normalizer]:
    """The model's character map, and its rule for runs of spaces.

    `tokenizers` applies the map to one grapheme at a time: it loses marks, and does not combine across graphemes as
    SentencePiece does (ㅎ + ㅏ is 하). So NFKC combines. Noncharacters, removed afterwards, protect what SentencePiece
    leaves alone: a final consonant after a whole syllable (화ㄳ), the order of marks, and `～` if the map spares it.
    They also stand before each mark and within CR LF, so that each becomes its own grapheme.
    """
    charsmap = proto.normalizer_spec.precompiled_charsmap
    steps: list[normalizers.Normalizer] = [normalizers.Precompiled(charsmap)] if charsmap else []
    if "하" in processor.normalize("ㅎㅏ"):
        # Characters that NFKC turns into a final consonant.
        finals = "\u11a8-\u11c2\u3133\u3135\u3136\u313a-\u3140\u3144\uffa3\uffa5\uffa6\uffaa-\uffb0\uffb4"
        no_combining = Regex(rf"(?<=[가-힣])(?=[{finals}])|(?<=\p{{M}})(?=[\p{{M}}&&[^\u0300-\u0345]])")
        steps = [
            normalizers.Replace(no_combining, "\uffff"),
            normalizers.NFKC(),
            normalizers.Replace(Regex(r"(?<=.)(?=\p{M})|(?<=\r)(?=\n)"), "\uffff"),
            *steps,
            normalizers.Replace("\uffff", ""),
        ]
        if "～" in processor.normalize("～"):
            steps = [normalizers.Replace("～", "\ufffe"), *steps, normalizers.Replace("\ufffe", "～")]
    if proto.normalizer_spec.remove_extra_whitespaces:
        # SentencePiece also strips a literal ▁ at the end.
        steps += [normalizers.Replace(_SPACE_RUNS, " "), normalizers.Replace(Regex(rf"\A +|[ {SPACE_MARK}]+\z"), "")]
    return steps


def _space_marks(proto, symbols: list[str]) -> list[normalizers.Normalizer]:
    """Replace spaces with `▁`; with `add_dummy_prefix`, put one before a text that is not one of the symbols."""
    if not proto.normalizer_spec.add_dummy_prefix:
        return [normalizers.Replace(" ", SPACE_MARK)]
    # `tokenizers` also normalizes the symbols that it searches for; with `▁`, it would miss them in mid-text.
    alone = "|".join(re.escape(symbol) for symbol in symbols)
    start = rf"\A(?!(?:{alone})\z)(?=[\s\S])" if symbols else r"\A(?=[\s\S])"
    return [normalizers.Replace(" ", SPACE_MARK), normalizers.Replace(Regex(start), SPACE_MARK)]


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
