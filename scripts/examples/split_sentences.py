"""Translate texts that are longer than the model reads, sentence by sentence.

    python scripts/examples/split_sentences.py model_cards/multi30k-de-en < texts.txt

A sentence ends with a mark, after which white space comes and no lower-case letter. A full stop behind one letter
(`z. B.`) or a number (`am 3. Mai`) ends none. Abbreviations such as `Dr.` are not known: a sentence ends there.
"""

import re
import sys
from itertools import islice

from hf_vanilla_transformer import Translator


END = re.compile(r"""[.!?…]+["'”’»«)\]]*\s+(?=\S)|[。！？]+["'”’」』)\]]*\s*(?=\S)""")
NO_END = re.compile(r"(?:^|[\W\d_])(?:[^\W\d_]|\d+)\.\s+$")


def split(text: str) -> list[str]:
    sentences, begin = [], 0
    for end in END.finditer(text):
        spaced = end[0][0] not in "。！？"
        if not (spaced and (text[end.end()].islower() or NO_END.search(text[begin : end.end()]))):
            sentences.append(text[begin : end.end()].strip())
            begin = end.end()
    return [one for one in (*sentences, text[begin:].strip()) if one]


texts = [split(line.strip()) for line in sys.stdin]
translations = Translator(sys.argv[1]).stream(sentence for sentences in texts for sentence in sentences)
for sentences in texts:
    print(" ".join(islice(translations, len(sentences))))
