"""Spaces drawn anew for each text and epoch."""

import pytest

from hf_vanilla_transformer.data.changes import all_spaced, no_spaces
from hf_vanilla_transformer.data.labelled_text import encode
from hf_vanilla_transformer.data.tokenizer import join_spaced_characters, train_tokenizer
from hf_vanilla_transformer.training.augmentation import AugmentingCollator


TEXT = "정말 재미있고 감동적인 영화"


@pytest.fixture
def tokenizer():
    return train_tokenizer([TEXT, "최고다!! ㅠㅠ", "잘 만든 0 1 2 3 4 5 6 7 8 9"], vocab_size=60)


@pytest.fixture
def collator(tokenizer) -> AugmentingCollator:
    collator = AugmentingCollator(tokenizer, 3, ["spacing"])
    collator.set_epoch(0)
    return collator


def test_each_spacing_is_drawn_as_often(collator):
    drawn = [collator.change(TEXT, epoch) for epoch in range(400)]
    counts = [drawn.count(text) for text in (TEXT, no_spaces(TEXT), all_spaced(TEXT))]
    counts.append(400 - sum(counts))  # at random
    assert min(counts) > 70 and len(set(drawn)) > 50


def test_every_second_text_has_a_slip(tokenizer):
    collator = AugmentingCollator(tokenizer, 3, ["typing_slip"])
    assert 80 < sum(collator.change(TEXT, epoch) != TEXT for epoch in range(200)) < 120


def test_a_draw_depends_on_seed_epoch_and_text_alone(collator, tokenizer):
    texts = [f"{TEXT} {number}" for number in range(20)]
    rows = [{"text": text, "labels": number, "length": 5} for number, text in enumerate(texts)]
    batch = collator(rows)
    assert batch.keys() == {"input_ids", "attention_mask", "labels"}
    expected = encode([collator.change(text, 0) for text in texts], tokenizer)
    rows_of_ids = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    assert [ids[mask.bool()].tolist() for ids, mask in rows_of_ids] == expected
    (alone,) = collator(rows[7:8])["input_ids"]
    assert alone.tolist() == expected[7]
    collator.set_epoch(1)
    assert collator(rows)["input_ids"].tolist() != batch["input_ids"].tolist()
    assert AugmentingCollator(tokenizer, 4, ["spacing"]).change(TEXT, 0) != collator.change(TEXT, 0)


def test_the_epoch_has_to_be_known(tokenizer):
    with pytest.raises(ValueError, match="give it to the trainer"):
        AugmentingCollator(tokenizer, 3, ["spacing"])([{"text": TEXT, "labels": 0}])


def test_spaced_characters_are_read_as_words(tokenizer):
    join_spaced_characters(tokenizer)
    once = tokenizer.backend_tokenizer.to_str()
    join_spaced_characters(tokenizer)
    assert tokenizer.backend_tokenizer.to_str() == once

    def ids(text: str) -> list[int]:
        return tokenizer(text).input_ids

    assert ids(all_spaced(TEXT)) == ids(no_spaces(TEXT)) != ids(TEXT)
    assert ids("최 고 다 ! ! 정말 ㅠ ㅠ") == ids("최고다!! 정말 ㅠㅠ")
    assert ids("정말 잘 만든 영화") != ids("정말 잘만든 영화")
