import csv
import io
import json
import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Value
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast

from hf_vanilla_transformer import data
from hf_vanilla_transformer.data.checksums import checksum
from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.data.labelled_text import encode, load_labelled_text, tokenize
from hf_vanilla_transformer.data.nsmc import SAMPLES


HEADER = "id\tdocument\tlabel\n"
# What a reviewer may write, and a careless reader breaks a line or a field at.
ODD_DOCUMENTS = [
    '그는 "최고"라고 했다',
    '"전부 인용"',
    '"',
    '따옴표 셋 """',
    "다음 줄\x85같지만 한 줄",
    "줄\u2028나눔\u2029글자",
    "세로\x0b탭과\x0c쪽 나눔\x1c\x1d\x1e",
    "되돌림\r문자",
    "NA",
    "null",
    "  앞뒤 공백  ",
]


def quote(document: str) -> str:
    """Write a field as a CSV writer does, by the rule that NSMC's makers applied twice: quoted if it must be."""
    return '"' + document.replace('"', '""') + '"' if '"' in document else document


def rows(count: int, start: int = 0) -> str:
    """Rows in NSMC's format, as many positive as negative ones."""
    return "".join(f"{i}\t{i}번째 감상\t{i % 2}\n" for i in range(start, start + count))


@pytest.fixture(autouse=True)
def online(monkeypatch):
    """The loopback is reached even where the tests run offline, or behind a proxy."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)


@pytest.fixture
def load(tmp_path):
    """`load_labelled_text` with a cache of its own."""
    return partial(load_labelled_text, cache_dir=tmp_path / "cache")


@pytest.fixture
def nsmc_folder(tmp_path):
    """A folder in NSMC's format: 40 rows to train on, 10 to test on."""
    folder = tmp_path / "nsmc"
    folder.mkdir()
    (folder / "ratings_train.txt").write_bytes((HEADER + rows(40)).encode())
    (folder / "ratings_test.txt").write_bytes((HEADER + rows(10, start=40)).encode())
    return folder


