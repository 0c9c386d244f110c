import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder in which the test runs, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
