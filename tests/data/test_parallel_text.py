"""Parallel text: what is loaded, and what is refused before any training."""

import gzip
import json
import logging

import pytest
from datasets import Dataset
from datasets.table import MemoryMappedTable

from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.data.parallel_text import load_parallel_text, tokenize_pairs
from hf_vanilla_transformer.tokenizer import train_tokenizer


def write(file, lines):
    text = "".join(f"{line}\n" for line in lines).encode()
    file.write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)


def blocks(table):
    """The tables that a data set's table consists of."""
    return [block for row in table.blocks for block in row] if hasattr(table, "blocks") else [table]


@pytest.fixture
def folder(tmp_path):
    """Aligned files: plain on one side, gzip on the other."""
    write(tmp_path / "train.ko", [f"안녕 {number}" for number in range(40)])
    write(tmp_path / "train.en.gz", [f"hello {number}" for number in range(40)])
    write(tmp_path / "val_1.ko", ["하나 ", "둘"])
    write(tmp_path / "val_1.en", ["one", " two"])
    return tmp_path


@pytest.fixture
def load(tmp_path_factory):
    cache_dir = tmp_path_factory.mktemp("cache")

    def load(source, source_column="ko", target_column="en", **options):
        return load_parallel_text(source, source_column, target_column, cache_dir=cache_dir, **options)

    return load


def test_aligned_files_are_pairs(folder, load):
    data = load(folder, prefixes={"validation": "val_1"}, validation_fraction=0.1)
    assert data["validation"][:] == {"source": ["하나", "둘"], "target": ["one", "two"]}
    assert (len(data["train"]), len(data["test"])) == (36, 4)  # the test split is cut from train
    for split in ("train", "test"):
        for pair in data[split]:
            assert pair["source"].split()[1] == pair["target"].split()[1]
    assert not set(data["train"]["source"]) & set(data["test"]["source"])
    assert load(folder, "en", "ko", prefixes={"validation": "val_1"})["validation"]["source"][:] == ["one", "two"]


def test_the_cut_is_the_same_for_the_same_seed(folder, load):
    cuts = [load(folder, seed=seed)["test"]["source"][:] for seed in (1, 1, 2)]
    assert cuts[0] == cuts[1] != cuts[2]


@pytest.mark.parametrize("table", [False, True])
def test_pairs_are_memory_mapped(table, folder, load, tmp_path):
    """Text, order of the splits and tokens are in files, which a second start finds."""
    if table:
        write(tmp_path / "pairs.tsv", ["ko\ten", *(f"안녕 {number}\thello {number}" for number in range(40))])
    starts = [load(tmp_path / "pairs.tsv" if table else folder) for _ in range(2)]
    tokenizer = train_tokenizer(starts[0]["train"]["source"], vocab_size=40, add_eos=True)
    for data in (*starts, *(tokenize_pairs(data, tokenizer, tokenizer) for data in starts)):
        for split in data.values():
            assert split.cache_files and all(isinstance(block, MemoryMappedTable) for block in blocks(split.data))
            assert split._indices is None or isinstance(split._indices, MemoryMappedTable)
    assert {split: rows[:] for split, rows in starts[0].items()} == {s: rows[:] for s, rows in starts[1].items()}
    files = [[split.cache_files for split in tokenize_pairs(data, tokenizer, tokenizer).values()] for data in starts]
    assert files[0] == files[1]


def test_splits_are_those_of_datasets_itself(folder, load):
    """Published runs depend on the rows and their order."""
    pairs = Dataset.from_dict({"number": range(40)})
    rest, validation = pairs.train_test_split(2, seed=42).values()
    train, test = rest.train_test_split(2, seed=42).values()
    data = load(folder, prefixes={"test": "train"}, validation_fraction=0.05)
    assert data["validation"]["target"][:] == [f"hello {number}" for number in validation["number"]]
    data = load(folder, validation_fraction=0.05)
    for split, expected in (("train", train), ("validation", test), ("test", validation)):
        assert data[split]["target"][:] == [f"hello {number}" for number in expected["number"]]


