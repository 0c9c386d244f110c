"""Tables, folders of tables and data sets of the Hub become checked rows."""

import csv
import gzip
import os
import shutil
import unicodedata
from pathlib import Path

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Value

from data.files import assert_shape, data_error, write_table
from hf_vanilla_transformer.data import tables
from hf_vanilla_transformer.data.network import hub_answers
from hf_vanilla_transformer.data.table_files import iterate_rows
from hf_vanilla_transformer.errors import DataError


pytestmark = pytest.mark.usefixtures("online")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".json", ".jsonl"])
@pytest.mark.parametrize("labels", [["sad", "glad", "mad"], [10, 9, -1], ["2", "10", "1"]])
def test_table(load, tmp_path, caplog, suffix, labels):
    texts = [f'{i}, "감상"\u2028{i}' for i in range(30)]
    records = [{"n": i, "review": text, "mood": labels[i % 3]} for i, text in enumerate(texts)]
    path = write_table(tmp_path / f"reviews{suffix}", records)
    loaded = load(path, text_column="review", label_column="mood")
    names = [str(label) for label in sorted(labels, key=str if labels[0] == "sad" else int)]
    assert_shape(loaded, names)
    found = {row["text"]: names[row["label"]] for split in loaded.values() for row in split}
    assert found == {record["review"]: str(record["mood"]) for record in records}
    assert sum(map(len, loaded.values())) == 30
    assert "test is 3 rows cut from train" in caplog.text


def test_table_of_tabs_without_quoting(load, tmp_path):
    texts = ['"unclosed', 'he said "no"', "plain", '"', '"a" and "b"', 'a"']
    path = tmp_path / "raw.tsv"
    path.write_text("label\ttext\n" + "".join(f"{i % 2}\t{text}\r\n" for i, text in enumerate(texts * 3)), newline="")
    loaded = load(path, text_column="text")
    assert sorted(text for split in loaded.values() for text in split["text"]) == sorted(texts * 3)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl"])
@pytest.mark.parametrize("wanted", [{"text_column": "nowhere"}, {"label_column": "nowhere"}])
def test_missing_column_lists_those_there(load, tmp_path, suffix, wanted):
    path = write_table(tmp_path / f"t{suffix}", [{"document": "a", "label": 0, "stars": 5}] * 4)
    with data_error(str(path), "no column 'nowhere'; the columns are document, label, stars"):
        load(path, **wanted)


