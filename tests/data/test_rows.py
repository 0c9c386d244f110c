"""Rows of memory-mapped data sets, and their checksums; plain text, whose lines are cached and tokenized once."""

import hashlib

import numpy as np
from datasets import ClassLabel, Dataset, Features, Value
from shared import LINES

from data.files import data_error, write_lines
from hf_vanilla_transformer.data import plain_text
from hf_vanilla_transformer.data.plain_text import load_corpus, tokenize_corpus
from hf_vanilla_transformer.data.rows import TextsOfColumns, column_array
from hf_vanilla_transformer.data.sources import checksum


def test_columns_of_chosen_rows():
    rows = Dataset.from_dict({"text": [f"text {number}" for number in range(30_000)], "number": range(30_000)})
    order = np.random.default_rng(0).permutation(30_000)[:25_000]
    chosen = rows.select(order)
    assert column_array(chosen, "number").tolist() == order.tolist()
    texts = TextsOfColumns(chosen, ["text", "text"])
    assert list(texts) == list(texts) == [f"text {number}" for number in order] * 2


def test_the_checksum_is_that_of_the_rows_as_json_lines():
    """What published records and `NSMC_TEST_SHA256` were made with."""
    features = Features({"text": Value("string"), "label": ClassLabel(names=["a", "b"])})
    data = Dataset.from_dict({"text": ["a", "영화"], "label": [1, 0]}, features=features).select([1, 0])
    assert checksum(data) == hashlib.sha256('["영화", 0]\n["a", 1]\n'.encode()).hexdigest()


def first_line_alone(file, encoding):
    yield LINES[0]
    raise AssertionError("the file is read again")


def test_lines_become_tokens_once(text_file, text_tokenizer, tmp_path, caplog, monkeypatch):
    def load(validation=10, tokenizer=text_tokenizer, max_length=8):
        caplog.clear()
        corpus = load_corpus([text_file], validation=validation)
        return tokenize_corpus(corpus, tokenizer, max_length)

    tokenized = load()
    assert "train: 2 of 52 lines have no text and are dropped" in caplog.text
    train, validation = (tokenized[split].to_list() for split in ("train", "validation"))
    assert (len(train), len(validation)) == (50, 10)
    expected = sorted(text_tokenizer(text)["input_ids"][:8] for text in LINES)
    assert sorted(row["input_ids"] for row in train + validation) == expected
    assert all(row["length"] == len(row["input_ids"]) + 1 for row in train)
    assert len({row["row"] for row in train}) == 50
    assert len(load(0.25)["validation"]) == 16  # of 62 lines; those without text may be among them

    # From the cache, also with a tokenizer that was saved, loaded and used; not where the file has changed.
    text_tokenizer.save_pretrained(tmp_path / "tokenizer")
    loaded = type(text_tokenizer).from_pretrained(tmp_path / "tokenizer")
    loaded(LINES[:2], padding=True, truncation=True)
    monkeypatch.setattr(plain_text, "iterate_lines", first_line_alone)
    again = load(tokenizer=loaded)
    assert again["train"].to_list() == train
    assert again["train"].cache_files == tokenized["train"].cache_files
    assert max(map(len, load(max_length=3)["train"]["input_ids"])) == 3
    monkeypatch.undo()
    write_lines(text_file, LINES[:20])
    assert len(load()["train"]) == 10


def test_the_split_goes_by_its_seed(text_file):
    first, same, other = (
        load_corpus([text_file], validation=20, seed=seed)["validation"]["text"][:] for seed in (1, 1, 2)
    )
    assert first == same != other
    in_cp949 = text_file.with_name("corpus.txt")
    in_cp949.write_text("\n".join(LINES), encoding="cp949")
    assert {*load_corpus([in_cp949], encoding="cp949")["train"]["text"]} <= {*LINES}
    both = load_corpus([text_file, text_file])
    assert len(both["train"]) + len(both["validation"]) == 124 and len(both["validation"]) == 1
    for wrong in (62, 0, -1, float("nan")):
        with data_error(f"62 lines, of which {wrong} cannot be held out"):
            load_corpus([text_file], validation=wrong)
