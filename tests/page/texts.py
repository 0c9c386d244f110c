"""Texts to read and to translate: the sample's reviews, captions, and texts of odd characters."""

import random
import unicodedata

from hf_vanilla_transformer.data.nsmc import SAMPLES


REVIEWS = [
    line.split("\t")[1]
    for file in ("ratings_train.txt", "ratings_test.txt")
    for line in (SAMPLES / file).read_text(encoding="utf-8").splitlines()[1:]
]
GERMAN = [
    "Zwei Hunde spielen im Schnee.",
    "Ein Mann mit Hut fährt mit dem Fahrrad durch die Stadt.",
    "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
    "Eine Frau sitzt auf einer Bank und liest ein Buch.",
    "Kinder laufen über eine grüne Wiese.",
    "Ein kleines Mädchen in einem roten Kleid isst ein Eis.",
    "Drei Männer reparieren das Dach eines Hauses.",
    "Ein brauner Hund springt über einen Baumstamm.",
    "Menschen warten an einem Bahnhof auf den Zug.",
    "Der Quantenphysiker widerlegt 1905 die Äthertheorie, oder?",
]
ENGLISH = [
    "Two dogs play in the snow.",
    "A man in a hat rides his bicycle through the city.",
    "A woman sits on a bench and reads a book.",
    "A little girl in a red dress eats ice cream.",
    "Three men are repairing the roof of a house.",
    'Two men\'s "well-known" T-shirts, 10% off (today)!',
]
# What odd texts are put together of: scripts, combining characters, emoji, white space, special tokens.
_PARTS = ["최고", "다", "ㅋㅋ", "ㅠㅠ", "abc", " X", "Straße", "éñ", "漢字", "かナー", "кд", "αβ", "0123", "½①"]
_PARTS += ["!?", "..", "'s", "\u0301", "\u1100\u1161\u11a8", "😀", "👨\u200d👩\u200d👧", "👍🏽", "ﬁＡ㎏", "▁", " ▁ "]
_PARTS += ["  ", "\t\n", "\u3000", "\xa0", "\u200b", "\ufeff", "\x01", "\x85", "\u2028", "\ue000", "\\", "<b>"]
_PARTS += ["[BOS]", "[UNK]", " [EOS] ", "[pad]"]


def odd_texts(number: int) -> list[str]:
    rng = random.Random(0)
    # Newer characters are letters, or have a normal form, in one version of Unicode and not in another.
    known = [chr(code) for code in range(0x110000) if unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs")]
    pick = (lambda: rng.choice(_PARTS), lambda: rng.choice(_PARTS), lambda: " ", lambda: rng.choice(known))
    return ["".join(rng.choice(pick)() for _ in range(rng.randint(0, 14))) for _ in range(number)]
