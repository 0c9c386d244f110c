from functools import partial

import datasets
import pytest

from data.files import HEADER, rows
from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.parallel_text import load_parallel_text


@pytest.fixture
def online(monkeypatch):
    """The loopback is reached even where the tests run offline, or behind a proxy."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Each test has a cache of its own."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", tmp_path / "downloads")


@pytest.fixture
def load():
    return load_labelled_text


@pytest.fixture
def load_pairs():
    """`load_parallel_text` of the columns `ko` and `en`."""
    return partial(load_parallel_text, source_column="ko", target_column="en")


@pytest.fixture
def nsmc_folder(tmp_path):
    """A folder in NSMC's format: 40 rows to train on, 10 to test on."""
    folder = tmp_path / "nsmc"
    folder.mkdir()
    (folder / "ratings_train.txt").write_bytes((HEADER + rows(40)).encode())
    (folder / "ratings_test.txt").write_bytes((HEADER + rows(10, start=40)).encode())
    return folder
