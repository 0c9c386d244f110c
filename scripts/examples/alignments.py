"""Translate texts, and say which word of the text each word of the translation comes from, as `source-target`.

    python scripts/examples/alignments.py model_cards/multi30k-de-en < sentences.txt

A word of the translation comes from the word that cross-attention reads most in the last layer of the decoder's lower
half. In the published translators this layer is the best one (scripts/experiments/LOG.md).
"""

import sys

import torch
from transformers import AutoTokenizer

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration


folder = sys.argv[1]
model = VanillaTransformerForConditionalGeneration.from_pretrained(folder, attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(folder)


def words(parts: list[str]) -> torch.Tensor:
    """Return which word, from 0, each token ends in, for a text up to each token's end: (tokens, words)."""
    numbers = torch.tensor([max(1, len(part.split())) - 1 for part in parts])
    return torch.nn.functional.one_hot(numbers).float()


for text in filter(None, map(str.strip, sys.stdin)):
    source = tokenizer(text, truncation=True, return_offsets_mapping=True, return_tensors="pt")
    ends = [end for _, end in source.pop("offset_mapping")[0].tolist() if end]  # the end token has none
    with torch.no_grad():
        written = model.generate(**source)
        attention = model(**source, decoder_input_ids=written[:, :-1], output_attentions=True).cross_attentions
    target = [token for token in written[0, 1:].tolist() if token != model.config.eos_token_id]
    layer = attention[max(0, model.config.decoder_layers // 2 - 1)][0].mean(dim=0)[: len(target), : len(ends)]
    prefixes = [tokenizer.decode(target[: 1 + place], skip_special_tokens=True) for place in range(len(target))]
    read = words(prefixes).T @ layer @ words([text[:end] for end in ends])  # (words written, words read)
    pairs = [f"{word}-{place}" for place, word in enumerate(read.argmax(dim=1).tolist())]
    print(prefixes[-1] if prefixes else "", " ".join(pairs), sep="\t")
