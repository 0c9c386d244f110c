"""transformers' own tests, from the source distribution of the installed version.

`make test-contracts` puts them into the folder that CONTRACTS_DIR names; without it, these tests skip themselves.
"""

import functools
import importlib.machinery
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType


FOLDER = os.environ.get("CONTRACTS_DIR")


@functools.cache
def attribute(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    return {} if name.islower() else type(name, (), {})


class Placeholders(importlib.machinery.PathFinder):
    """Finds a module that the source distribution lacks as an empty one: its mixins have no tests, its tables no rows.

    In 5.24 these are the tests of `generate` and of exporters, and the common arguments of configurations.
    """

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if not fullname.startswith("transformers_tests.") or fullname.startswith("transformers_tests.test_"):
            return None
        return importlib.util.spec_from_loader(fullname, cls, is_package=True)

    @staticmethod
    def create_module(spec):
        module = ModuleType(spec.name)
        module.__getattr__ = attribute
        return module

    @staticmethod
    def exec_module(module):
        pass


def pytest_configure(config):
    for file in Path(FOLDER or os.devnull).glob("transformers_tests/*.py"):
        for mark in set(re.findall(r"@(?:pytest\.)?mark\.(\w+)", file.read_text(encoding="utf-8"))):
            config.addinivalue_line("markers", f"{mark}: of transformers")


if FOLDER:
    sys.path.insert(0, FOLDER)
    sys.meta_path.append(Placeholders)
else:
    collect_ignore_glob = ["test_*.py"]
