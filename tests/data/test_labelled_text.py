"""Labelled text: the cut into train and validation, and tokens."""

import pytest
from datasets import Dataset

from data.files import data_error, write_table
from hf_vanilla_transformer.data.labelled_text import tokenize
from hf_vanilla_transformer.data.nsmc import SAMPLES
from hf_vanilla_transformer.data.sources import checksum
from hf_vanilla_transformer.data.tokenizer import train_tokenizer


def test_validation_follows_the_seed_and_leaves_the_rest(load):
    first, other = (load("sample", validation_fraction=0.1, seed=seed) for seed in (1, 2))
    train, validation = set(first["train"]["text"]), set(first["validation"]["text"])
    assert not train & validation and validation != set(other["validation"]["text"])
    assert train | validation == set(other["train"]["text"]) | set(other["validation"]["text"])


def test_rows_without_a_label_are_counted(load, tmp_path):
    records = [{"n": number, "text": f"글 {number}", "label": "ab"[number % 2]} for number in range(60)]
    for number in (3, 7, *range(20, 33)):
        records[number]["label"] = " " if number % 2 else ""
    records[7]["text"] = ""  # without a text, it needs no label
    path = write_table(tmp_path / "t.csv", records)
    for _ in range(2):  # also where rows come from the cache
        with data_error("14 of 59 rows have no label in the column label, such as '글 3', '글 20'"):
            load(path)


def test_the_cut_is_that_of_published_runs(load):
    """Another one would put texts that a published model was trained on into validation."""
    cut = load("sample", validation_fraction=0.05, seed=42)
    assert checksum(cut["validation"]) == "dde1a108a541043a983ff6bdb6a87b22617ded1e80fd13e64db300a8d961f330"


def test_cut_is_stratified(load, tmp_path):
    records = [{"document": f"text {i}", "label": "rare" if i < 10 else "usual"} for i in range(200)]
    loaded = load(write_table(tmp_path / "t.csv", records), validation_fraction=0.2)
    assert [part["label"][:].count(0) for part in loaded.values()] == [6, 2, 2]


@pytest.fixture
def tokenizer():
    """Of words: a text of zero-width characters has no tokens."""
    reviews = (SAMPLES / "ratings_test.txt").read_text(encoding="utf-8").split("\n")
    return train_tokenizer(reviews, model="word", vocab_size=300, max_length=7)


def test_tokenize_is_the_tokenizer_cut_to_length(load, tokenizer):
    loaded = load("sample")
    for max_length in (7, 4):
        tokenizer.model_max_length = max_length
        tokenized = tokenize(loaded, tokenizer)
        assert list(tokenized) == list(loaded)
        for split, part in tokenized.items():
            assert set(part.column_names) == {"input_ids", "labels", "length"}
            assert part.features["labels"] == loaded[split].features["label"]
            expected = [tokenizer(text, add_special_tokens=True)["input_ids"] for text in loaded[split]["text"]]
            assert part["input_ids"][:] == [ids[:max_length] for ids in expected]
            assert part["length"][:] == [len(ids) for ids in part["input_ids"]]
            assert part["labels"][:] == loaded[split]["label"][:]


def test_text_without_tokens_is_one_unknown_token(tokenizer):
    part = Dataset.from_dict({"text": ["\u200b\u200b", "짱"], "label": [0, 1]})
    tokenized = tokenize(part, tokenizer)
    assert tokenized[0] == {"input_ids": [tokenizer.unk_token_id], "labels": 0, "length": 1}
