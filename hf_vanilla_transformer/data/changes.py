# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Changes of a text that keep its meaning: other spacing, spelling and case, as people type.

Each is a function of the text and a `random.Random`. A text that a change would empty stays as it is. Changes between
characters compose the text first (NFC: files from a Mac are decomposed) and never part a base from its marks.
"""

import re
import unicodedata
from collections.abc import Callable
from random import Random

from datasets import Dataset


# The share of the gaps between characters that `random_spaces` changes, as in kiwi-farm.
RATE = 0.2
# ㅋㅋ, ㅎㅎ, ㅠㅠ and ㅜㅜ: laughing and crying.
_REPEATS = re.compile(r"([ㅋㅎㅠㅜ])\1+")
_LONGEST_REPEAT = 10

# Each letter of the two-set layout (KS X 5002), followed by those of its kind on the keys beside it.
_LAYOUT = (
    "ㅂㅈㅁ ㅈㅂㄷㅁㄴ ㄷㅈㄱㄴㅇ ㄱㄷㅅㅇㄹ ㅅㄱㄹㅎ ㅁㅂㅈㄴㅋ ㄴㅈㄷㅁㅇㅋㅌ ㅇㄷㄱㄴㄹㅌㅊ ㄹㄱㅅㅇㅎㅊㅍ "
    "ㅎㅅㄹㅍ ㅋㅁㄴㅌ ㅌㄴㅇㅋㅊ ㅊㅇㄹㅌㅍ ㅍㄹㅎㅊ ㅛㅕㅗ ㅕㅛㅑㅗㅓ ㅑㅕㅐㅓㅏ ㅐㅑㅔㅏㅣ ㅔㅐㅣ "
    "ㅗㅛㅕㅓㅠㅜ ㅓㅕㅑㅗㅏㅜㅡ ㅏㅑㅐㅓㅣㅡ ㅣㅐㅔㅏ ㅠㅗㅜ ㅜㅗㅓㅠㅡ ㅡㅓㅏㅜ"
)
_NEIGHBOURS = {letters[0]: letters[1:] for letters in _LAYOUT.split()}
_WITHOUT_SHIFT = dict(zip("ㅃㅉㄸㄲㅆㅒㅖ", "ㅂㅈㄷㄱㅅㅐㅔ", strict=True))
# The letters of a syllable, in Unicode's order.
_INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FINALS = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
_FIRST_SYLLABLE = ord("가")
_SYLLABLE = re.compile("[가-힣]")
# What joins two emoji to one, and the colours of skin.
_EMOJI_MARKS = "\u200d🏻🏼🏽🏾🏿"


def no_spaces(text: str, generator: Random | None = None) -> str:
    """Leave out all white space (kiwi-farm's NoSpace)."""
    return "".join(text.split()) or text


def all_spaced(text: str, generator: Random | None = None) -> str:
    """Put a space between any two characters, and no other white space (kiwi-farm's AllSpace)."""
    return " ".join(character for word in text.split() for character in _characters(word)) or text


def random_spaces(text: str, generator: Random) -> str:
    """Leave out or put in a space, with probability 0.2, between any two characters (kiwi-farm's Random)."""
    spaced: list[str] = []
    for word in text.split():
        for place, character in enumerate(_characters(word)):
            if spaced and (place == 0) != (generator.random() < RATE):
                spaced.append(" ")
            spaced.append(character)
    return "".join(spaced) or text


def repeats(text: str, generator: Random) -> str:
    """Give ㅋㅋ, ㅎㅎ, ㅠㅠ and ㅜㅜ another length: 2 to 10 letters."""

    def draw(run: re.Match) -> str:
        lengths = [length for length in range(2, _LONGEST_REPEAT + 1) if length != len(run[0])]
        return run[1] * generator.choice(lengths)

    return _REPEATS.sub(draw, text)


def no_punctuation(text: str, generator: Random | None = None) -> str:
    """Leave out all characters of Unicode's categories P (punctuation)."""
    rest = "".join(character for character in text if not unicodedata.category(character).startswith("P"))
    return rest if rest.strip() else text


def decomposed(text: str, generator: Random | None = None) -> str:
    """Write each syllable as its letters (Unicode's NFD), as macOS writes the names of files."""
    return unicodedata.normalize("NFD", text)


def typing_slip(text: str, generator: Random) -> str:
    """Replace one letter of one syllable by a neighbour on the keyboard (two-set layout, KS X 5002).

    A consonant becomes a consonant and a vowel a vowel, so the syllable stays a syllable. Letters of two keys, such as
    ㅘ and ㄺ, stay; a letter with Shift counts as its key without.
    """
    text = unicodedata.normalize("NFC", text)
    slips = [(one.start(), generator.choice(found)) for one in _SYLLABLE.finditer(text) if (found := _slips(one[0]))]
    if not slips:
        return text
    place, slip = generator.choice(slips)
    return text[:place] + slip + text[place + 1 :]


def swapped_case(text: str, generator: Random | None = None) -> str:
    return text.swapcase()


def as_written(text: str, generator: Random | None = None) -> str:
    return text


SPACINGS = (as_written, no_spaces, all_spaced, random_spaces)
# The changes of training texts, drawn anew in each epoch (`training.augmentation`).
AUGMENTATIONS = ("spacing", "typing_slip")

_ALL = (no_spaces, all_spaced, random_spaces, repeats, no_punctuation, decomposed, typing_slip, swapped_case)
CHANGES: dict[str, Callable[[str, Random], str]] = {change.__name__: change for change in _ALL}


def change_texts(rows: Dataset, name: str, seed: int) -> Dataset:
    """Change the column `text` of some rows; random choices depend on the seed and the row's place alone."""
    columns = rows.to_dict()
    columns["text"] = [CHANGES[name](text, Random(f"{seed} {place}")) for place, text in enumerate(columns["text"])]
    return Dataset.from_dict(columns, features=rows.features)


def _characters(word: str) -> list[str]:
    characters: list[str] = []
    for character in unicodedata.normalize("NFC", word):
        is_mark = unicodedata.category(character).startswith("M") or character in _EMOJI_MARKS
        if characters and (is_mark or characters[-1].endswith(_EMOJI_MARKS[0])):
            characters[-1] += character
        else:
            characters.append(character)
    return characters


def _slips(syllable: str) -> list[str]:
    """Return the syllables that differ in one letter, by a neighbour on the keyboard."""
    slips = []
    number = ord(syllable) - _FIRST_SYLLABLE
    for letters, step in ((_INITIALS, 588), (_VOWELS, 28), (_FINALS, 1)):
        place = number // step % len(letters)
        letter = _WITHOUT_SHIFT.get(letters[place], letters[place])
        slips += [chr(ord(syllable) + step * (letters.index(one) - place)) for one in _NEIGHBOURS.get(letter, "")]
    return slips
