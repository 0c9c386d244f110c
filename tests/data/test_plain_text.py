"""Plain text for pretraining: a corpus that is cached, and one that is streamed."""

import gzip
import logging

import pytest
from shared import LINES

from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.data.plain_text import load_corpus, stream_corpus, tokenize_corpus


def first_line_alone(file):
    yield LINES[0]
    raise AssertionError("the file is read again")


def test_lines_become_tokens_once(text_file, text_tokenizer, tmp_path, caplog, monkeypatch):
    def load(validation=10):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            return tokenize_corpus(load_corpus([text_file], validation=validation), text_tokenizer, 8)

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
    monkeypatch.setattr("hf_vanilla_transformer.data.plain_text.iterate_lines", first_line_alone)
    monkeypatch.setattr("hf_vanilla_transformer.data.plain_text._tokenize_batch", None)
    again = tokenize_corpus(load_corpus([text_file], validation=10), loaded, 8)
    assert again["train"].to_list() == train
    assert "2 of 52 lines have no text" in caplog.text
    monkeypatch.undo()
    shorter = tokenize_corpus(load_corpus([text_file], validation=10), text_tokenizer, 3)["train"]
    assert max(map(len, shorter["input_ids"])) == 3
    text_file.write_bytes(gzip.compress("".join(f"{text}\n" for text in LINES[:20]).encode()))
    assert len(load()["train"]) == 10


def test_the_split_goes_by_its_seed(text_file):
    first, same, other = (
        load_corpus([text_file], validation=20, seed=seed)["validation"]["text"][:] for seed in (1, 1, 2)
    )
    assert first == same != other
    both = load_corpus([text_file, text_file])
    assert len(both["train"]) + len(both["validation"]) == 124 and len(both["validation"]) == 1


def test_the_stream_holds_every_line_and_begins_again(text_file, text_tokenizer):
    stream, validation = stream_corpus([text_file], text_tokenizer, 8, validation=10, seed=1)
    expected = [text_tokenizer(text)["input_ids"][:8] for text in LINES]
    assert [row["input_ids"] for row in validation] == expected[:10]
    taken = list(stream.take(5000))
    assert [row["row"] for row in taken] == list(range(5000))
    counts = {}
    for row in taken:
        counts[tuple(row["input_ids"])] = counts.get(tuple(row["input_ids"]), 0) + 1
    assert set(counts) == {tuple(ids) for ids in expected[10:]}
    assert list(stream.take(100)) == taken[:100]
    assert list(stream_corpus([text_file], text_tokenizer, 8, validation=10, seed=2)[0].take(100)) != taken[:100]
    with pytest.raises(DataError, match="cannot be held back"):
        stream_corpus([text_file], text_tokenizer, 8, validation=62)
    (text_file.parent / "short.txt").write_text("가 나\n\n \n")
    stream, _ = stream_corpus([text_file.parent / "short.txt"], text_tokenizer, 8, validation=1)
    with pytest.raises(DataError, match="no line with a text after"):
        next(iter(stream))
