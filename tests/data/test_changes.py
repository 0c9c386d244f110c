"""Changes of texts: what each does, that it is seeded, and that none empties a text."""

import unicodedata
from itertools import pairwise
from random import Random

import pytest
from datasets import ClassLabel, Dataset, Features, Value

from hf_vanilla_transformer.data.changes import CHANGES, SPACINGS, change_texts


REVIEW = "정말 재미있고\t감동적 ㅋㅋㅋ!! BGM이 good.. ㅠㅠ"


def changed(name: str, text: str, seed: int = 0) -> str:
    return CHANGES[name](text, Random(seed))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no_spaces", "정말재미있고감동적ㅋㅋㅋ!!BGM이good..ㅠㅠ"),
        ("all_spaced", "정 말 재 미 있 고 감 동 적 ㅋ ㅋ ㅋ ! ! B G M 이 g o o d . . ㅠ ㅠ"),
        ("no_punctuation", "정말 재미있고\t감동적 ㅋㅋㅋ BGM이 good ㅠㅠ"),
        ("decomposed", unicodedata.normalize("NFD", REVIEW)),
        ("swapped_case", "정말 재미있고\t감동적 ㅋㅋㅋ!! bgm이 GOOD.. ㅠㅠ"),
    ],
)
def test_what_a_change_without_chance_does(name, text):
    assert changed(name, REVIEW) == text


def test_a_fifth_of_the_gaps_has_another_spacing():
    """As in kiwi-farm's README: with a probability of 20 %, a space is put in or left out."""
    text = " ".join(["영화"] * 20_000)
    spaced = changed("random_spaces", text)
    assert spaced.replace(" ", "") == text.replace(" ", "") and "  " not in spaced
    for gap in ("영 화", "화영"):
        assert spaced.count(gap) == pytest.approx(0.2 * 20_000, rel=0.05)


def test_laughing_and_crying_get_another_length():
    for seed in range(50):
        text = changed("repeats", "ㅋㅋㅋ 좋다ㅋ ㅠㅠ", seed)
        first, middle, last = text.split(" ")
        assert set(first) == {"ㅋ"} and 2 <= len(first) <= 10 and len(first) != 3
        assert middle == "좋다ㅋ"
        assert set(last) == {"ㅠ"} and 3 <= len(last) <= 10


def test_a_slip_replaces_one_letter_by_a_neighbour_of_its_key():
    slips = {changed("typing_slip", "각", seed) for seed in range(500)}
    # Beside ㄱ (R) are ㄷ (E), ㅅ (T), ㅇ (D) and ㄹ (F); beside ㅏ (K) ㅑ (I), ㅐ (O), ㅓ (J), ㅣ (L) and ㅡ (M).
    assert slips == {*"닥삭악락", *"갹객걱긱극", *"갇갓강갈"}
    assert changed("typing_slip", "good 100 ㅋㅋ") == "good 100 ㅋㅋ"
    # Shift counts as none, letters of two keys stay.
    assert {changed("typing_slip", "뫄", seed) for seed in range(200)} == {*"봐좌놔콰"}
    assert {changed("typing_slip", "꺼", seed)[0] for seed in range(200)} >= {*"더서어러"}


@pytest.mark.parametrize("change", [*CHANGES.values(), *SPACINGS], ids=lambda change: change.__name__)
@pytest.mark.parametrize("text", ["...", " ", "ㅋ", "", "좋다", "\u3000", "1"])
def test_no_change_empties_a_text(change, text):
    assert bool(change(text, Random(0)).strip()) == bool(text.strip())


@pytest.mark.parametrize("name", CHANGES)
def test_changed_rows_keep_their_labels_and_depend_on_seed_and_place(name):
    features = Features({"text": Value("string"), "label": ClassLabel(names=["bad", "good"])})
    rows = Dataset.from_dict({"text": [REVIEW] * 20, "label": [0, 1] * 10}, features=features)
    one, again, other = (change_texts(rows, name, seed) for seed in (1, 1, 2))
    assert one["text"][:] == again["text"][:]
    assert one["label"][:] == rows["label"][:] and one.features == rows.features
    if name in ("random_spaces", "repeats", "typing_slip"):
        assert len(set(one["text"])) > 1 and one["text"][:] != other["text"][:]
        assert change_texts(rows.select(range(5)), name, 1)["text"][:] == one["text"][:5]
    else:
        assert one["text"][:] == other["text"][:]


@pytest.mark.parametrize("text", ["👨\u200d👩\u200d👧가", "👍🏽", "❤\ufe0f하", "हिन्दी", "한\u0301글"])
def test_no_space_parts_a_character_from_its_marks(text):
    for spaced in [changed(name, text, seed) for name in ("all_spaced", "random_spaces") for seed in range(20)]:
        after = [character for space, character in pairwise(spaced) if space == " "]
        assert not [one for one in after if unicodedata.category(one) in ("Mn", "Mc", "Cf", "Sk")]
        assert "\u200d " not in spaced


@pytest.mark.parametrize("name", ["all_spaced", "random_spaces", "typing_slip"])
def test_decomposed_texts_are_changed_like_composed_ones(name):
    """A Mac writes syllables as letters."""
    assert changed(name, unicodedata.normalize("NFD", REVIEW)) == changed(name, REVIEW)
    if name != "typing_slip":  # no base is parted from its marks
        assert not any(" " + mark in changed(name, "ที่ดี q̃q̃q̃ हिन्दी", seed) for mark in "ี่̃ि्ी" for seed in range(20))
