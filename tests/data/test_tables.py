"""Tables and data sets of the Hub become checked rows."""

import gzip
import os
import shutil
import unicodedata
from pathlib import Path

import pandas
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from data.files import assert_shape, data_error, write_table
from hf_vanilla_transformer.data import tables
from hf_vanilla_transformer.data.labels import label_names


@pytest.mark.parametrize(
    ("suffix", "labels"),
    [(".csv", [10, 9, -1]), (".tsv", ["2", "10", "1"]), (".jsonl", [10, 9, -1]), (".parquet", ["sad", "glad", "mad"])],
)
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


@pytest.mark.parametrize("columns", [["text", "n", "label"], ["review", "label"]])
def test_the_column_with_the_texts_is_found(load, tmp_path, columns):
    """The column `text`, or the only one besides the labels, in files and in memory."""
    rows = [(f"{i}번째", i, "ab"[i % 2]) for i in range(8)]
    records = [{columns[0]: text, columns[1]: number, columns[-1]: label} for text, number, label in rows]
    frame = pandas.DataFrame(records)
    data = Dataset.from_list(records)
    tables = [write_table(tmp_path / f"t{suffix}", records) for suffix in (".csv", ".tsv", ".jsonl")]
    for source in (*tables, frame, data, DatasetDict(train=data, test=data)):
        assert {*load(source)["train"]["text"]} < {record[columns[0]] for record in records}


def test_table_of_tabs_without_quoting(load, tmp_path):
    texts = ['"unclosed', 'he said "no"', "plain", '"', '"a" and "b"', 'a"']
    path = tmp_path / "raw.tsv"
    path.write_text("label\ttext\n" + "".join(f"{i % 2}\t{text}\r\n" for i, text in enumerate(texts * 3)), newline="")
    loaded = load(path, text_column="text")
    assert sorted(text for split in loaded.values() for text in split["text"]) == sorted(texts * 3)


HEAD, JSON = b"document,label\n", b'{"document": "a", "label": %s}\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv: the file is empty"),
        ("t.csv", HEAD + b'"a\nb\r\n\r\nc",0\r\n\r\n"d\ne",1,2\r\n', "t.csv, row 4: 3 columns instead of 2"),
        ("t.csv", b"document;label\na;0\n", "no column 'label'; the columns are document;label: name one by"),
        ("t.csv", HEAD + b'a,0\n"b,1\n', "t.csv, row 3: unexpected end of data"),
        ("t.csv", HEAD + b"a,0\n\xb0\xa1,1\n", "t.csv, line 3: not UTF-8 (invalid start byte): name the encoding"),
        ("t.tsv", b"document\tlabel\n\n", "t.tsv: no rows"),
        ("t.csv", HEAD + b"a,0\nb,0\nc,1\n", "one row alone has the label '1'"),
        ("t.csv", HEAD + b"a,0\nb,0\n", "the column 'label' has fewer than two labels: ['0']"),
        ("t.csv", b"document,label,label\na,0,1\n", "two columns 'label'; the columns are document, label, label"),
        ("t.tsv", b"document\tlabel\na\n", "t.tsv, row 2: 1 columns instead of 2"),
        ("t.json", b"", "t.json"),
        ("t.jsonl", b'{"text": "a", "stars": 1}\n', "no column 'label'; the columns are text, stars"),
        ("t.jsonl", b'{"document": 1, "label": 1}\n', "the column of text_column holds"),
        ("t.csv", b"id,review,label\n1,a,0\n", "columns are id, review, label: name one by text_column"),
        (
            "t.jsonl",
            JSON % b'"b"' + JSON % b"null" + JSON % b'"None"',
            "1 of 3 rows have no label in the column label",
        ),
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
        ("t.csv", unicodedata.normalize("NFD", "리뷰,label\n") + "하나,a\n둘,b\n", {}),
        ("t.jsonl", '{"\\u200b리뷰": "하나", "label": "a"}\n{"\\u200b리뷰": "둘", "label": "b"}', {}),
        ("t.csv", '\ufeff리뷰,label\r\n"하나",a\r\n둘,b', {}),
    ],
)
def test_what_excel_and_others_write(load, tmp_path, name, content, options):
    """Encodings, empty last lines, ends of lines, columns that look the same."""
    written = content.encode(options.get("encoding", "utf-8"))
    for ending, zipped in ((Path(name).suffix, written), (f"{Path(name).suffix}.gz", gzip.compress(written))):
        (tmp_path / ending).mkdir()
        for split in ("train", "val", "test"):
            (tmp_path / ending / f"{split}{ending}").write_bytes(zipped)
        loaded = load(tmp_path / ending, text_column="리뷰", **options)
        assert [split[:] for split in loaded.values()] == [{"text": ["하나", "둘"], "label": [0, 1]}] * 3


