"""Folders: which file is which split, what is not read, and that a file has the same rows alone and in a folder."""

import pytest
from datasets import Dataset

from data.files import data_error, write_lines, write_table
from hf_vanilla_transformer.data.labels import label_names


# Words that stand for nothing elsewhere, numbers with zeros, lone quotes.
TEXTS = ["NA", "null", "None", "nan", "10", "2.5", '하나"', '"셋', "넷"]
RECORDS = [{"document": text, "label": label} for text in TEXTS for label in ("01", "02", "NA")]


def rows_of(split):
    return sorted((row["text"], label_names(split)[row["label"]]) for row in split)


def write_pairs(folder, name, number):
    for column in ("ko", "en"):
        write_lines(folder / f"{name}.{column}", [f"{name} {column} {line}" for line in range(number)])


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "data[1] *"
    folder.mkdir()
    # What a pattern of that name would find, too.
    (tmp_path / "data1 x").mkdir()
    write_table(tmp_path / "data1 x" / "train.csv", RECORDS[:5])
    return folder


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".json", ".jsonl"])
def test_a_file_has_the_same_rows_alone_and_in_a_folder(load, folder, tmp_path, suffix):
    expected = sorted((record["document"], record["label"]) for record in RECORDS)
    alone = load(write_table(tmp_path / f"reviews{suffix}", RECORDS))
    assert sorted(row for split in alone.values() for row in rows_of(split)) == expected
    single = folder / f"Any Name{suffix.upper()}"
    write_table(tmp_path / f"x{suffix}", RECORDS).rename(single)
    assert {name: split[:] for name, split in load(folder).items()} == {name: s[:] for name, s in alone.items()}
    for name in ("train", "dev", "test"):
        write_table(folder / f"{name}{suffix}", RECORDS)
    assert [rows_of(split) for split in load(folder).values()] == [expected] * 3


@pytest.mark.parametrize("name", ["validation", "valid", "val", "Dev"])
def test_the_names_of_validation(load, load_pairs, folder, name):
    write_table(folder / "train.csv", RECORDS)
    write_table(folder / f"{name}.TSV", RECORDS[:9])
    assert len(load(folder)["validation"]) == 9
    for split, number in (("train", 20), (name, 3)):
        write_pairs(folder, split, number)
    assert load_pairs(folder)["validation"]["source"][:] == [f"{name} ko {line}" for line in range(3)]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["train.csv", "dev.csv", "val.json"], "dev.csv and val.json are both validation: keep one"),
        (["a.csv", "b.csv"], "which split is which? Name a.csv, b.csv train, validation and test"),
        (["test.csv", "dev.csv"], "no split train; the splits are validation, test"),
    ],
)
def test_a_folder_that_can_be_read_in_two_ways_is_refused(load, folder, files, message):
    for name in files:
        write_table(folder / name, RECORDS)
    with data_error(str(folder), message):
        load(folder)


def test_names_that_a_folder_lacks_are_cut_from_train(load_pairs, tmp_path, caplog):
    """A recipe's names are a default."""
    write_table(tmp_path / "train.tsv", [{"ko": f"하나 {number}", "en": f"one {number}"} for number in range(20)])
    write_pairs(tmp_path, "train", 40)
    assert len(load_pairs(tmp_path, prefixes={"validation": "val", "test": "test_2016_flickr"})["train"]) == 36
    assert "validation is 2 rows cut from train" in caplog.text


def test_hidden_and_other_tables_are_not_read(load, folder):
    write_table(folder / "train.csv", RECORDS)
    for name in ("._train.csv", ".hidden.csv", "notes.txt"):
        write_table(folder / name, RECORDS[:3])
    assert sum(map(len, load(folder).values())) == len(RECORDS)


def test_a_folder_that_datasets_reads(load, tmp_path):
    rows = Dataset.from_dict({"document": [f"글 {number}" for number in range(8)], "label": ["a", "b"] * 4})
    (tmp_path / "repository" / "data").mkdir(parents=True)
    rows.to_parquet(tmp_path / "repository" / "data" / "train-00000-of-00001.parquet")
    assert sum(map(len, load(tmp_path / "repository").values())) == 8
