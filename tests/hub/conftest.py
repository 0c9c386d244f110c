import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hub_server import TOKEN, HubServer

from hub.repository import QUICK, UNLISTED


# Runs commands and programs one after the other, since importing takes longer than all of them; waits for nothing.
CLIENT = """
import contextlib, io, json, os, runpy, sys, time, traceback
time.sleep = lambda seconds: None
import hf_vanilla_transformer.hub
from hf_vanilla_transformer.__main__ import main
for line in sys.stdin:
    argv, environment = json.loads(line)
    os.environ.update(environment)
    status, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            if argv[0].endswith(".py"):
                sys.argv = argv
                runpy.run_path(argv[0], run_name="__main__")
            else:
                main(argv)
        except SystemExit as stop:
            status = stop.code
        except BaseException:
            traceback.print_exc()
            status = 1
    print(json.dumps([status, out.getvalue(), err.getvalue()]), file=sys.__stdout__, flush=True)
"""


@pytest.fixture(scope="session")
def hub():
    with HubServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="session")
def environment(hub, tmp_path_factory):
    """What every client's process gets, and nothing of this one's settings for the Hub."""
    home = tmp_path_factory.mktemp("client")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))},
        "HF_HOME": str(home / "hf"),
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # or `datasets` tells a counter what kind of file it reads
        "HF_TOKEN": TOKEN,
        "NO_PROXY": "127.0.0.1,localhost",
    }


@pytest.fixture
def server(hub):
    """The server without repositories; when the test is over, it knew every request."""
    for state in (hub.repositories, hub.objects, hub.faults, hub.requests, hub.unknown):
        state.clear()
    yield hub
    assert not hub.unknown


@pytest.fixture(scope="session")
def run(environment):
    """As the fixture of all tests, but in one process for them all, and with a token."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", CLIENT]
    with subprocess.Popen(
        command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:

        def run(*arguments, token: str = TOKEN) -> tuple[int, str, str]:
            request = [[str(argument) for argument in arguments], {"HF_TOKEN": token}]
            print(json.dumps(request), file=process.stdin, flush=True)
            return tuple(json.loads(process.stdout.readline()))

        yield run


@pytest.fixture(scope="session")
def run_folder(run, tmp_path_factory) -> Path:
    """A run's folder as the command leaves it."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    status, _, err = run("train-classifier", "--output_dir", folder, *QUICK, "--license", "apache-2.0")
    assert status == 0, err
    return folder


@pytest.fixture
def folder(run_folder, tmp_path) -> Path:
    """The test's own copy of the run's folder, with `UNLISTED`."""
    folder = shutil.copytree(run_folder, tmp_path / "tiny")
    (folder / "sub" / "checkpoint-2").mkdir(parents=True)
    for file in UNLISTED:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text("{}")
        (folder / "sub" / file).write_text("{}")
    assert (folder / "training_args.bin").is_file()
    return folder
