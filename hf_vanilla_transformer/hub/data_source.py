# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What a card says about data: their name, licence and place on the Hub."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from ..data.lines import TABLE_SUFFIXES, ending_of


class DataSource(NamedTuple):
    """Data as a card names them."""

    name: str
    identifier: str  # in the card's metadata
    korean: str  # in the Korean summary
    about: str | None = None  # further words, or a checksum
    terms: str = "under the licence of its source, which this card does not know"
    is_on_hub: bool = False  # under the identifier
    has_korean_reviews: bool = False  # of films


KNOWN_DATA = {
    "nsmc": DataSource(
        "NSMC",
        "e9t/nsmc",
        "네이버 영화 리뷰(NSMC)",
        "the Naver sentiment movie corpus, <https://github.com/e9t/nsmc>",
        "dedicated to the public domain (CC0 1.0)",
        is_on_hub=True,
        has_korean_reviews=True,
    ),
    "sample": DataSource(
        "the reviews embedded in hf_vanilla_transformer",
        "sample",
        "패키지에 들어 있는 예제 영화 리뷰",
        terms="Apache-2.0, written for the package",
        has_korean_reviews=True,
    ),
    "multi30k": DataSource(
        "Multi30k",
        "bentrevett/multi30k",
        "Multi30k",
        "captions of pictures, Elliott et al. 2016, <https://github.com/multi30k/dataset>",
        "for non-commercial research and education alone, as Flickr30k",
        is_on_hub=True,
    ),
}
# By the checksums of test splits, which no setting changes: NSMC's, Multi30k's test_2016_flickr in both directions.
TEST_SPLITS = {
    "a4f915a8c1fdee4300e8036ef28764e7d91a25fb83bc4def9a52c839924f1291": "nsmc",
    "9eede41cc4f19a80f2f7f4cfbe3be87c14167be260bba45cfcb36da4431cd28f": "multi30k",
    "9ec60e86d4c1d7c7c5d7af24d38cbd9de168bd938a02f1be723cabbea157e6ff": "multi30k",
}


def data_source(data: dict[str, Any]) -> DataSource:
    """Return what a card says about the data of a run's record, its entry `data`."""
    source = data["source"]
    if isinstance(source, dict):  # of pretraining: files with their checksums
        names = [Path(file).name for file in source]
        return DataSource(
            ", ".join(names), names[0].split(".")[0], ", ".join(names), f"SHA-256 {', '.join(source.values())}"
        )
    known = TEST_SPLITS.get(data.get("test", {}).get("sha256"), source)
    if known in KNOWN_DATA:
        return KNOWN_DATA[known]
    is_name = re.fullmatch(r"[\w.-]+/[\w.-]+", source) and ending_of(source) not in TABLE_SUFFIXES
    if is_name and not Path(source).exists():
        return DataSource(source, source, source, is_on_hub=True)
    return DataSource(Path(source).name, Path(source).stem, Path(source).name)
