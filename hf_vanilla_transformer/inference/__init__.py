# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""From a folder to an answer: load a model, choose its engine, classify and translate texts.

from hf_vanilla_transformer.inference import classify, translate

probabilities, labels = classify(["정말 재미있고 감동적인 영화"], "model_cards/nsmc-small")
translations = translate(["Zwei Hunde spielen im Schnee."], "model_cards/multi30k-de-en", num_beams=5)
"""

from .answers import WINDOW, classify, iterate_probabilities, iterate_translations, translate


__all__ = ["WINDOW", "classify", "iterate_probabilities", "iterate_translations", "translate"]
