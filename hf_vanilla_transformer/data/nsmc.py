# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""NSMC, the Naver sentiment movie corpus (https://github.com/e9t/nsmc): its two files, downloaded and checked."""

from pathlib import Path

from datasets import DownloadConfig, DownloadManager

from .errors import DataError
from .sources import file_checksum


SAMPLES = Path(__file__).parent / "samples"
NSMC_URL = "https://raw.githubusercontent.com/e9t/nsmc/master"
NSMC_FILES = {"train": "ratings_train.txt", "test": "ratings_test.txt"}
NSMC_SHA256 = {
    "train": "e03b7d14e9e41be8d464a28057cd25d7396c53e67aa7fd5f7e552c59b0ee2940",
    "test": "8ac9f64052f11dbf6ae0acb5e038f03d90a76f0eda7820cfb3a92d02edfcebda",
}
NSMC_TEXTS = "document"  # the column
NSMC_LABELS = {"0": "negative", "1": "positive"}
# Two CSV writers wrote NSMC's files in turn: a document with a double quote is quoted twice.
NSMC_QUOTINGS = 2


def find_nsmc_files(source: str) -> dict[str, Path] | None:
    """Return NSMC's two files: those of the sample, downloaded ones, or those in a folder; None if it has neither."""
    if source == "nsmc":
        return {split: _download(split) for split in NSMC_FILES}
    folder = SAMPLES if source == "sample" else Path(source)
    files = {split: folder / name for split, name in NSMC_FILES.items()}
    return files if any(file.is_file() for file in files.values()) else None


def _download(split: str) -> Path:
    """Return the official file, downloaded unless it is in the cache."""
    url = f"{NSMC_URL}/{NSMC_FILES[split]}"
    config = DownloadConfig(use_etag=False)  # a cached file needs no network
    try:
        file = Path(DownloadManager(download_config=config).download(url))
    except (OSError, ImportError) as error:
        raise DataError(f"{url}: cannot be downloaded: {error.__cause__ or error}") from error
    if file_checksum(file) != NSMC_SHA256[split]:
        file.unlink()  # the next try downloads it again
        raise DataError(f"{url}: not the official file, whose SHA-256 is {NSMC_SHA256[split]}")
    return file
