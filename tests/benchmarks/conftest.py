import multiprocessing
import sys

import pytest
from processes import SERVER
from shared import ROOT


# Scripts import their siblings by bare name.
sys.path.insert(0, str(ROOT / "scripts" / "benchmarks"))


@pytest.fixture
def forked(monkeypatch):
    """Processes that a script starts are forked from the server of `processes.py`."""
    monkeypatch.setattr(multiprocessing, "get_context", lambda method: SERVER)
