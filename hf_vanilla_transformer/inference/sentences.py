# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Cut a text into sentences by a plain rule."""

import re


# Behind an end mark and what closes quotes or brackets. Between scripts with spaces, white space follows, and then no
# lower-case letter. A run of marks is tried once, from its beginning: the time grows with the text, not its square.
_END = re.compile(
    r"""(?:(?<![.!?…])(?P<mark>[.!?…]++)["'”’»«)\]]*+\s++|(?<![。！？])[。！？]++["'”’」』)\]]*+\s*+)(?=\S)"""
)
# A full stop behind one letter (`z. B.`, initials) or a number (`am 3. Mai`) ends no sentence.
_NO_END = re.compile(r"(?:^|[\W\d_])(?:[^\W\d_]|\d+)$")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space between them.

    A sentence ends with `.`, `!`, `?` or `…`, after which quotes and brackets may close, white space comes, and no
    lower-case letter; or with `。`, `！` or `？`, with or without white space. A full stop behind a single letter or a
    number does not end one. Abbreviations such as `Dr.` are not known: there a sentence is cut.

    Returns:
        At least one string; that of an empty text is empty.
    """
    sentences, begin = [], 0
    for end in _END.finditer(text):
        before, mark = text[max(begin, end.start() - 20) : end.start()], end["mark"]
        if mark and (text[end.end()].islower() or (mark == "." and _NO_END.search(before))):
            continue
        sentences.append(text[begin : end.end()].strip())
        begin = end.end()
    return [*sentences, text[begin:].strip()]
