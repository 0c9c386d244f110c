"""The plain rule by which a text is cut into sentences."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_vanilla_transformer.inference.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", [""]),
        ("No end", ["No end"]),
        ("One. Two!  Three?\nFour", ["One.", "Two!", "Three?", "Four"]),
        ('He said "Stop!" Then he left.', ['He said "Stop!"', "Then he left."]),
        ("Er kommt am 3. Mai, z. B. heute. Ja.", ["Er kommt am 3. Mai, z. B. heute.", "Ja."]),
        ("J. S. Bach lived. 12 came", ["J. S. Bach lived.", "12 came"]),
        ("Wait... what? 3.5 is more", ["Wait... what?", "3.5 is more"]),
        ("今日は。明日は？ はい", ["今日は。", "明日は？", "はい"]),
        ("재미있다. 또 보자!", ["재미있다.", "또 보자!"]),
        ("Dr. Who", ["Dr.", "Who"]),  # as documented
    ],
)
def test_a_text_is_cut_by_the_documented_rule(text, sentences):
    assert split_sentences(text) == sentences


@given(st.text())
def test_no_character_but_white_space_is_lost(text):
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["." * 10**6, "3. " * 10**5, "ab. b" * 10**5, '."' * 10**5, "。" * 10**6])
def test_a_strangers_text_takes_time_that_grows_with_it(text):
    begin = time.process_time()
    split_sentences(text)
    assert time.process_time() - begin < 5  # seconds; the square would be minutes
