# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Tokenizers: train a SentencePiece-style vocabulary, or import a SentencePiece `.model` file.

Both give a tokenizer whose saved folder `AutoTokenizer` loads with no code of this package. None adds special tokens
round a text, unless asked to: the classifier of the tutorials reads the pieces alone.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

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


logger = logging.getLogger(__name__)

# In the order of their ids, 0 to 6.
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
# SentencePiece's defaults: the share of all characters that have a piece of their own, and the longest piece.
CHARACTER_COVERAGE = 0.9995
MAX_PIECE_LENGTH = 16

# What nmt_nfkc, SentencePiece's default normalisation, does besides NFKC.
_CONTROLS = Regex("[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]")
_SPACES = Regex("[\t\n\f\r\u061c\u1680\u200b\u200c\u200e\u200f\u2028\u2029▁\ufeff\ufffd]")
_OUTER_SPACES = Regex(r"\A +| +\z")
_SPACE_RUNS = Regex(" {2,}")

# No piece crosses from one script to another, or from letters to digits or signs: SentencePiece's
# split_by_unicode_script and split_by_number. Other scripts' letters are what lies between the matches.
_SCRIPT_RUNS = Regex(
    rf"{SPACE_MARK}?(?:[\p{{Hangul}}\p{{M}}]+|[\p{{Latin}}\p{{M}}]+|[\p{{Han}}\p{{Hiragana}}\p{{Katakana}}ー\p{{M}}]+"
    rf"|\p{{N}}+|[^\p{{L}}\p{{M}}\p{{N}}{SPACE_MARK}]+)"
)
# Much as spaCy, which the tutorials use, splits English: man's is `man` `'s`, T-shirt is `T` `-` `shirt`.
_WORDS = Regex(r"(?<=\w)'\w+|\w+|[^\w\s]")
_WORD_SPLIT = pre_tokenizers.Split(_WORDS, "removed", invert=True)


# --- Training ---


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int = 8007,
    model: str = "bpe",
    lowercase: bool = False,
    max_length: int = 256,
    add_eos: bool = False,
) -> PreTrainedTokenizerFast:
    """Train a SentencePiece-style tokenizer: NFKC, words marked by `▁`, whole characters; the same for the same texts.

    Characters outside the most frequent 99.95 % of the texts get no piece and are `[UNK]`; so does, in a vocabulary
    of words, what occurs once.

    Args:
        texts: The texts to learn from.
        vocab_size: Pieces and the seven special tokens together. Few texts may not yield as many; the log says so.
        model: `"bpe"`, `"unigram"`, or `"word"`: whole words, endings like `'s`, and single signs.
        lowercase: Whether upper and lower case are one.
        max_length: Tokens that `truncation=True` keeps.
        add_eos: Whether `[EOS]` ends every text, as translation needs.

    Returns:
        A tokenizer with `[PAD] [UNK] [BOS] [EOS] [SEP] [CLS] [MASK]` as ids 0 to 6.

    Raises:
        ValueError: if `model` is unknown, `max_length` is less than 1, there is nothing in the texts, or `vocab_size`
            cannot hold the special tokens and the texts' characters.
    """
    if model not in ("bpe", "unigram", "word"):
        raise ValueError(f"model must be 'bpe', 'unigram' or 'word', not {model!r}")
    if isinstance(texts, str):
        raise ValueError("texts must be several strings, not a single one")
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1, not {max_length}")

    normalizer = normalizers.Sequence(
        [
            normalizers.Replace(_CONTROLS, ""),
            normalizers.Replace(_SPACES, " "),
            normalizers.NFKC(),
            *([normalizers.Lowercase()] if lowercase else []),
            normalizers.Replace(_SPACE_RUNS, " "),  # first, for the next is quadratic in their length
            normalizers.Replace(_OUTER_SPACES, ""),
        ]
    )
    texts = [normalizer.normalize_str(text) for text in texts]
    counts = Counter(character for text in texts for character in text if character != " ")
    if not counts:
        raise ValueError("there are no texts to train a tokenizer on")
    rare = _rare_characters(counts)
    least = len(SPECIAL_TOKENS) + (0 if model == "word" else len(counts) - len(rare) + len(SPACE_MARK))
    if vocab_size < least:
        raise ValueError(
            f"vocab_size is {vocab_size}, but the special tokens and the texts' characters alone need {least}"
        )

    tokenizer, trainer = _model_and_trainer(model, vocab_size)
    tokenizer.normalizer = normalizer
    if model == "word":
        tokenizer.pre_tokenizer = _WORD_SPLIT
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(SPACE_MARK), pre_tokenizers.Split(_SCRIPT_RUNS, "isolated")]
        )
        tokenizer.decoder = decoders.Metaspace(SPACE_MARK)
    if add_eos:
        eos = SPECIAL_TOKENS["eos_token"]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {eos}",
            pair=f"$A {eos} $B:1 {eos}:1",
            special_tokens=[(eos, list(SPECIAL_TOKENS.values()).index(eos))],
        )
    tokenizer.train_from_iterator((text.translate(dict.fromkeys(rare, " ")) for text in texts), trainer)
    if model == "unigram":
        _settle_unigram(tokenizer)

    if (size := tokenizer.get_vocab_size()) < vocab_size:
        logger.warning("The texts yield a vocabulary of %d, fewer than the %d asked for.", size, vocab_size)
    return _with_settings(PreTrainedTokenizerFast, SPECIAL_TOKENS, max_length, tokenizer_object=tokenizer)