def test_tokens_do_not_depend_on_the_number_of_processes(folder, tmp_path_factory, monkeypatch):
    """Nor does the tokenizer that is saved afterwards."""
    made = []
    for number in (None, 2):
        monkeypatch.setattr("hf_vanilla_transformer.data.rows.tokenizing_processes", lambda _, number=number: number)
        data = load_parallel_text(folder, "ko", "en", cache_dir=tmp_path_factory.mktemp("cache"))
        tokenizer = train_tokenizer(data["train"]["source"], vocab_size=40, add_eos=True)
        rows = tokenize_pairs(data["train"], tokenizer, tokenizer)
        assert len(rows.cache_files) == (number or 1)
        made.append((rows[:], tokenizer.backend_tokenizer.to_str()))
    assert made[0] == made[1]


def test_an_entry_of_a_mapping_is_named_with_a_point(tmp_path, load):
    """The form of the Hub's translation data sets."""
    table = tmp_path / "pairs.jsonl"
    write(table, [json.dumps({"translation": {"ko": f"안녕 {n}", "en": f"hello {n}"}}) for n in range(5)])
    data = load(table, "translation.en", "translation.ko")
    assert data["test"]["source"][0].startswith("hello") and data["test"]["target"][0].startswith("안녕")


def test_training_pairs_with_an_empty_side_are_dropped(folder, load, caplog):
    write(folder / "train.ko", [f"안녕 {number}" if number % 10 else " " for number in range(40)])
    with caplog.at_level(logging.WARNING):
        data = load(folder, validation_fraction=0.1)
    assert len(data["train"]) + len(data["validation"]) + len(data["test"]) == 36
    assert "4 of 40 rows have an empty side and are dropped, 36 are left" in caplog.text


def test_what_is_wrong_is_said_in_one_line(folder, load):
    def message(*arguments, **options) -> str:
        with pytest.raises(DataError) as error:
            load(*arguments, **options)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "no such file or folder" in message(folder / "nowhere.tsv")
    assert f"{folder / 'train.fr'}: no such file, plain or .gz" in message(folder, "ko", "fr")
    (folder / "valid.ko").write_text("가\n", encoding="utf-8")
    assert f"{folder / 'valid.en'}: no such file, plain or .gz" in message(folder)
    (folder / "valid.ko").unlink()
    assert "neither dev.ko nor dev.en" in message(folder, prefixes={"validation": "dev"})
    assert "the same column" in message(folder, "ko", "ko")
    assert "validation_fraction" in message(folder, validation_fraction=1.0)
    assert "split validation: cannot be cut from train" in message(folder, validation_fraction=0.999)

    write(folder / "val_1.en", ["one", ""])
    assert "split validation, pair 2: a side is empty" in message(folder, prefixes={"validation": "val_1"})
    write(folder / "val_1.en", ["one"])
    assert "val_1.ko has 2 lines and val_1.en 1: they are not" in message(folder, prefixes={"validation": "val_1"})
    write(folder / "train.ko", [""] * 40)
    assert "split train: all rows have an empty side" in message(folder)
    write(folder / "train.ko", [])
    write(folder / "train.en.gz", [])
    assert "split train: no pair of sentences" in message(folder)

    table = folder / "pairs.tsv"
    write(table, ["ko\ten", "안녕\thello"])
    assert "no column 'de'; the columns are ko, en" in message(table, "ko", "de")
    assert "has a single pair" in message(table)
    write(table, ["ko\ten", "안녕"])
    assert "line 2: 1 columns instead of 2" in message(table)


def test_both_sides_end_with_eos_and_the_longer_one_counts(folder, load):
    data = load(folder)
    tokenizer = train_tokenizer(data["train"]["source"], vocab_size=40, add_eos=True, max_length=6)
    target_tokenizer = train_tokenizer(data["train"]["target"], vocab_size=40, model="word", add_eos=True)
    tokenized = tokenize_pairs(data["test"], tokenizer, target_tokenizer)
    assert tokenized.column_names == ["input_ids", "labels", "length"]
    for row, pair in zip(tokenized, data["test"], strict=True):
        assert row["input_ids"][-1] == row["labels"][-1] == tokenizer.eos_token_id
        assert row["length"] == max(len(row["input_ids"]), len(row["labels"]))
        assert tokenizer.decode(row["input_ids"], skip_special_tokens=True) == pair["source"]
    longest = tokenize_pairs(data["test"].map(lambda _: {"source": "안녕 " * 20}), tokenizer, target_tokenizer)
    assert {len(ids) for ids in longest["input_ids"]} == {6}  # cut, with its end
    assert longest["input_ids"][0][-1] == tokenizer.eos_token_id