HEAD, JSON = b"document,label\n", b'{"document": "a", "label": %s}\n'
NOT_UTF_8 = "is not UTF-8 (invalid start byte); it "


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv, line 1: the file ends here"),
        ("t.csv", HEAD, "t.csv, line 2: the file ends here"),
        ("t.csv", HEAD + b"a,0\nb,c,1\n", "t.csv, line 3: 3 columns instead of 2"),
        ("t.csv", HEAD + b'a,0\n"b,1\n', "t.csv, line 3: unexpected end of data"),
        ("t.csv", HEAD + b"a,0\n\xb0\xa1,1\n", f"t.csv, line 3: byte 1 {NOT_UTF_8}looks like cp949"),
        ("t.csv", HEAD + b"a,0\nb,\n", "1 of 2 rows have no label in the column label, rows 2"),
        ("t.csv", HEAD + b",0\n ,1\n", "split train: all rows have no text"),
        ("t.csv", HEAD + b"a,0\nb,0\nc,1\n", "one row alone has the label '1'"),
        ("t.csv", HEAD + b"a,0\nb,0\n", "the column 'label' has fewer than two labels: ['0']"),
        ("t.csv", b"document,label,label\na,0,1\n", "two columns 'label'; the columns are document, label, label"),
        ("t.csv", HEAD + b'a,good\n"b\nc","good\nreally"\n', r"line 3: the label 'good\nreally' holds a control"),
        ("t.tsv", b"document\tlabel\tlabel\na\t0\t1\nb\t1\t0\n", "two columns 'label'; the columns are"),
        ("t.tsv", b"document\tlabel\na\n", "t.tsv, line 2: 1 columns instead of 2"),
        ("t.tsv", b"document\tlabel\na\t1\n\nb\t0\n", "t.tsv, line 3: 1 columns instead of 2"),
        ("t.txt", "document\tlabel\n".encode("utf-16"), f"{NOT_UTF_8}looks like utf-16: give the encoding utf-16"),
        ("t.json", b"", "t.json, line 1: the file ends here"),
        ("t.json", b'{"document": "a", ', "t.json: JSON parse error"),
        ("t.json", b"[]", "t.json: "),
        *(("t.json", word, "t.json, line 1: neither a mapping nor a list") for word in (b"null", b" true", b"1")),
        ("t.json", b"\n[" + JSON % rb'"\ud800"' + b"]", r"t.json, line 2: \ud800 is half of a character"),
        ("t.jsonl", JSON % rb'"\udc00"', r"line 1: \udc00 is half of a character"),
        ("t.jsonl", JSON % rb'"x\ty"', r"t.jsonl: the label 'x\ty' holds a control character"),
        ("t.jsonl", JSON % b'"\xff"', "t.jsonl, line 1: byte 29 is not UTF-8"),
        ("t.jsonl", b'{"document": 1, "label": 1}\n', "the column 'document' holds no texts"),
        ("t.jsonl", JSON % b'"b"' + JSON % b"null" + JSON % b'"None"', "in the column label, rows 2"),
        ("t.xls", b"document\tlabel\na\t1\n", "t.xls: not a .csv, .tsv, .txt, .json, .jsonl or .parquet"),
    ],
)
def test_bad_table(load, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with data_error(str(tmp_path / name), message):
        load(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("t.csv", "리뷰,label\n하나,a\n둘,b\n\n", {"encoding": "cp949"}),
        ("t.txt", "리뷰\tlabel\n하나\ta\n둘\tb\n", {"encoding": "utf-16"}),
        ("t.tsv", "리뷰\tlabel\n하나\ta\n둘\tb\n\n\r\n", {}),
        ("t.csv", "리뷰,label\r하나,a\r둘,b\r", {}),
        ("t.csv", unicodedata.normalize("NFD", "리뷰,label\n") + "하나,a\n둘,b\n", {}),
        ("t.jsonl", '{"\\u200b리뷰": "하나", "label": "a"}\n{"\\u200b리뷰": "둘", "label": "b"}', {}),
        (
            "t.json",
            '[{"리뷰": "하나", "label": "a", "x": "\\ud83d\\ude00 \\\\ud800"}, {"리뷰": "둘", "label": "b"}]',
            {},
        ),
        ("t.csv", '\ufeff리뷰,label\r\n"하나",a\r\n둘,b', {}),
        ("t.tsv", "\ufeff리뷰\tlabel\r\n하나\ta\r\n둘\tb", {}),
    ],
)
def test_what_excel_and_others_write(load, tmp_path, name, content, options):
    """Encodings, empty last lines, ends of lines, columns that look the same, halves that belong together."""
    written = content.encode(options.get("encoding", "utf-8"))
    for ending, zipped in ((Path(name).suffix, written), (f"{Path(name).suffix}.gz", gzip.compress(written))):
        (tmp_path / ending).mkdir()
        for split in ("train", "val", "test"):
            (tmp_path / ending / f"{split}{ending}").write_bytes(zipped)
        loaded = load(tmp_path / ending, text_column="리뷰", **options)
        assert [split[:] for split in loaded.values()] == [{"text": ["하나", "둘"], "label": [0, 1]}] * 3


def test_a_field_of_any_length_and_many_lines(load, tmp_path):
    limit, text = csv.field_size_limit(), "긴\n줄 " * 100_000
    path = write_table(tmp_path / "t.csv", [{"document": text, "label": i % 2} for i in range(6)])
    assert load(path)["train"]["text"][0] == text and csv.field_size_limit() == limit


def test_a_name_that_looks_the_same(load, tmp_path):
    """As in an archive that a Mac made."""
    records = [{"document": "a", "label": i % 2} for i in range(8)]
    write_table(tmp_path / unicodedata.normalize("NFD", "리뷰.csv"), records)
    assert len(load(tmp_path / "리뷰.csv")["train"]) == 4


@pytest.mark.parametrize(
    "labels",
    [("긍정", unicodedata.normalize("NFD", "긍정")), ("긍정", "긍\u200b정"), ("1", "１"), ("a b", "a\u00a0 b")],
)
def test_labels_that_look_the_same_are_refused(load, tmp_path, labels):
    records = [{"document": "a", "label": label} for label in (*labels, "other") for _ in range(3)]
    with data_error("is written in two ways", *map(ascii, labels)):
        load(write_table(tmp_path / "t.csv", records))


