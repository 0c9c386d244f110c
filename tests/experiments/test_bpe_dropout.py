"""BPE-dropout: other pieces, the same texts, and the same for the same seed."""

from random import Random

import pytest
from bpe_dropout import BpeDropout, draw_segmentations
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from hf_vanilla_transformer.data.labelled_text import encode, load_labelled_text
from hf_vanilla_transformer.tokenizer import train_tokenizer


UNUSUAL = "qqq ㋿ Æ\u0301 ▁▁ !?!? 10,000원"


@pytest.fixture(scope="module")
def reviews():
    return load_labelled_text("sample")["train"]["text"][:300]


@pytest.fixture(scope="module")
def tokenizer(reviews):
    return train_tokenizer(reviews, vocab_size=1500, add_eos=True)


def train_bpe(texts, pre_tokenizer, decoder=None, **options):
    """A tokenizer of another kind."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoder
    trainer = trainers.BpeTrainer(vocab_size=1500, special_tokens=["[UNK]"], show_progress=False, **options)
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")


@pytest.mark.parametrize("kind", ["SentencePiece", "byte level"])
def test_the_pieces_are_the_tokenizers_without_dropout_and_others_of_the_same_text_with_it(reviews, tokenizer, kind):
    if kind == "byte level":
        tokenizer = train_bpe(reviews, pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel())
    ids = encode([*reviews, UNUSUAL], tokenizer)
    assert kind == "byte level" or tokenizer.unk_token_id in ids[-1]
    assert [BpeDropout(tokenizer, 0)(text, Random(1)) for text in ids] == ids
    cut = [BpeDropout(tokenizer, 0.3)(text, Random(1)) for text in ids]
    assert cut != ids and tokenizer.batch_decode(cut) == tokenizer.batch_decode(ids)


def test_merges_are_left_out_at_the_rate(tokenizer):
    # ▁, 영, 화: the word stays in three pieces where each merge that is possible at first is left out.
    word = tokenizer("영화", add_special_tokens=False)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(word) == ["▁영화"]
    dropout, generator = BpeDropout(tokenizer, 0.3), Random(7)
    possible = [pair in dropout.ranks for pair in (("▁", "영"), ("영", "화"))]
    counts = [len(dropout(word, generator)) for _ in range(20_000)]
    assert counts.count(3) / 20_000 == pytest.approx(0.3 ** sum(possible), abs=0.01)


def test_each_copy_of_each_row_has_random_numbers_of_its_own(reviews, tokenizer):
    ids = encode([*reviews, UNUSUAL], tokenizer)
    numbers = {"length": list(map(len, ids)), "row": range(len(ids))}
    rows = Dataset.from_dict({"input_ids": ids, "labels": ids, **numbers, "probabilities": [[0.01] * 100] * len(ids)})

    def draw(rows, columns=("input_ids", "labels"), rate=0.1, max_length=10_000, seed=5):
        drawn = draw_segmentations(rows, dict.fromkeys(columns, tokenizer), rate, 3, max_length, seed)
        sides = zip(*(drawn[column] for column in columns), strict=True)
        assert drawn["length"][:] == [max(map(len, row)) for row in sides]
        return drawn

    drawn = draw(rows)
    assert drawn["row"][:] == 3 * list(range(len(ids)))
    copies = [drawn["input_ids"][copy * len(ids) : (copy + 1) * len(ids)] for copy in range(3)]
    assert copies[0] != copies[1] != copies[2] != copies[0]
    assert copies[0] != drawn["labels"][: len(ids)]
    # The same for the same seed, whichever rows come with it.
    assert draw(rows)[:] == drawn[:] != draw(rows, seed=6)[:]
    assert draw(rows.select(range(10)))["input_ids"][:10] == copies[0][:10]
    # A column that no tokenizer is given for stays, and so does a text that would become too long.
    assert draw(rows, columns=["input_ids"])["labels"][:] == 3 * ids
    assert draw(rows, rate=0.9, max_length=1)["input_ids"][:] == 3 * ids


def test_an_added_token_stays_whole(reviews):
    tokenizer = train_tokenizer(reviews, vocab_size=1500)
    assert tokenizer.tokenize("영화") == ["▁영화"]
    tokenizer.add_tokens(["▁영화"])
    ids = tokenizer("영화 ▁영화")["input_ids"]
    whole = tokenizer.convert_tokens_to_ids("▁영화")
    cut = [BpeDropout(tokenizer, 0.9)(ids, Random(seed)) for seed in range(20)]
    assert all(text.count(whole) == ids.count(whole) for text in cut)


def test_other_tokenizers_are_refused(reviews):
    for other in (
        train_tokenizer(reviews, vocab_size=1500, model="unigram"),
        train_bpe(reviews, pre_tokenizers.Whitespace(), continuing_subword_prefix="##"),
        train_bpe(reviews, pre_tokenizers.Whitespace(), end_of_word_suffix="</w>"),
    ):
        with pytest.raises(ValueError, match="needs a fast tokenizer with a BPE vocabulary"):
            BpeDropout(other, 0.1)
    other = train_bpe(reviews, pre_tokenizers.Whitespace())
    ids = other(reviews)["input_ids"]
    rows = Dataset.from_dict({"input_ids": ids, "length": list(map(len, ids))})
    with pytest.raises(ValueError, match="cannot follow this tokenizer"):
        draw_segmentations(rows, {"input_ids": other}, 0.1, 2, 1000, 1)
