"""Rows of memory-mapped data sets, and their checksums."""

import hashlib
import pickle

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from hf_vanilla_transformer.data.checksums import checksum
from hf_vanilla_transformer.data.rows import (
    ROWS_PER_PROCESS,
    TextsOfColumns,
    column_array,
    list_lengths,
    select_rows,
    tokenizing_processes,
)


@pytest.fixture(params=["in memory", "memory-mapped"])
def rows(request, tmp_path):
    rows = Dataset.from_dict({"text": [f"text {number}" for number in range(10_000)], "number": range(10_000)})
    rows = rows.add_column("list", [[1] * (number % 7) for number in range(10_000)])
    if request.param == "memory-mapped":
        rows.save_to_disk(tmp_path)
        rows = Dataset.load_from_disk(tmp_path)
    return rows


def test_chosen_rows_are_those_of_datasets_itself(rows):
    order = np.random.default_rng(0).permutation(10_000)[:9000]
    chosen, expected = select_rows(rows, order), rows.select(order)
    assert chosen[:] == expected[:] and column_array(chosen, "number").tolist() == order.tolist()
    assert list_lengths(chosen, "list").tolist() == [number % 7 for number in order.tolist()]
    again = select_rows(chosen, np.arange(7, 5000))
    assert again[:] == expected.select(range(7, 5000))[:]
    assert list(TextsOfColumns(again, ["text"])) == again["text"][:] == list(TextsOfColumns(again, ["text"]))
    # A process of `map` gets a shard, not a copy of all indices.
    if rows.cache_files:
        assert len(pickle.dumps(again.shard(4, 0, contiguous=True))) < 5000


def test_the_same_rows_have_the_same_fingerprint(rows):
    one, same, other = (select_rows(rows, np.array(order))._fingerprint for order in ([1, 2], [1, 2], [2, 1]))
    assert one == same != other
    assert one != select_rows(select_rows(rows, np.arange(9)), np.array([1, 2]))._fingerprint


def test_few_rows_stay_in_this_process(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(8), raising=False)
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["fork", "spawn"])
    numbers = [tokenizing_processes(times * ROWS_PER_PROCESS) for times in (0, 1, 3, 100)]
    assert numbers == [None, None, 3, 8]
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn", "fork"])
    assert tokenizing_processes(100 * ROWS_PER_PROCESS) is None


def test_the_checksum_is_that_of_the_rows_as_json_lines():
    """What published records and `NSMC_TEST_SHA256` were made with."""
    features = Features({"text": Value("string"), "label": ClassLabel(names=["a", "b"])})
    data = Dataset.from_dict({"text": ["a", "영화"], "label": [1, 0]}, features=features).select([1, 0])
    assert checksum(data) == hashlib.sha256('["영화", 0]\n["a", 1]\n'.encode()).hexdigest()