def _model_and_trainer(model: str, vocab_size: int) -> tuple[Tokenizer, trainers.Trainer]:
    """A tokenizer of this kind that knows nothing yet, and what trains it."""
    unknown, special_tokens = SPECIAL_TOKENS["unk_token"], list(SPECIAL_TOKENS.values())
    options = {"vocab_size": vocab_size, "special_tokens": special_tokens, "show_progress": False}
    if model == "bpe":
        trainer = trainers.BpeTrainer(min_frequency=2, max_token_length=MAX_PIECE_LENGTH, **options)
        return Tokenizer(models.BPE(unk_token=unknown, fuse_unk=True)), trainer
    if model == "word":
        return Tokenizer(models.WordLevel(unk_token=unknown)), trainers.WordLevelTrainer(min_frequency=2, **options)
    trainer = trainers.UnigramTrainer(unk_token=unknown, max_piece_length=MAX_PIECE_LENGTH, **options)
    return Tokenizer(models.Unigram()), trainer


def split_words(text: str) -> list[str]:
    """Cut a text as `train_tokenizer(model="word")` does: words, endings like `'s`, and single signs."""
    return [word for word, _ in _WORD_SPLIT.pre_tokenize_str(text)]


def has_capitals(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether upper and lower case are two to a tokenizer."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    return normalizer is None or normalizer.normalize_str("A") == "A"


def _rare_characters(counts: Counter) -> set[int]:
    """Code points of the least frequent characters, which together are 0.05 % of all."""
    allowance = (1 - CHARACTER_COVERAGE) * counts.total()
    rare = set()
    for character, count in sorted(counts.items(), key=lambda item: (item[1], item[0])):
        allowance -= count
        if allowance < 0:
            break
        rare.add(ord(character))
    return rare


def _settle_unigram(tokenizer: Tokenizer) -> None:
    """Make the trained vocabulary the same in every run.

    `UnigramTrainer` walks through hash tables, so that scores differ in their last digits, and the characters that
    are in the vocabulary only because each needs a piece come in random order, 0.0001 apart from the lowest score
    upwards: those all get the lowest score here.
    """
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]
    special, learned = vocabulary[: len(SPECIAL_TOKENS)], vocabulary[len(SPECIAL_TOKENS) :]
    lowest = min(score for _, score in learned)
    end_of_forced = lowest + 0.0001 * (1 + sum(len(piece) == 1 for piece, _ in learned))
    settled = [
        (piece, round(lowest if len(piece) == 1 and score < end_of_forced else score, 4)) for piece, score in learned
    ]
    settled.sort(key=lambda item: (-item[1], item[0]))
    unk_id = list(SPECIAL_TOKENS).index("unk_token")
    tokenizer.model = models.Unigram([tuple(item) for item in special] + settled, unk_id=unk_id)


# --- Import ---