def test_labels_that_train_lacks_are_named(load, tmp_path, caplog):
    def write(**splits):
        for split, labels in splits.items():
            write_table(tmp_path / f"{split}.csv", [{"document": "a", "label": label} for label in labels])

    write(train=["긍정", "부정"], valid=["긍정", "부정"], test=["긍정", "중립"])
    assert load(tmp_path)["test"].features["label"].names == ["긍정", "부정", "중립"]
    assert f"{tmp_path}, split test: no row of train has the label 중립" in caplog.text
    write(test=["positive", "negative"])
    with data_error("no row of train has the label negative, positive; those of train are 긍정, 부정"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.json", "ratings_test.txt"])
def test_the_cache_follows_the_content(load, tmp_path, name):
    """Of a file of the same size and time, or behind the same link."""
    for word in ("good", "well"):
        (tmp_path / word).mkdir()
        file = write_table(tmp_path / word / name, [{"id": 1, "document": word, "label": i % 2} for i in range(8)])
        file.write_bytes(file.read_bytes().replace(b"\r", b""))
        shutil.copy(file, file.with_name("ratings_train.txt"))
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(tmp_path / word)
        for written in file.parent.iterdir():
            os.utime(written, (1, 1))
        loaded = load(tmp_path / "link" if name == "ratings_test.txt" else tmp_path / "link" / name)
        assert set(loaded["test"]["text"]) == {word}


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("sample", {"text_column": "label"}, "texts and labels are the same column, 'label'"),
        ("", {}, "the name of the data is empty"),
        ("nowhere.csv", {}, "nowhere.csv: no such file or folder"),
        ("./nowhere", {}, "./nowhere: no such file or folder"),
        ("no/where/at all", {}, "no/where/at all: no such file or folder"),
        ("someone/else", {}, "someone/else: no such file or folder here, and no network to look for it on the Hub"),
    ],
)
def test_source_that_is_nothing(load, monkeypatch, source, options, message):
    monkeypatch.setattr(tables, "hub_answers", hub_answers)  # offline, it does not
    with pytest.raises(DataError) as error:
        load(source, **options)
    assert str(error.value) == message


def test_data_sets_of_the_hub(load, monkeypatch):
    """Class labels keep their names; a split of unlabelled texts is left alone; a configuration is chosen."""

    def rows(labels, names):
        features = datasets.Features({"document": Value("string"), "label": ClassLabel(names=names)})
        return Dataset.from_dict({"document": ["a"] * len(labels), "label": labels}, features=features)

    part = rows([1, 0] * 4, ["yes", "no"])
    hub = {
        ("someone/reviews", None): DatasetDict(train=part, test=part, unsupervised=rows([-1], ["yes", "no"])),
        ("klue", "ynat"): DatasetDict(dict.fromkeys(("train", "validation"), part.rename_column("document", "title"))),
        ("someone/dev", None): DatasetDict(dev=part, test=part),
        ("someone/odd", None): DatasetDict(train=rows([1, 0] * 4, ["yes", "no\n"])),
    }
    monkeypatch.setattr(tables, "load_dataset", lambda *name, **_: hub[name])
    loaded = load("someone/reviews")
    assert_shape(loaded, ["yes", "no"])
    assert {split: len(part) for split, part in loaded.items()} == {"train": 6, "validation": 2, "test": 8}
    assert len(load("klue", config_name="ynat", text_column="title")["validation"]) == 8
    for name, message in (
        ("someone/dev", "no split train; the splits are dev, test"),
        ("someone/odd", r"the label 'no\n' holds"),
    ):
        with data_error(name, message):
            load(name)


def test_a_parquet_file_is_read(load, tmp_path):
    rows = Dataset.from_dict({"review": [f"감상 {number}" for number in range(30)], "mood": ["a", "b", "c"] * 10})
    rows.to_parquet(tmp_path / "reviews.parquet")
    loaded = load(tmp_path / "reviews.parquet", text_column="review", label_column="mood")
    assert_shape(loaded, ["a", "b", "c"])
    assert sum(map(len, loaded.values())) == 30
    with data_error("no column 'nowhere'; the columns are review, mood"):
        load(tmp_path / "reviews.parquet", text_column="nowhere", label_column="mood")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with data_error("broken.parquet"):
        load(tmp_path / "broken.parquet")


def test_a_quoted_field_of_tabs_may_hold_line_feeds(load, tmp_path):
    texts = ["one\ntwo", "tab\there", 'a "quoted"\n\nword', "\n", "plain", "end\n"]
    records = [{"label": number % 2, "text": text, "n": number} for number, text in enumerate(texts * 3)]
    loaded = load(write_table(tmp_path / "t.tsv", records), text_column="text")
    kept = [text for text in texts if text.strip()]
    assert sorted(text for split in loaded.values() for text in split["text"]) == sorted(kept * 3)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_row_goes_by_its_first_line(tmp_path, name, end):
    text = f'text,n{end}"a\nb\n\nc",1{end}d,2{end}"e\nf",3{end}g,4{end}'
    (tmp_path / name).write_bytes((text if name == "t.csv" else text.replace(",", "\t")).encode())
    assert [(line, row[1]) for line, row in iterate_rows(tmp_path / name)] == [
        *((1, "n"), (2, "1"), (6, "2"), (7, "3"), (9, "4")),
    ]
    if name == "t.csv":
        (tmp_path / name).write_bytes(b'text,n\n\n"a\nb",1\n\n\nd,2\n')
        assert [line for line, _ in iterate_rows(tmp_path / name)] == [1, 3, 7]
