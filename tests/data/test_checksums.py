"""Checksums of rows."""

import hashlib

from datasets import ClassLabel, Dataset, Features, Value

from hf_vanilla_transformer.data.checksums import checksum


def test_the_checksum_is_that_of_the_rows_as_json_lines():
    """What published records and `NSMC_TEST_SHA256` were made with."""
    features = Features({"text": Value("string"), "label": ClassLabel(names=["a", "b"])})
    data = Dataset.from_dict({"text": ["a", "영화"], "label": [1, 0]}, features=features).select([1, 0])
    assert checksum(data) == hashlib.sha256('["영화", 0]\n["a", 1]\n'.encode()).hexdigest()
