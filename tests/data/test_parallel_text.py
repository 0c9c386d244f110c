"""Parallel text: what is loaded, and what is refused before any training."""

import gzip
import json
import logging

import pytest

from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.data.parallel_text import load_parallel_text, tokenize_pairs
from hf_vanilla_transformer.tokenizer import train_tokenizer


def write(file, lines):
    (gzip.open if file.suffix == ".gz" else open)(file, "wb").write("".join(f"{line}\n" for line in lines).encode())


@pytest.fixture
def folder(tmp_path):
    """Aligned files: plain on one side, gzip on the other."""
    write(tmp_path / "train.ko", [f"안녕 {number}" for number in range(40)])
    write(tmp_path / "train.en.gz", [f"hello {number}" for number in range(40)])
    write(tmp_path / "val.ko", ["하나 ", "둘"])
    write(tmp_path / "val.en", ["one", " two"])
    return tmp_path


@pytest.fixture
def load(tmp_path_factory):
    cache_dir = tmp_path_factory.mktemp("cache")

    def load(source, source_column="ko", target_column="en", **options):
        return load_parallel_text(source, source_column, target_column, cache_dir=cache_dir, **options)

    return load


def test_aligned_files_are_pairs(folder, load):
    data = load(folder, prefixes={"validation": "val"}, validation_fraction=0.1)
    assert data["validation"][:] == {"source": ["하나", "둘"], "target": ["one", "two"]}
    assert (len(data["train"]), len(data["test"])) == (36, 4)  # the test split is cut from train
    for split in ("train", "test"):
        for pair in data[split]:
            assert pair["source"].split()[1] == pair["target"].split()[1]
    assert not set(data["train"]["source"]) & set(data["test"]["source"])
    assert load(folder, "en", "ko", prefixes={"validation": "val"})["validation"]["source"][:] == ["one", "two"]


def test_the_cut_is_the_same_for_the_same_seed(folder, load):
    cuts = [load(folder, seed=seed)["test"]["source"][:] for seed in (1, 1, 2)]
    assert cuts[0] == cuts[1] != cuts[2]


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_a_table_is_pairs(suffix, tmp_path, load):
    table = tmp_path / f"pairs{suffix}"
    rows = [{"ko": f"안녕 {number}", "en": f"hello {number}", "id": str(number)} for number in range(10)]
    if suffix == ".tsv":
        write(table, ["ko\ten\tid", *("\t".join(row.values()) for row in rows)])
    else:
        write(table, [json.dumps(row, ensure_ascii=False) for row in rows])
    data = load(table, validation_fraction=0.1)
    assert {name: len(split) for name, split in data.items()} == {"train": 8, "validation": 1, "test": 1}
    assert data["train"].column_names == ["source", "target"]


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
    assert "4 of 40 pairs have an empty side and are dropped, the first is number 1" in caplog.text


def test_what_is_wrong_is_said_in_one_line(folder, load):
    def message(*arguments, **options) -> str:
        with pytest.raises(DataError) as error:
            load(*arguments, **options)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "no such file or folder" in message(folder / "nowhere.tsv")
    assert f"{folder / 'train.fr'}: no such file, plain or .gz" in message(folder, "ko", "fr")
    assert "neither dev.ko nor dev.en" in message(folder, prefixes={"validation": "dev"})
    assert "the same column" in message(folder, "ko", "ko")
    assert "validation_fraction" in message(folder, validation_fraction=1.0)
    assert "split validation: cannot be cut from train" in message(folder, validation_fraction=0.999)
    assert str(folder) in message(folder, seed=-1)

    write(folder / "val.en", ["one", ""])
    assert "split validation, pair 2: a side is empty" in message(folder, prefixes={"validation": "val"})
    write(folder / "val.en", ["one"])
    assert "val.ko has 2 lines and val.en 1: they are not aligned" in message(folder, prefixes={"validation": "val"})
    write(folder / "train.ko", [""] * 40)
    assert "no pair of sentences" in message(folder)

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
