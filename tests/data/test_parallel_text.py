"""Parallel text: what is loaded, and what is refused before any training."""

import json

import pytest
from datasets import Dataset

from data.files import data_error, write_lines
from hf_vanilla_transformer.data.parallel_text import tokenize_pairs
from hf_vanilla_transformer.data.tokenizer import train_tokenizer


@pytest.fixture
def folder(tmp_path):
    """Aligned files: plain on one side, gzip on the other."""
    write_lines(tmp_path / "train.ko", [f"안녕 {number}" for number in range(40)])
    write_lines(tmp_path / "train.en.gz", [f"hello {number}" for number in range(40)])
    write_lines(tmp_path / "val_1.ko", ["하나 ", "둘"])
    write_lines(tmp_path / "val_1.en", ["one", " two"])
    return tmp_path


def test_aligned_files_are_pairs(folder, load_pairs):
    data = load_pairs(folder, prefixes={"validation": "val_1"}, validation_fraction=0.1)
    assert data["validation"][:] == {"source": ["하나", "둘"], "target": ["one", "two"]}
    assert (len(data["train"]), len(data["test"])) == (36, 4)  # the test split is cut from train
    for split in ("train", "test"):
        for pair in data[split]:
            assert pair["source"].split()[1] == pair["target"].split()[1]
    assert not set(data["train"]["source"]) & set(data["test"]["source"])
    swapped = load_pairs(folder, source_column="en", target_column="ko", prefixes={"validation": "val_1"})
    assert swapped["validation"]["source"][:] == ["one", "two"]


def test_pairs_are_memory_mapped_and_cached(folder, load_pairs):
    starts = [load_pairs(folder) for _ in range(2)]
    tokenizer = train_tokenizer(starts[0]["train"]["source"], vocab_size=40, add_eos=True)
    files = [
        [split.cache_files for rows in (data, tokenize_pairs(data, tokenizer, tokenizer)) for split in rows.values()]
        for data in starts
    ]
    assert files[0] == files[1] and all(files[0])


@pytest.mark.parametrize("seed", [1, 42])
def test_splits_are_those_of_datasets_itself(folder, load_pairs, seed):
    """Published runs depend on the rows and their order."""
    pairs = Dataset.from_dict({"number": range(40)})
    rest, validation = pairs.train_test_split(2, seed=seed).values()
    train, test = rest.train_test_split(2, seed=seed).values()
    data = load_pairs(folder, prefixes={"test": "train"}, validation_fraction=0.05, seed=seed)
    assert data["validation"]["target"][:] == [f"hello {number}" for number in validation["number"]]
    data = load_pairs(folder, validation_fraction=0.05, seed=seed)
    for split, expected in (("train", train), ("validation", test), ("test", validation)):
        assert data[split]["target"][:] == [f"hello {number}" for number in expected["number"]]


def test_an_entry_of_a_mapping_is_named_with_a_point(tmp_path, load_pairs):
    """The form of the Hub's translation data sets."""
    table = tmp_path / "pairs.jsonl"
    write_lines(table, [json.dumps({"translation": {"ko": f"안녕 {n}", "en": f"hello {n}"}}) for n in range(5)])
    data = load_pairs(table, source_column="translation.en", target_column="translation.ko")
    assert data["test"]["source"][0].startswith("hello") and data["test"]["target"][0].startswith("안녕")


def test_training_pairs_with_an_empty_side_are_dropped(folder, load_pairs, caplog):
    write_lines(folder / "train.ko", [f"안녕 {number}" if number % 10 else " " for number in range(40)])
    data = load_pairs(folder, validation_fraction=0.1)
    assert len(data["train"]) + len(data["validation"]) + len(data["test"]) == 36
    assert "4 of 40 rows have an empty side and are left out" in caplog.text


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({}, {"target_column": "fr"}, "train.ko: the file of the other language is missing, plain or .gz"),
        ({}, {"target_column": "ko"}, "the same column"),
        ({"train.ko.gz": ["가"]}, {}, "train.ko and train.ko.gz are both train: keep one"),
        ({"val.ko": ["하나", "둘"], "val.en": ["one", ""]}, {}, "split validation: 1 of 2 rows have an empty side"),
        ({"val.ko": ["하나", "둘"], "val.en": ["one"]}, {}, "val.ko and val.en: Number of rows must match"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder, load_pairs, files, options, message):
    for name, lines in files.items():
        write_lines(folder / name, lines)
    with data_error(message):
        load_pairs(folder, **options)


def test_both_sides_end_with_eos_and_the_longer_one_counts(folder, load_pairs):
    data = load_pairs(folder)
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
