import functools
import json
import time
import unicodedata
from pathlib import Path

import pytest
from shared import ROOT
from transformers import AutoTokenizer

from hf_vanilla_transformer.data.nsmc import SAMPLES
from hf_vanilla_transformer.data.tokenizer import (
    SPECIAL_TOKENS,
    has_capitals,
    import_sentencepiece,
    join_spaced_characters,
    train_tokenizer,
)


TEXTS = tuple(line.split("\t")[1] for line in (SAMPLES / "ratings_train.txt").read_text("utf-8").splitlines()[1:])
# What tends to go wrong: spaces, control characters, Hangul letters, marks, emoji, symbols inside words, scripts.
HARD_TEXTS = [
    "",
    "   ",
    " 앞뒤  공백 ",
    "탭\t줄\n끝\r\n",
    "\u200b폭\u200d없는\ufeff공백▁",
    "제어\x07문자\x85\x00",
    "ㅎㅏㄴㅡㄹ 진ㅉㅏ ㅋㅋㅋ ㅠㅠ",
    "화ㄳ 니ㄵ 한\u11a8",
    unicodedata.normalize("NFD", "한글 Ångström ệ が"),
    "①② ＡＢＣ ½ ㎏ ～ Ⅳ ﬁ",
    "ﻻ\u064b Q\u0301 ▁\u0301 \u0301\t",
    "👨‍👩‍👧 ❤️ 🇰🇷 1️⃣ 👍🏽",
    "שָׁלוֹם مُحَمَّد हिन्दी",
    "a[SEP]b [MASK]는 [CLS] 최고 [SEP]",
    "[SEP]영화",
    "<0x41> <unk> 모르는 글자 𐍈𐍈 Ж",
    "aaaaaaa ..... ㅋㅋㅋㅋㅋㅋㅋ!!!!!",
    "가" * 300,
]
# The options of transformer-evolution's vocab.py.
TUTORIAL_FLAGS = {
    **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3},
    **{f"{name.lower()}_piece": f"[{name}]" for name in ("PAD", "UNK", "BOS", "EOS")},
    "user_defined_symbols": "[SEP],[CLS],[MASK]",
}


def normalized_text(tokenizer, text: str) -> str:
    """The text as the tokenizer's model reads it, with plain spaces."""
    backend = tokenizer.backend_tokenizer
    return backend.decoder.decode([backend.normalizer.normalize_str(text)])


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def trained(request):
    return train_tokenizer(TEXTS, vocab_size=1500, model=request.param, max_length=32)


def test_vocabulary_size_counts_the_special_tokens_which_come_first_and_in_no_text(trained):
    assert len(trained) == 1500
    assert trained.convert_tokens_to_ids(list(SPECIAL_TOKENS.values())) == list(range(7))
    for name, token in SPECIAL_TOKENS.items():
        assert getattr(trained, name) == token
    assert not set(trained("정말 재미있는 영화").input_ids) & set(range(7))


def test_batches_are_right_for_the_model_at_once(trained):
    batch = trained(["", "정말 재미있다", "영화 " * 100], padding=True, truncation=True, return_tensors="pt")
    assert list(batch) == ["input_ids", "attention_mask"]
    assert batch.input_ids.shape == (3, 32)
    assert batch.attention_mask.equal((batch.input_ids != trained.pad_token_id).long())
    # Padding comes last, and what is too long loses its end.
    assert batch.attention_mask.diff(dim=1).le(0).all()
    assert batch.input_ids[2].tolist() == trained("영화 " * 100).input_ids[:32]


def test_a_damaged_text_of_spaces_takes_no_time(trained):
    start = time.perf_counter()
    assert trained("영화" + " " * 300_000 + "다").input_ids == trained("영화 다").input_ids
    assert time.perf_counter() - start < 5  # the square of their number would take minutes


