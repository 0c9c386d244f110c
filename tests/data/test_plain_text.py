"""Plain text for pretraining: a corpus that is cached, and one that is streamed."""

from shared import LINES

from data.files import data_error, write_lines
from hf_vanilla_transformer.data import plain_text
from hf_vanilla_transformer.data.plain_text import load_corpus, stream_corpus, tokenize_corpus


def first_line_alone(file):
    yield LINES[0]
    raise AssertionError("the file is read again")


def test_lines_become_tokens_once(text_file, text_tokenizer, tmp_path, caplog, monkeypatch):
    def load(validation=10):
        caplog.clear()
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
    monkeypatch.setattr(plain_text, "iterate_lines", first_line_alone)
    monkeypatch.setattr(plain_text, "_tokenize_batch", first_line_alone)
    again = tokenize_corpus(load_corpus([text_file], validation=10), loaded, 8)
    assert again["train"].to_list() == train
    assert "2 of 52 lines have no text" in caplog.text
    monkeypatch.undo()
    shorter = tokenize_corpus(load_corpus([text_file], validation=10), text_tokenizer, 3)["train"]
    assert max(map(len, shorter["input_ids"])) == 3
    write_lines(text_file, LINES[:20])
    assert len(load()["train"]) == 10


def test_the_split_goes_by_its_seed(text_file):
    first, same, other = (
        load_corpus([text_file], validation=20, seed=seed)["validation"]["text"][:] for seed in (1, 1, 2)
    )
    assert first == same != other
    both = load_corpus([text_file, text_file])
    assert len(both["train"]) + len(both["validation"]) == 124 and len(both["validation"]) == 1


def test_the_stream_holds_every_line_and_begins_again(text_file, text_tokenizer, monkeypatch):
    monkeypatch.setattr(plain_text, "SHUFFLE_BUFFER", 100)

    def stream(seed=1, file=text_file, validation=10):
        return stream_corpus([file], text_tokenizer, 8, validation=validation, seed=seed)

    endless, validation = stream()
    expected = [text_tokenizer(text)["input_ids"][:8] for text in LINES]
    assert [row["input_ids"] for row in validation] == expected[:10]
    taken = list(endless.take(500))
    assert [row["row"] for row in taken] == list(range(500))
    assert {tuple(row["input_ids"]) for row in taken} == set(map(tuple, expected[10:]))
    assert list(endless.take(100)) == taken[:100] != list(stream(seed=2)[0].take(100))
    with data_error("cannot be held back"):
        stream(validation=62)
    write_lines(text_file.parent / "short.txt", ["가 나", "", " "])
    endless, _ = stream(file=text_file.parent / "short.txt", validation=1)
    with data_error("no line with a text after"):
        next(iter(endless))
