"""Rows of memory-mapped data sets, and their checksums."""

import hashlib

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Value, config
from shared import files_of_at_most

from data.files import write_table
from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.rows import TextsOfColumns, column_array
from hf_vanilla_transformer.data.sources import checksum
from hf_vanilla_transformer.errors import full_disk_errors


def test_columns_of_chosen_rows():
    rows = Dataset.from_dict({"text": [f"text {number}" for number in range(30_000)], "number": range(30_000)})
    order = np.random.default_rng(0).permutation(30_000)[:25_000]
    chosen = rows.select(order)
    assert column_array(chosen, "number").tolist() == order.tolist()
    texts = TextsOfColumns(chosen, ["text", "text"])
    assert list(texts) == list(texts) == [f"text {number}" for number in order] * 2


def test_a_full_cache_is_named(tmp_path):
    """Not the file that is read; where the rows are written, and where they are converted."""
    records = [{"text": f"글 {number}", "label": "ab"[number % 2]} for number in range(3000)]
    file, expected = write_table(tmp_path / "t.csv", records), f"File too large: '{config.HF_DATASETS_CACHE}'$"
    for labels in (None, ["b", "a"]):
        with pytest.raises(OSError, match=expected), full_disk_errors(tmp_path / "run"), files_of_at_most(1000):
            load_labelled_text(file, known_labels=labels)
        load_labelled_text(file)


def test_the_checksum_is_that_of_the_rows_as_json_lines():
    """What published records and `NSMC_TEST_SHA256` were made with."""
    features = Features({"text": Value("string"), "label": ClassLabel(names=["a", "b"])})
    data = Dataset.from_dict({"text": ["a", "영화"], "label": [1, 0]}, features=features).select([1, 0])
    assert checksum(data) == hashlib.sha256('["영화", 0]\n["a", 1]\n'.encode()).hexdigest()