def saved_and_loaded(tokenizer, folder):
    """The tokenizer that `AutoTokenizer` finds beside a model."""
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "vanilla_transformer"}))
    return AutoTokenizer.from_pretrained(folder)


def test_reloaded_by_auto_tokenizer_it_is_the_same(trained, tmp_path):
    reloaded = saved_and_loaded(trained, tmp_path)
    assert type(reloaded) is type(trained) and reloaded.clean_up_tokenization_spaces is False
    for setting in ("model_input_names", "model_max_length", "padding_side", "special_tokens_map"):
        assert getattr(reloaded, setting) == getattr(trained, setting)
    for text in (*HARD_TEXTS, *TEXTS[:50]):
        assert reloaded(text, truncation=True).data == trained(text, truncation=True).data, text


ONE_SCRIPT = "영화movie최고10점!! 映画"


@pytest.mark.parametrize(
    ("texts", "options", "text", "pieces"),
    [
        ([ONE_SCRIPT] * 9, {}, ONE_SCRIPT, ["▁영화", "movie", "최고", "10", "점", "!!", "▁映画"]),
        (["영화 최고", "영화"], {}, "영화 최고", ["▁영화", "▁", "최", "고"]),  # or are characters
        # A word occurs twice.
        (["a b b", "a b c"], {"model": "word", "lowercase": True}, "A c b", ["a", "[UNK]", "b"]),
    ],
)
def test_pieces_keep_to_one_script_and_occur_twice(texts, options, text, pieces):
    assert train_tokenizer(texts, vocab_size=100, **options).tokenize(text) == pieces


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_pieces_have_at_most_16_characters(model):
    tokenizer = train_tokenizer(["a" * 40] * 99, vocab_size=80, model=model)
    assert 1 < max(map(len, set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens))) <= 16


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_the_rarest_characters_are_unknown(model):
    """Those that together are at most 0.05 % of all: one of some 3,000, but not two."""
    tokenizer = train_tokenizer(["가" * 3000, "나 다"], vocab_size=60, model=model)
    assert [tokenizer.unk_token_id in tokenizer(character).input_ids for character in "가나다"] == [False, True, False]


def test_words_are_split_from_signs_hyphens_and_endings(tmp_path):
    words = {
        "A man's red T-shirts, aged 3,000.": "A man 's red T - shirts , aged 3 , 000 .",
        "Ten-year-olds say: “No!” 'n'": "Ten - year - olds say : “ No ! ” ' n '",
        "영화가  재미있다... 좋다": "영화가 재미있다 . . . 좋다",
    }
    tokenizer = saved_and_loaded(train_tokenizer([*words] * 2, vocab_size=100, model="word"), tmp_path)
    for text, expected in words.items():
        assert " ".join(tokenizer.tokenize(text)) == expected
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == expected


def test_eos_ends_every_text_on_demand(tmp_path):
    tokenizer = saved_and_loaded(train_tokenizer(TEXTS, vocab_size=1500, add_eos=True, max_length=5), tmp_path)
    plain = train_tokenizer(TEXTS, vocab_size=1500, max_length=4)
    pair = [tokenizer(text).input_ids for text in ("정말", "영화")]
    assert tokenizer("정말", "영화").input_ids == pair[0] + pair[1]
    for text in ("", TEXTS[0]):
        expected = plain(text, truncation=True)["input_ids"] + [tokenizer.eos_token_id]
        assert tokenizer(text, truncation=True)["input_ids"] == expected
        assert tokenizer(text_target=text, truncation=True)["input_ids"] == expected


def test_normalisation_is_that_of_sentencepiece(trained, make_model):
    _, processor = make_model(**TUTORIAL_FLAGS)
    # NFKC makes `～` a `~`, joins a final consonant to the syllable before it, and puts marks in order.
    spared = ("～", "화ㄳ", "שָׁ")
    for text in (*TEXTS, *(text for text in HARD_TEXTS if not any(part in text for part in spared))):
        expected = processor.normalize(text).replace("▁", " ").removeprefix(" ")
        assert normalized_text(trained, text) == expected, text


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_the_same_texts_give_the_same_tokenizer(model):
    first, second = (train_tokenizer(TEXTS, vocab_size=1200, model=model).backend_tokenizer.to_str() for _ in range(2))
    assert first == second


