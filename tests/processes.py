"""Programs in processes of their own, forked from a server that has imported torch, transformers and datasets.

A fresh interpreter needs seconds for these imports. The server makes them before it knows a program's environment.
`datasets` reads it again; what huggingface_hub and transformers read at their import (`HF_HOME`, `HF_ENDPOINT`) has no
effect. A program without the package imports these two again, and reads it all.
"""

import gc
import importlib
import multiprocessing
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
import types
from multiprocessing.pool import ThreadPool
from pathlib import Path


# Elsewhere processes cannot be forked, or not safely with what is loaded here: there the interpreters are fresh.
SERVER = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
PRELOADED = ["torch", "torch._dynamo", "torch.distributed.fsdp", "torch.distributed.tensor"]
PRELOADED += ["datasets", "pandas", "pyarrow.dataset", "scipy.optimize", "sklearn.metrics"]
PRELOADED += ["matplotlib.figure", "sacrebleu", "transformers.modeling_utils", "transformers.generation.utils"]
SERVER.set_forkserver_preload(PRELOADED)


# The program `vanilla-transformer`.
COMMAND = "from hf_vanilla_transformer.__main__ import main; main()"
# The same, all of whose processes get a signal before a call of one of Trainer's methods: the signal's number, the
# method's name, and the calls by rank, counted from 1. A run that is started again gets none.
DISASTER = """
import json, os, subprocess, sys, time
import transformers
from hf_vanilla_transformer.__main__ import main

if os.getpgrp() != os.getpid():  # as torchrun starts them
    os.setpgrp()
number, name, calls, *argv = sys.argv[1:]
method, made, call = getattr(transformers.Trainer, name), [], json.loads(calls).get(os.environ.get("RANK", "0"))

def disturbed(*args, **kwargs):
    made.append(name)
    if len(made) == call and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        # Not by itself: processes that load data take a signal of their parent's for the end of the work.
        subprocess.run(["sh", "-c", f"kill -{number} 0"])
        time.sleep(0.3)  # they end meanwhile
    return method(*args, **kwargs)

setattr(transformers.Trainer, name, disturbed)
main(argv)
"""


def run_program(
    program: str,
    *arguments,
    environment: dict[str, str] | None = None,
    cwd: Path | None = None,
    package: bool = True,
) -> subprocess.CompletedProcess:
    """Run a program to its end, by default where this process runs, and in its environment.

    Without `package`, it sees the installed packages alone.
    """
    words = list(map(str, arguments))
    environment = dict(os.environ if environment is None else environment)
    with tempfile.TemporaryDirectory() as outputs:
        settings = program, words, environment, str(cwd or Path.cwd()), package, outputs
        process = SERVER.Process(target=_run, args=settings)
        process.start()
        process.join()
        printed = [Path(outputs, name).read_text() for name in ("stdout", "stderr")]
    return subprocess.CompletedProcess(words, process.exitcode, *printed)


def run_side_by_side(program: str, *arguments, caches: list[Path]) -> list[subprocess.CompletedProcess]:
    """Run a program in two processes that train together, as torchrun would start them; the results are by rank.

    `caches`: one folder for the cache of `datasets` if both processes are on one machine, two if each has its own.
    """
    port = free_port()
    each = 2 // len(caches)  # processes a machine

    def run(rank: int) -> subprocess.CompletedProcess:
        variables = {
            **{"RANK": rank, "LOCAL_RANK": rank % each, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": each},
            **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "HF_DATASETS_CACHE": caches[rank // each]},
        }
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        return run_program(program, *arguments, environment=environment)

    with ThreadPool(2) as threads:
        return threads.map(run, range(2))


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def _run(program, arguments, environment, cwd, package, outputs) -> None:
    """In the new process."""
    for number, file in enumerate((os.devnull, f"{outputs}/stdout", f"{outputs}/stderr")):
        opened = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    gc.set_threshold(100_000, 50, 1000)  # as in conftest.py
    gc.freeze()  # Trainer collects garbage: what was imported need not be looked at
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    if not package:
        installed = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
        sys.path[:] = [path for path in sys.path if path.startswith(installed)]
        # Python's own finders: an editable install has another.
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder.__module__.startswith("_frozen_importlib")]
        for name in list(sys.modules):
            if name.partition(".")[0] in ("datasets", "huggingface_hub", "transformers"):
                del sys.modules[name]  # to be imported anew, which pyarrow forbids for datasets
    elif "datasets" in sys.modules:  # not where interpreters are fresh
        importlib.reload(sys.modules["datasets"].config)
    multiprocessing.set_start_method(None, force=True)  # the platform's, for a program's own processes
    sys.argv = ["-c", *arguments]
    sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(program, "<program>", "exec"), vars(sys.modules["__main__"]))
