import os
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from hub_server import TOKEN, HubServer

from hub.repository import UNLISTED


@pytest.fixture(scope="session")
def hub():
    with HubServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="session")
def environment(hub):
    """The environment of a stranger's process: none of our settings for Python and the Hub."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))},
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_TOKEN": TOKEN,
        "NO_PROXY": "127.0.0.1,localhost",
    }


@pytest.fixture
def server(hub, monkeypatch):
    """The server, without repositories, for this process, too; at the end of the test it knew every request."""
    for state in (hub.repositories, hub.objects, hub.requests, hub.unknown):
        state.clear()
    hub.refuses = False
    constants = {"ENDPOINT": hub.url, "HF_HUB_OFFLINE": False}
    for name, value in (constants | dict.fromkeys(("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY"), True)).items():
        monkeypatch.setattr(huggingface_hub.constants, name, value)
    monkeypatch.setattr("huggingface_hub.utils._http.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr("transformers.utils.hub._hf_api", None)  # remembers the endpoint
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    huggingface_hub.close_session()
    yield hub
    huggingface_hub.close_session()
    assert not hub.unknown


@pytest.fixture
def folder(trained, tmp_path) -> Path:
    """The test's own copy of the run's folder, with `UNLISTED`."""
    folder = shutil.copytree(trained, tmp_path / "tiny", ignore=shutil.ignore_patterns("checkpoint-*"))
    (folder / "sub" / "checkpoint-2").mkdir(parents=True)
    for file in UNLISTED:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text("{}")
        (folder / "sub" / file).write_text("{}")
    assert (folder / "training_args.bin").is_file()
    return folder