def test_a_tokenizer_is_of_the_kind_of_the_published_ones():
    """All but pieces, merges and lengths: a published recipe is to give the published ids."""
    tokenizer = train_tokenizer(TEXTS, vocab_size=1500)
    join_spaced_characters(tokenizer)
    ours = json.loads(tokenizer.backend_tokenizer.to_str())
    published = json.loads((ROOT / "model_cards" / "nsmc-small" / "tokenizer.json").read_text(encoding="utf-8"))
    for tokenizer in (ours, published):
        del tokenizer["model"]["vocab"], tokenizer["model"]["merges"], tokenizer["truncation"], tokenizer["padding"]
    assert ours == published


def test_lowercase_makes_case_one():
    texts = ["Good Movie good movie"] * 3
    cased, tokenizer = (train_tokenizer(texts, vocab_size=40, lowercase=lowercase) for lowercase in (False, True))
    assert has_capitals(cased) and not has_capitals(tokenizer)
    cased.backend_tokenizer.normalizer = None
    assert has_capitals(cased)
    assert tokenizer("GOOD Movie").input_ids == tokenizer("good movie").input_ids
    assert tokenizer.decode(tokenizer("GOOD").input_ids) == "good"


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["", " \t"], {}, "no texts"),
        (["영화"], {"model": "char"}, "'char'"),
        (["영화"], {"max_length": 0}, "max_length: a whole number, at least 1, not 0"),
        (["영화"], {"vocab_size": 9}, "need 10"),
    ],
)
def test_training_refuses(texts, options, message):
    with pytest.raises(ValueError, match=message):
        train_tokenizer(texts, **options)


def train_sentencepiece(file: Path, model_type="bpe", texts=TEXTS, **flags):
    """Train a SentencePiece model; returns the library's processor."""
    spm = pytest.importorskip("sentencepiece")
    options = {"vocab_size": 1500, "num_threads": 1, "minloglevel": 2, "model_type": model_type, **flags}
    with open(file, "wb") as stream:
        spm.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=stream, **options)
    return spm.SentencePieceProcessor(model_file=str(file))


@pytest.fixture(scope="module")
def make_model(tmp_path_factory):
    """`train_sentencepiece`, once for each setting; returns the model's file and the processor."""

    @functools.cache
    def make(*settings, **flags):
        file = tmp_path_factory.mktemp("models") / "spm.model"
        return file, train_sentencepiece(file, *settings, **flags)

    return make


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize("flags", [TUTORIAL_FLAGS, {**TUTORIAL_FLAGS, "byte_fallback": True}, {}])
def test_an_imported_model_gives_the_ids_of_sentencepiece(make_model, model_type, flags, tmp_path):
    file, processor = make_model(model_type, **{**flags, "vocab_size": 1200})
    tokenizer = saved_and_loaded(import_sentencepiece(file, max_length=5), tmp_path)
    # Special tokens that are written out are found by transformers alone.
    for text in (*TEXTS, *(text for text in HARD_TEXTS if not set("[<") & {*text})):
        assert tokenizer(text).input_ids == processor.encode(text), text
    assert tokenizer(TEXTS[0], truncation=True).input_ids == processor.encode(TEXTS[0])[:5]
    if flags:
        assert tokenizer.special_tokens_map == SPECIAL_TOKENS
        assert sorted(tokenizer.all_special_ids) == list(range(7))
        batch = tokenizer(["", "정말 재미있다"], padding=True, return_tensors="pt")
        assert batch.attention_mask.equal((batch.input_ids != 0).long())
    else:
        assert (tokenizer.unk_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)
        assert tokenizer.pad_token is None
