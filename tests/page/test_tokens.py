"""tokens.js gives the ids of `tokenizers`, and its texts."""

import pytest
from exports.models import random_model
from shared import ROOT, tiny_config

from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.inference.folder import load_tokenizer

from .node import ask_page, needs_node
from .texts import ENGLISH, GERMAN, REVIEWS, odd_texts


pytestmark = needs_node
TEXTS = [*REVIEWS, *GERMAN, *ENGLISH]


def compare(folder, texts: list[str], scratch) -> None:
    tokenizer = load_tokenizer(str(folder))
    asks = [{"call": "encodeText", "values": [text]} for text in texts]
    (result,) = ask_page([{"folder": str(folder), "asks": asks}], scratch)
    rows = tokenizer(texts, truncation=True)["input_ids"]
    normalizer = tokenizer.backend_tokenizer.normalizer
    for text, ids, found in zip(texts, rows, result["answers"], strict=True):
        assert found["ids"] == ids, text
        assert found["pieces"] == tokenizer.convert_ids_to_tokens(ids), text
        assert found["normalized"] == normalizer.normalize_str(text), text


@pytest.mark.parametrize("name", ["nsmc-small", "multi30k-de-en", "multi30k-en-de"])
def test_published_tokenizers(name, tmp_path):
    long = ["지루하고 유치했다 " * 100, "x" * 1000]
    compare(ROOT / "model_cards" / name, [*TEXTS, *odd_texts(2000), *long, "", " "], tmp_path)


@pytest.mark.parametrize(("model", "lowercase"), [("bpe", False), ("bpe", True), ("word", True), ("unigram", False)])
def test_trained_tokenizers(model, lowercase, tmp_path):
    tokenizer = train_tokenizer(TEXTS, 2500, model, lowercase, max_length=12, add_eos=lowercase)
    random_model(tiny_config(vocab_size=2500), "classification").save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    # Of two cuts with the same score, "^^" "^" and "^" "^^", the libraries take different ones.
    compare(tmp_path, [*TEXTS, *([] if model == "unigram" else odd_texts(500))], tmp_path)


def test_decoded_texts(tmp_path):
    folder = str(ROOT / "model_cards" / "multi30k-de-en")
    tokenizer = load_tokenizer(folder)
    rows = [tokenizer(text)["input_ids"] for text in [*GERMAN, *ENGLISH, *odd_texts(200)]]
    asks = [{"call": "decode", "values": [ids]} for ids in rows]
    (found,) = ask_page([{"folder": folder, "asks": asks}], tmp_path)
    assert found["answers"] == [tokenizer.decode(ids, skip_special_tokens=True) for ids in rows]
