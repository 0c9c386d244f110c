"""Classify texts that are longer than the model reads: windows overlap by half, and the mean of their logits answers.

python scripts/examples/long_texts.py model_cards/nsmc-small < texts.txt
"""

import sys

from hf_vanilla_transformer import Classifier
from hf_vanilla_transformer.inference.classifier import to_probabilities


classify = Classifier(sys.argv[1])
limit = min(classify.tokenizer.max_length, classify.engine.facts.max_positions)
for text in map(str.strip, sys.stdin):
    (ids,), _ = classify.tokenizer.encode([text], sys.maxsize)
    last = max(0, len(ids) - limit)
    windows = [ids[start : start + limit] for start in (*range(0, last, limit // 2), last)]
    logits = classify.engine.logits(windows, classify.batch_size).mean(axis=0)
    (best,) = classify.answer(to_probabilities(logits, classify.problem_type), top_k=1)
    print(best["label"], f"{best['score']:.4f}", text, sep="\t")
