import atexit
import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest


# Before torch, transformers or datasets is imported: no test may read or fill the user's caches, nor ask the network.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="hf-home-")
os.environ["HF_HUB_OFFLINE"] = "1"
# Tests run side by side, and sums of more threads are rounded otherwise from one machine to the next.
os.environ["OMP_NUM_THREADS"] = "1"
atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)

# Scripts import their siblings by bare name.
scripts = Path(__file__).parent.parent / "scripts"
sys.path[:0] = [str(scripts / name) for name in ("benchmarks", "examples", "experiments")]
# Imports and traces make millions of objects that stay: the garbage collector looks at them less often.
gc.set_threshold(100_000, 50, 1000)


@pytest.hookimpl(trylast=True)  # after pytest-xdist's
def pytest_configure(config):
    """Import the fixtures, and so torch, where tests are run or listed, not where they are handed out (`-n`)."""
    if not config.pluginmanager.hasplugin("dsession"):
        config.pluginmanager.import_plugin("shared_fixtures")


def pytest_collection_modifyitems(items):
    """Two processes begin with one half of the list each.

    Put files with slow tests at the start of both, the chapters first, so that no long test is left for the end.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path.name != "test_walkthrough.py")
    files = list(dict.fromkeys(item.path for item in items if item.path in slow))
    first, second = set(files[: len(files) // 2]), set(files[len(files) // 2 :])
    begin = [item for item in items if item.path in first]
    quick = [item for item in items if item.path not in slow]
    filled = max(len(items) // 2 - len(begin), 0)
    items[:] = [*begin, *quick[:filled], *(item for item in items if item.path in second), *quick[filled:]]


def pytest_collection_finish():
    # What has been imported stays: the garbage collector need not look at it again.
    gc.freeze()
    # For graphs as small as these, the tracer's cache is slower than none.
    import torch._dynamo

    torch._dynamo.config.fake_tensor_cache_enabled = False