def import_sentencepiece(
    path: str | PathLike, max_length: int = 256, backend: str | None = None
) -> PreTrainedTokenizerBase:
    """Make a tokenizer from a SentencePiece `.model` file, with the ids that the `sentencepiece` library gives.

    A BPE model becomes a plain fast tokenizer. A Unigram model stays in the library's hands by default (transformers
    wraps it; `AutoTokenizer` needs `sentencepiece` to load it): where the same pieces fit in two orders, as in
    `.. ...` and `... ..`, the library takes the one that its 32-bit sums happen to round up, which the 64-bit sums
    of `tokenizers` cannot follow.

    Special tokens are the file's own; one that is written out in a text is recognised, as in any tokenizer of
    transformers, while the library knows its user-defined symbols alone. The fast tokenizer differs from the library
    in four more points: a text that is nothing but one user-defined symbol gets no `▁` before it; a model that folds
    case finds these symbols in any case; several combining marks on one letter, or one on a ligature, may be combined
    or put in order where the library leaves them; and a text of control characters alone has no token, not `▁`, where
    the model keeps extra spaces.

    Args:
        path: The `.model` file.
        max_length: Tokens that `truncation=True` keeps.
        backend: `"tokenizers"`, `"sentencepiece"`, or None for the first where its ids are always the library's,
            else the second. With `"tokenizers"` a Unigram model's ties are settled in its own way.

    Returns:
        A `PreTrainedTokenizerFast`, or transformers' `SentencePieceBackend`.

    Raises:
        ImportError: if `sentencepiece` or `protobuf` is not installed.
        OSError: if the file cannot be read.
        ValueError: if it is not a SentencePiece model, if it is a WORD or CHAR model, if `max_length` is less than 1,
            if `backend` is unknown, or if the model has a setting that `backend="tokenizers"` cannot follow.
    """
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1, not {max_length}")
    if backend not in (None, "tokenizers", "sentencepiece"):
        raise ValueError(f"backend must be 'tokenizers' or 'sentencepiece', not {backend!r}")
    proto, processor = _read_sentencepiece(path)
    obstacle = _obstacle_to_fast(proto)
    if backend == "tokenizers" and obstacle:
        raise ValueError(f"{path}: {obstacle} is not possible with backend='tokenizers'")
    is_unigram = proto.trainer_spec.model_type == proto.trainer_spec.UNIGRAM
    if backend is None:
        backend = "sentencepiece" if is_unigram or obstacle else "tokenizers"

    special_tokens = _special_tokens(proto, processor)
    if backend == "sentencepiece":
        return _with_settings(SentencePieceBackend, special_tokens, max_length, vocab_file=str(path))
    return _with_settings(
        PreTrainedTokenizerFast,
        special_tokens,
        max_length,
        tokenizer_object=_fast_tokenizer(proto, processor, special_tokens),
    )


def _read_sentencepiece(path: str | PathLike):
    """The file as the protocol buffer that it is, and as the library's processor."""
    try:
        from google.protobuf.message import DecodeError
        from sentencepiece import SentencePieceProcessor
        from sentencepiece.sentencepiece_model_pb2 import ModelProto
    except ImportError as error:
        raise ImportError(
            "a SentencePiece model needs two more packages: pip install 'hf-vanilla-transformer[sentencepiece]'"
        ) from error

    content = Path(path).read_bytes()
    try:
        proto = ModelProto.FromString(content)
        if not proto.pieces:
            raise ValueError("no pieces")
        processor = SentencePieceProcessor(model_proto=content)
    except (DecodeError, RuntimeError, ValueError) as error:
        raise ValueError(f"{path}: not a SentencePiece model") from error
    spec = proto.trainer_spec
    if spec.model_type not in (spec.UNIGRAM, spec.BPE):
        name = type(spec).ModelType.Name(spec.model_type)
        raise ValueError(f"{path}: a SentencePiece model of type {name}; only BPE and UNIGRAM can be imported")
    return proto, processor


def _obstacle_to_fast(proto) -> str | None:
    """The model's first setting, if any, that cannot be expressed with `tokenizers`."""
    if proto.trainer_spec.treat_whitespace_as_suffix:
        return "treat_whitespace_as_suffix"
    if not proto.normalizer_spec.escape_whitespaces:
        return "escape_whitespaces=false"
    known_rules = ("nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf", "identity")
    if proto.normalizer_spec.precompiled_charsmap and proto.normalizer_spec.name not in known_rules:
        return f"the normalisation rule {proto.normalizer_spec.name!r}"
    return None


def _special_tokens(proto, processor) -> dict[str, str]:
    """transformers' names of the special tokens that the model has, with their pieces."""
    ids = {
        "pad_token": processor.pad_id(),
        "unk_token": processor.unk_id(),
        "bos_token": processor.bos_id(),
        "eos_token": processor.eos_id(),
    }
    special_tokens = {name: proto.pieces[index].piece for name, index in ids.items() if index >= 0}
    symbols = {
        piece.piece.lower().strip("[]<>"): piece.piece
        for piece in proto.pieces
        if piece.type in (piece.CONTROL, piece.USER_DEFINED) and re.fullmatch(r"\[.*\]|<.*>", piece.piece)
    }
    return special_tokens | {f"{name}_token": symbols[name] for name in ("sep", "cls", "mask") if name in symbols}