@pytest.fixture
def server(nsmc_folder):
    """A server on loopback that serves the folder, counts its requests, and can be stopped."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            server.requests += 1

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=nsmc_folder))
    server.requests = 0
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def assert_shape(loaded: DatasetDict, names: list[str]) -> None:
    assert list(loaded) == ["train", "validation", "test"]
    for split in loaded.values():
        assert split.features == {"text": Value("string"), "label": ClassLabel(names=names)}


def assert_one_line(error: pytest.ExceptionInfo, *parts: str) -> None:
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


# The sample


def test_sample_loads(load):
    loaded = load("sample")
    assert_shape(loaded, ["negative", "positive"])
    assert {split: len(part) for split, part in loaded.items()} == {"train": 570, "validation": 30, "test": 120}


def test_sample_is_clean():
    documents, ids = [], []
    for name in ("ratings_train.txt", "ratings_test.txt"):
        lines = (SAMPLES / name).read_bytes().decode().removesuffix("\n").split("\n")
        assert lines[0] == HEADER.rstrip("\n")
        columns = list(zip(*(line.split("\t") for line in lines[1:]), strict=True))
        assert columns[2].count("0") == columns[2].count("1") == len(lines[1:]) / 2
        ids += columns[0]
        documents += columns[1]
    assert len(documents) >= 600
    assert all(document == document.strip() != "" for document in documents)
    assert len(set(documents)) == len(documents)
    assert len(set(ids)) == len(ids)


# NSMC's format


def test_folder_keeps_rows_and_labels(load, nsmc_folder):
    loaded = load(nsmc_folder)
    assert_shape(loaded, ["negative", "positive"])
    assert loaded["test"]["text"][:] == [f"{i}번째 감상" for i in range(40, 50)]
    assert loaded["test"]["label"][:] == [i % 2 for i in range(40, 50)]
    assert len(loaded["train"]) + len(loaded["validation"]) == 40


def test_documents_come_back_as_written(load, nsmc_folder):
    fields = [quote(quote(document)) for document in ODD_DOCUMENTS]
    lines = "".join(f"{i}\t{field}\t{i % 2}\n" for i, field in enumerate(fields))
    (nsmc_folder / "ratings_test.txt").write_bytes((HEADER + lines).encode())
    assert load(nsmc_folder)["test"]["text"][:] == ODD_DOCUMENTS


@pytest.mark.parametrize("document", [document for document in ODD_DOCUMENTS if '"' in document])
def test_quoting_is_that_of_csv_writers(document):
    field = document
    for _ in range(2):
        written = io.StringIO()
        csv.writer(written, lineterminator="").writerow([field])
        field = written.getvalue()
    assert field == quote(quote(document))
    assert data._unquote(data._unquote(field)) == document


@pytest.mark.parametrize("field", ['"', '"a" and "b"', 'a "b"', '"a', 'a"', ""])
def test_unquoted_field_stays(field):
    assert data._unquote(field) == field


def test_empty_documents_are_dropped_and_logged(load, nsmc_folder, caplog):
    path = nsmc_folder / "ratings_train.txt"
    path.write_bytes(path.read_bytes() + b"90\t\t1\n91\t   \t0\n")
    loaded = load(nsmc_folder)
    assert len(loaded["train"]) + len(loaded["validation"]) == 40
    assert "2 of 42 rows have no text and are dropped, 40 are left" in caplog.text


def test_windows_files_and_missing_last_line_feed(load, nsmc_folder):
    expected = {split: part.to_dict() for split, part in load(nsmc_folder).items()}
    for path in nsmc_folder.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n").removesuffix(b"\r\n"))
    assert {split: part.to_dict() for split, part in load(nsmc_folder).items()} == expected


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"", 1, "without any row"),
        (HEADER.encode(), 2, "without any row"),
        (b"id,document,label\n1,a,0\n", 1, "header"),
        (b"id\ttext\tlabel\n1\ta\t0\n", 1, "header"),
        (b"1\ta\t0\n2\tb\t1\n", 1, "header"),
        (b"\n" + HEADER.encode(), 1, "header"),
        (f"{HEADER}1\ta\t0\n2\tb\n".encode(), 3, "2 columns instead of 3"),
        (f"{HEADER}1\ta\tb\t0\n".encode(), 2, "4 columns instead of 3"),
        (f"{HEADER}1\ta\t0\n\n2\tb\t1\n".encode(), 3, "1 columns instead of 3"),
        (f"{HEADER}1\ta\t0\n2\tb\t2\n".encode(), 3, "the label is '2', not 0 or 1"),
        (f"{HEADER}1\ta\tpositive\n".encode(), 2, "the label is 'positive'"),
        (f"{HEADER}1\ta\t\n".encode(), 2, "the label is ''"),
        (f"{HEADER}1\ta\t0\n2\tb\xff\t0\n3\tc\t0\n".encode("latin-1"), 3, "byte 4 is not UTF-8"),
        (f"{HEADER}1\ta\u2028b\x85c\t0\n2\tb\t5\n".encode(), 3, "the label is '5'"),
        ((HEADER + rows(9)).encode("cp949"), 2, "not UTF-8"),
        ((HEADER + rows(9)).encode("utf-16"), 1, "not UTF-8"),
        ((HEADER + rows(9)).encode()[:-2], 10, "cut off"),
        ((HEADER + rows(9)).encode()[:-5], 10, "cut off"),
        ((HEADER + rows(9)).encode()[:-6], 10, "cut off"),
    ],
)
@pytest.mark.parametrize("name", ["ratings_train.txt", "ratings_test.txt"])
def test_bad_file_is_named_with_its_line(load, nsmc_folder, name, content, line, reason):
    (nsmc_folder / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        load(nsmc_folder)
    assert_one_line(error, f"{nsmc_folder / name}, line {line}: ", reason)


@pytest.mark.parametrize("name", ["ratings_train.txt", "ratings_test.txt"])
def test_missing_file_is_named(load, nsmc_folder, name):
    (nsmc_folder / name).unlink()
    with pytest.raises(DataError) as error:
        load(nsmc_folder)
    assert_one_line(error, f"{nsmc_folder / name}: no such file")


def test_changed_file_is_read_again(load, nsmc_folder):
    load(nsmc_folder)
    path = nsmc_folder / "ratings_test.txt"
    path.write_bytes((HEADER + rows(6)).encode())
    os.utime(path, (1, 1))
    assert len(load(nsmc_folder)["test"]) == 6


@pytest.mark.parametrize("name", ["data[1]", "별표 *", ".hidden", "__dunder"])
def test_folder_with_an_odd_name(load, nsmc_folder, name):
    assert len(load(nsmc_folder.rename(nsmc_folder.with_name(name)))["test"]) == 10


# The download


def test_download_equals_the_folder_and_is_cached(load, server, nsmc_folder, tmp_path, caplog):
    expected = {split: part.to_dict() for split, part in load(nsmc_folder).items()}
    loaded = load("nsmc", nsmc_url=server.url)
    assert_shape(loaded, ["negative", "positive"])
    assert {split: part.to_dict() for split, part in loaded.items()} == expected
    assert f"{server.url}/ratings_train.txt: not the official file" in caplog.text
    downloads = [path.read_bytes() for path in (tmp_path / "cache" / "downloads").iterdir()]
    assert all(path.read_bytes() in downloads for path in nsmc_folder.iterdir())

    requests = server.requests
    assert {split: part.to_dict() for split, part in load("nsmc", nsmc_url=server.url).items()} == expected
    assert server.requests == requests > 0


def test_download_of_the_official_files_is_checked(load, server, monkeypatch):
    monkeypatch.setattr(data, "NSMC_URL", server.url)
    for url in (server.url, f"{server.url}/"):
        with pytest.raises(DataError) as error:
            load("nsmc", nsmc_url=url)
        assert_one_line(error, f"{server.url}/ratings_train.txt: not the official file")


def test_bad_download_is_named_by_its_url_and_tried_anew(load, server, nsmc_folder):
    path = nsmc_folder / "ratings_test.txt"
    good = path.read_bytes()
    path.write_bytes(good[:-4])
    with pytest.raises(DataError) as error:
        load("nsmc", nsmc_url=server.url)
    assert_one_line(error, f"{server.url}/ratings_test.txt, line 11: ", "cut off")
    path.write_bytes(good)
    assert len(load("nsmc", nsmc_url=server.url)["test"]) == 10


def test_download_that_is_not_there(load, server, nsmc_folder):
    (nsmc_folder / "ratings_test.txt").unlink()
    with pytest.raises(DataError) as error:
        load("nsmc", nsmc_url=server.url)
    assert_one_line(error, f"{server.url}/ratings_test.txt: cannot be downloaded", "404")


def test_server_that_is_away(load, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
    with pytest.raises(DataError) as error:
        load("nsmc", nsmc_url=url)
    assert_one_line(error, f"{url}/ratings_train.txt: cannot be downloaded", "127.0.0.1")


def test_address_that_is_a_folder(load, nsmc_folder):
    with pytest.raises(DataError) as error:
        load("nsmc", nsmc_url=str(nsmc_folder))
    assert_one_line(error, str(nsmc_folder), "http")
    assert (nsmc_folder / "ratings_train.txt").exists()


# Other tables


def write_table(path: Path, records: list[dict]) -> Path:
    if path.suffix == ".json":
        path.write_text(json.dumps(records), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    else:
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, records[0], delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows(records)
    return path


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


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl"])
def test_table_with_an_odd_name(load, tmp_path, suffix):
    path = write_table(tmp_path / f"reviews [1] *{suffix}", [{"document": "a", "label": i % 2} for i in range(8)])
    assert len(load(path)["train"]) == 4


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_table_from_windows(load, tmp_path, suffix):
    path = write_table(tmp_path / f"t{suffix}", [{"document": f"감상 {i}", "label": i % 2} for i in range(8)])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\r", b"").replace(b"\n", b"\r\n"))
    loaded = load(path)
    assert_shape(loaded, ["0", "1"])
    assert sorted(text for split in loaded.values() for text in split["text"]) == [f"감상 {i}" for i in range(8)]


def test_table_of_tabs_without_quoting(load, tmp_path):
    texts = ['"unclosed', 'he said "no"', "plain", '"']
    path = tmp_path / "raw.tsv"
    path.write_text("label\ttext\n" + "".join(f"{i % 2}\t{text}\r\n" for i, text in enumerate(texts * 3)), newline="")
    loaded = load(path, text_column="text")
    assert sorted(text for split in loaded.values() for text in split["text"]) == sorted(texts * 3)


def test_csv_text_of_several_lines(load, tmp_path):
    records = [{"document": f"첫 줄 {i}\n둘째 줄", "label": i % 2} for i in range(8)]
    loaded = load(write_table(tmp_path / "reviews.csv", records))
    assert {text for split in loaded.values() for text in split["text"]} == {row["document"] for row in records}


def test_folder_of_tables_keeps_its_splits(load, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    for split, count in {"train": 12, "validation": 4, "test": 6}.items():
        write_table(folder / f"{split}.csv", [{"document": f"{split} {i}", "label": i % 2} for i in range(count)])
    loaded = load(folder)
    assert_shape(loaded, ["0", "1"])
    assert {split: len(part) for split, part in loaded.items()} == {"train": 12, "validation": 4, "test": 6}
    assert all(text.startswith(split) for split, part in loaded.items() for text in part["text"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_folder_of_tables_is_read_as_its_files_are(load, tmp_path, suffix):
    """Words that stand for nothing elsewhere, numbers and lone quotes are texts."""
    texts = ["NA", "null", "None", "nan", "10", '"좋다', "2.5", "좋다"] * 5
    records = [{"document": text, "label": ["NA", "good"][i % 2]} for i, text in enumerate(texts)]
    file = write_table(tmp_path / f"reviews{suffix}", records)
    folder = tmp_path / "tables"
    folder.mkdir()
    for name in ("train", "dev", "test"):
        shutil.copy(file, folder / f"{name}{suffix}")
    loaded = load(folder)
    assert_shape(loaded, ["NA", "good"])
    assert {split: part["text"][:] for split, part in loaded.items()} == dict.fromkeys(loaded, texts)


def test_a_bad_table_in_a_folder_is_named_with_its_line(load, tmp_path):
    (tmp_path / "train.csv").write_text("document,label\na,0\nb,c,1\n")
    with pytest.raises(DataError) as error:
        load(tmp_path)
    assert_one_line(error, "train.csv, line 3: 3 columns instead of 2")


def test_class_labels_keep_their_names(load, tmp_path, monkeypatch):
    rows = {"document": ["a", "b", "c", "d"] * 3, "label": [1, 0, 1, 0] * 3}
    features = datasets.Features({"document": Value("string"), "label": ClassLabel(names=["yes", "no"])})
    hub = {"someone/reviews": DatasetDict({"train": Dataset.from_dict(rows, features=features)})}
    monkeypatch.setattr(data, "load_dataset", lambda name, cache_dir: hub[name])
    assert_shape(load("someone/reviews"), ["yes", "no"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl"])
@pytest.mark.parametrize("wanted", [{"text_column": "nowhere"}, {"label_column": "nowhere"}])
def test_missing_column_lists_those_there(load, tmp_path, suffix, wanted):
    path = write_table(tmp_path / f"t{suffix}", [{"document": "a", "label": 0, "stars": 5}] * 4)
    with pytest.raises(DataError) as error:
        load(path, **wanted)
    assert_one_line(error, str(path), "no column 'nowhere'; the columns are document, label, stars")


@pytest.mark.parametrize("source", ["sample", "folder"])
def test_missing_column_of_nsmc(load, nsmc_folder, source):
    with pytest.raises(DataError) as error:
        load("sample" if source == "sample" else nsmc_folder, text_column="review")
    assert_one_line(error, "no column 'review'; the columns are id, document, label")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv, line 1: the file ends here"),
        ("t.csv", b"document,label\n", "t.csv, line 2: the file ends here"),
        ("t.csv", b"document,label\na,0\nb,c,1\n", "t.csv, line 3: 3 columns instead of 2"),
        ("t.csv", b"document,label\na,0,1\nb,0,1\n", "t.csv, line 2: 3 columns instead of 2"),
        ("t.csv", b'document,label\na,0\n"b,1\n', "t.csv, line 3: unexpected end of data"),
        ("t.csv", b"document,label\na,0\n\xb0\xa1,1\n", "t.csv, line 3: byte 1 is not UTF-8"),
        ("t.csv", b"document,label\na,0\nb,\n", "split train, row 2: no label"),
        ("t.csv", b"document,label\n,0\n ,1\n", "split train: no row has a text"),
        ("t.csv", b"document,label\na,0\nb,0\nc,1\n", "one row alone has the label '1'"),
        ("t.csv", b"document,label\na,0\nb,0\n", "the column 'label' has fewer than two labels: ['0']"),
        (
            "t.csv",
            b"document,label,label\na,0,1\nb,1,0\n",
            "two columns 'label'; the columns are document, label, label",
        ),
        ("t.tsv", b"document\tlabel\tlabel\na\t0\t1\nb\t1\t0\n", "two columns 'label'; the columns are"),
        ("t.tsv", b"document\tlabel\na\n", "t.tsv, line 2: 1 columns instead of 2"),
        ("t.tsv", b"document\tlabel\n\xff\t1\n", "t.tsv, line 2: byte 1 is not UTF-8"),
        ("t.json", b"", "t.json, line 1: the file ends here"),
        ("t.json", b'{"document": "a", ', "t.json: JSON parse error"),
        ("t.jsonl", b'{"document": "\xff", "label": 1}\n', "t.jsonl, line 1: byte 15 is not UTF-8"),
        ("t.jsonl", b'{"document": 1, "label": 1}\n', "the column 'document' holds no texts"),
        ("t.jsonl", b'{"document": "a", "label": 0.5}\n', "the column 'label' holds neither integers nor strings"),
        ("t.jsonl", b'{"document": "a", "label": [1]}\n', "the column 'label' holds neither integers nor strings"),
        (
            "t.jsonl",
            b'{"document": "a", "label": "b"}\n{"document": "b", "label": null}\n{"document": "c", "label": "None"}\n',
            "row 2: no label",
        ),
        ("t.xls", b"document\tlabel\na\t1\n", "t.xls: not a .csv, .tsv, .txt, .json or .jsonl file"),
    ],
)
def test_bad_table(load, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        load(tmp_path / name)
    assert_one_line(error, str(tmp_path / name), message)


def test_texts_and_labels_are_not_the_same_column(load):
    with pytest.raises(DataError, match="texts and labels are the same column, 'label'"):
        load("sample", text_column="label")


@pytest.mark.parametrize("source", ["nowhere.csv", "./nowhere", "no/where/at all"])
def test_source_that_is_nothing(load, source):
    with pytest.raises(DataError) as error:
        load(source)
    assert str(error.value) == f"{source}: no such file or folder"


def test_source_without_a_name(load):
    with pytest.raises(DataError, match="empty"):
        load("")


def test_folder_without_data(load, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError) as error:
        load(tmp_path / "empty")
    assert_one_line(error, str(tmp_path / "empty"))


def test_hub_that_cannot_be_reached(load, monkeypatch):
    def refuse(name, cache_dir):
        raise ConnectionError(f"Couldn't reach\n'{name}' on the Hub")

    monkeypatch.setattr(data, "load_dataset", refuse)
    with pytest.raises(DataError) as error:
        load("someone/reviews")
    assert_one_line(error, "someone/reviews: no such file or folder, and not a data set on the Hub", "Couldn't reach")


def test_data_set_without_train(load, monkeypatch):
    part = Dataset.from_dict({"document": ["a", "b"], "label": [0, 1]})
    monkeypatch.setattr(data, "load_dataset", lambda name, cache_dir: DatasetDict({"dev": part, "test": part}))
    with pytest.raises(DataError) as error:
        load("someone/reviews")
    assert_one_line(error, "no split train; the splits are dev, test")


def test_a_split_of_unlabelled_texts_is_left_alone(load, monkeypatch):
    features = datasets.Features({"document": Value("string"), "label": ClassLabel(names=["neg", "pos"])})
    splits = {"train": [0, 1] * 4, "test": [0, 1], "unsupervised": [-1, -1]}
    rows = {
        split: Dataset.from_dict({"document": [f"{split} {i}" for i in range(len(labels))], "label": labels}, features)
        for split, labels in splits.items()
    }
    monkeypatch.setattr(data, "load_dataset", lambda name, cache_dir: DatasetDict(rows))
    loaded = load("someone/reviews")
    assert {split: len(part) for split, part in loaded.items()} == {"train": 6, "validation": 2, "test": 2}


# The validation split


@pytest.mark.parametrize("fraction", [-0.1, 0, 1, 5])
def test_validation_fraction_out_of_range(load, fraction):
    with pytest.raises(DataError, match="validation_fraction"):
        load("sample", validation_fraction=fraction)


def test_validation_follows_the_seed_and_leaves_the_rest(load, tmp_path):
    first = load("sample", validation_fraction=0.1, seed=1)
    again = load_labelled_text("sample", validation_fraction=0.1, seed=1, cache_dir=tmp_path / "another cache")
    other = load("sample", validation_fraction=0.1, seed=2)
    assert {split: part.to_dict() for split, part in first.items()} == {
        split: part.to_dict() for split, part in again.items()
    }
    assert set(first["validation"]["text"]) != set(other["validation"]["text"])
    assert first["test"].to_dict() == other["test"].to_dict()
    train, validation = set(first["train"]["text"]), set(first["validation"]["text"])
    assert not train & validation
    assert train | validation == set(other["train"]["text"]) | set(other["validation"]["text"])
    assert not (train | validation) & set(first["test"]["text"])
    assert sorted(first["validation"]["label"]) == [0] * 30 + [1] * 30


def test_the_cut_is_that_of_published_runs(load):
    """Another one would put texts that a published model was trained on into validation."""
    cut = load("sample", validation_fraction=0.05, seed=42)
    assert checksum(cut["validation"]) == "dde1a108a541043a983ff6bdb6a87b22617ded1e80fd13e64db300a8d961f330"


def test_cut_is_stratified(load, tmp_path):
    records = [{"document": f"text {i}", "label": "rare" if i < 10 else "usual"} for i in range(200)]
    loaded = load(write_table(tmp_path / "t.csv", records), validation_fraction=0.2)
    assert [part["label"][:].count(0) for part in loaded.values()] == [6, 2, 2]


# Tokens


@pytest.fixture
def tokenizer():
    """A tokenizer whose words are the sample's, spaces away, and zero-width characters dropped."""
    words = sorted({word for file in SAMPLES.iterdir() for word in file.read_text(encoding="utf-8").split()})
    vocabulary = {token: i for i, token in enumerate(["[PAD]", "[UNK]", *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.Replace("\u200b", "")
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", model_max_length=7)


def test_tokenize_is_the_tokenizer_cut_to_length(load, tokenizer):
    loaded = load("sample")
    for max_length in (None, 4):
        tokenized = tokenize(loaded, tokenizer, max_length)
        assert list(tokenized) == list(loaded)
        for split, part in tokenized.items():
            assert set(part.column_names) == {"input_ids", "labels", "length"}
            assert part.features["labels"] == loaded[split].features["label"]
            expected = [tokenizer(text, add_special_tokens=True)["input_ids"] for text in loaded[split]["text"]]
            assert part["input_ids"][:] == [ids[: max_length or 7] for ids in expected]
            assert part["length"][:] == [len(ids) for ids in part["input_ids"]]
            assert part["labels"][:] == loaded[split]["label"][:]


def test_a_tokenizer_without_an_unknown_token_is_refused():
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()))
    with pytest.raises(ValueError, match="no unk_token"):
        encode(["", "a"], tokenizer)


def test_text_without_tokens_is_one_unknown_token(tokenizer):
    part = Dataset.from_dict({"text": ["\u200b\u200b", "짱"], "label": [0, 1]})
    tokenized = tokenize(part, tokenizer)
    assert tokenized[0] == {"input_ids": [tokenizer.unk_token_id], "labels": 0, "length": 1}


def test_tokenized_rows_are_what_the_collator_takes(load, tokenizer):
    part = tokenize(load("sample")["test"], tokenizer).remove_columns("length")
    batch = DataCollatorWithPadding(tokenizer)([part[i] for i in range(8)])
    assert batch["input_ids"].shape == batch["attention_mask"].shape
    assert batch["attention_mask"].sum(1).tolist() == [len(part[i]["input_ids"]) for i in range(8)]
    assert batch["labels"].tolist() == part["labels"][:8]


def test_maximum_length_of_nothing(load, tokenizer):
    with pytest.raises(ValueError, match="max_length"):
        tokenize(load("sample"), tokenizer, 0)


# The official files


@pytest.mark.slow
@pytest.mark.skipif("NSMC_DIR" not in os.environ, reason="NSMC_DIR does not name the folder of the official files")
def test_official_files(load, caplog):
    folder = Path(os.environ["NSMC_DIR"])
    for split, name in data.NSMC_FILES.items():
        data._check_nsmc_checksum(folder / name, split, name, official=True)
    loaded = load(folder)
    assert_shape(loaded, ["negative", "positive"])
    assert len(loaded["train"]) + len(loaded["validation"]) == 149_995
    assert len(loaded["test"]) == 49_997
    assert "5 of 150,000 rows have no text and are dropped, 149,995 are left" in caplog.text
    assert "3 of 50,000 rows have no text and are dropped, 49,997 are left" in caplog.text

    quoted = 0
    for name, splits in {"ratings_train.txt": ["train", "validation"], "ratings_test.txt": ["test"]}.items():
        fields = [line.split("\t")[1] for line in (folder / name).read_bytes().decode().split("\n")[1:-1]]
        texts = [text for split in splits for text in loaded[split]["text"][:]]
        assert sorted(filter(None, fields)) == sorted(quote(quote(text)) for text in texts)
        quoted += sum('"' in field for field in fields)
    assert quoted == 623 + 233
