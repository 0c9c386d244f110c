"""Texts in, probabilities out."""

import sys

import torch
from shared import tiny_config

from hf_vanilla_transformer import (
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.inference import class_probabilities, given_texts
from hf_vanilla_transformer.tokenizer import train_tokenizer


def test_at_a_terminal_each_line_is_answered_as_it_is_typed(monkeypatch):
    typed = iter(["하나", "둘", ""])
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    assert list(given_texts(None)) == [["하나"], ["둘"]]


def test_a_text_is_cut_to_what_tokenizer_and_model_read():
    tokenizer = train_tokenizer(["가 나 다"], vocab_size=29, max_length=1000)
    model = VanillaTransformerForSequenceClassification(tiny_config(max_position_embeddings=4)).eval()
    texts = ["가 나 다 가 나 다"]
    probabilities = class_probabilities(model, tokenizer, texts, 2)
    tokenizer.model_max_length = 4
    torch.testing.assert_close(class_probabilities(model, tokenizer, texts, 2), probabilities)