@pytest.mark.parametrize("name", ["t.csv", "t.json", "ratings_test.txt"])
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
        path = tmp_path / "link" if name == "ratings_test.txt" else tmp_path / "link" / name
        loaded = load(path, text_column="document")
        assert set(loaded["test"]["text"]) == {word}


def test_sources_that_are_nothing(load, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.csv"):
        load("nowhere.csv")
    for name in ("nowhere", "some/where", "no/where/at all", "my data"):
        with data_error(f"{name}: no such file or folder here; as a name on the Hub: "):
            load(name)
    with data_error("not a list"):
        load([{"document": "a", "label": "b"}])


def hub_rows(labels, names, column="document"):
    features = Features({column: Value("string"), "label": ClassLabel(names=names)})
    return Dataset.from_dict({column: [f"{label}" for label in labels], "label": labels}, features=features)


def test_data_sets_of_the_hub(load, monkeypatch):
    """Class labels keep their names; splits without labels are left alone; a configuration is chosen."""
    part, titles = hub_rows([1, 0] * 4, ["yes", "no"]), hub_rows([1, 0] * 4, ["yes", "no"], "title")
    hub = {
        ("someone/reviews", None): DatasetDict(train=part, dev=part, extra=part, test=hub_rows([-1], ["yes", "no"])),
        ("klue", "ynat"): DatasetDict(dict.fromkeys(("train", "validation"), titles)),
        ("someone/both", None): DatasetDict(train=part, dev=part, validation=part),
    }
    monkeypatch.setattr(tables, "load_dataset", lambda *name, **_: hub[name])
    loaded = load("someone/reviews")
    assert_shape(loaded, ["yes", "no"])
    assert {split: len(part) for split, part in loaded.items()} == {"train": 6, "validation": 8, "test": 2}
    assert len(load("klue", config_name="ynat", text_column="title")["validation"]) == 8
    with data_error("someone/both", "two are the same split"):
        load("someone/both")


def test_each_split_has_class_labels_of_its_own(load, tmp_path):
    """`class_encode_column` numbers the labels of each split by itself."""
    data = DatasetDict(train=hub_rows([0, 1, 2] * 4, ["a", "b", "c"]), test=hub_rows([0, 1], ["b", "c"]))
    data.save_to_disk(tmp_path / "saved")
    for source in (data, tmp_path / "saved"):
        loaded = load(source)
        assert label_names(loaded["test"]) == ["a", "b", "c"] and loaded["test"]["label"][:] == [1, 2]
    assert sum(map(len, load(tmp_path / "saved" / "train").values())) == 12
    assert load(data, cut=False, known_labels=["c", "b", "a"])["test"]["label"][:] == [1, 0]


def test_of_a_frame_the_wanted_columns_are_read(load):
    frame = pandas.DataFrame({"text": [*"abcdefgh"], "label": [0, 1] * 4, "memo": [1, "x"] * 4})
    loaded = load(frame)
    assert sum(map(len, loaded.values())) == 8 and label_names(loaded["train"]) == ["0", "1"]
    with data_error("no column 'nowhere'; the columns are text, label, memo"):
        load(frame, text_column="nowhere")