def _fast_tokenizer(proto, processor, special_tokens: dict[str, str]) -> Tokenizer:
    """A BPE or Unigram model as `tokenizers` has it.

    transformers' own conversion (`SpmConverter`) is not used: it drops the spaces at both ends of a text only in part,
    puts `▁` after each special token, leaves Hangul letters uncombined, and takes merges from control symbols.
    """
    spec = proto.trainer_spec
    vocabulary = [piece.piece for piece in proto.pieces]
    if spec.model_type == spec.BPE:
        model = models.BPE(
            vocab={piece: index for index, piece in enumerate(vocabulary)},
            merges=_merges(proto),
            unk_token=special_tokens["unk_token"],
            fuse_unk=True,
            byte_fallback=spec.byte_fallback,
        )
    else:
        scored = [(piece.piece, piece.score) for piece in proto.pieces]
        model = models.Unigram(scored, unk_id=processor.unk_id(), byte_fallback=spec.byte_fallback)
    symbols = [piece.piece for piece in proto.pieces if piece.type == piece.USER_DEFINED]
    hidden = [piece.piece for piece in proto.pieces if piece.type in (piece.CONTROL, piece.UNKNOWN)]

    # No pre-tokenizer: like SentencePiece, the model sees the whole text, so pieces may hold spaces.
    tokenizer = Tokenizer(model)
    normalization = _normalization(proto, processor)
    normalized_symbols = [normalizers.Sequence(normalization).normalize_str(symbol) for symbol in symbols]
    tokenizer.normalizer = normalizers.Sequence(normalization + _space_marks(proto, normalized_symbols))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE_MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
        + ([decoders.Strip(" ", left=1)] if proto.normalizer_spec.add_dummy_prefix else [])
    )
    # User-defined symbols are looked for in the normalised text, so that the spaces round them stay.
    tokenizer.add_special_tokens([AddedToken(piece, normalized=False, special=True) for piece in hidden])
    named = set(special_tokens.values())
    tokenizer.add_tokens([AddedToken(piece, normalized=True, special=piece in named) for piece in symbols])
    return tokenizer


def _merges(proto) -> list[tuple[str, str]]:
    """Every pair of pieces that makes a piece, the best piece first: SentencePiece goes by the score of the whole."""
    normal = sorted((piece for piece in proto.pieces if piece.type == piece.NORMAL), key=lambda piece: -piece.score)
    known = {piece.piece for piece in normal}
    return [
        (whole[:cut], whole[cut:])
        for whole in (piece.piece for piece in normal)
        for cut in range(1, len(whole))
        if whole[:cut] in known and whole[cut:] in known
    ]


def _normalization(proto, processor) -> list[normalizers.Normalizer]:
    """The model's character map, and its rule for runs of spaces.

    `tokenizers` applies the map to one grapheme at a time, which leaves out what SentencePiece combines across
    graphemes (Hangul letters: ㅎ + ㅏ is 하) and loses marks. So NFKC does the combining, and noncharacters keep it
    from what SentencePiece leaves alone: a final consonant after a whole syllable (화ㄳ), the order of marks, and `～`
    where the map spares it. Another one before each mark, and within CR LF, makes each a grapheme of its own.
    """
    charsmap = proto.normalizer_spec.precompiled_charsmap
    steps = [normalizers.Precompiled(charsmap)] if charsmap else []
    if "하" in processor.normalize("ㅎㅏ"):
        # What NFKC turns into a final consonant.
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
        # At the end, SentencePiece takes a literal ▁ for a space.
        steps += [normalizers.Replace(_SPACE_RUNS, " "), normalizers.Replace(Regex(rf"\A +|[ {SPACE_MARK}]+\z"), "")]
    return steps


def _space_marks(proto, symbols: list[str]) -> list[normalizers.Normalizer]:
    """Spaces become `▁`, and one is put before the text where the model says so, unless it is one of the symbols."""
    steps = [normalizers.Replace(" ", SPACE_MARK)]
    if proto.normalizer_spec.add_dummy_prefix:
        # `tokenizers` normalises the symbols that it looks for as well, and must find them in mid-text.
        alone = "|".join(re.escape(symbol) for symbol in symbols)
        start = rf"\A(?!(?:{alone})\z)(?=[\s\S])" if symbols else r"\A(?=[\s\S])"
        steps.append(normalizers.Replace(Regex(start), SPACE_MARK))
    return steps


# --- Both ---


def _with_settings(
    tokenizer_class: type[PreTrainedTokenizerBase], special_tokens: dict[str, str], max_length: int, **source
) -> PreTrainedTokenizerBase:
    """Wrap a tokenizer so that `tokenizer(texts, padding=True, truncation=True)` is what our models read."""
    return tokenizer_class(
        **source,
        **special_tokens,
        model_max_length=max_length,
        padding_side="right",
        truncation_side="right",
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
