# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Import names at their first use, and say which extra installs a missing package."""

import ast
import importlib
import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any


# The distributions of modules that have another name.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "onnx_ir": "onnxscript"}


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are imported at their first use.

    The package's stub `__init__.pyi`, which type checkers read, imports the names from their modules. Scientific
    Python's lazy_loader does the same.

    Args:
        package: The package's `__name__`.
        file: Its `__file__`.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in stub.body if isinstance(node, ast.ImportFrom))
    modules = {alias.name: "." * node.level + node.module for node in imports for alias in node.names}

    def import_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(importlib.import_module(modules[name], package), name)
        except ImportError as error:
            if message := missing_extra(error):
                raise ImportError(message) from error
            raise

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return import_name, list_names, sorted(modules)


def missing_extra(error: ImportError) -> str | None:
    """Say which extra installs a missing package; None for any other error, and for what every install has."""
    package = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or not package:
        return None
    distribution = re.escape(DISTRIBUTIONS.get(package, package))
    requirements = [one for one in metadata.requires("hf-vanilla-transformer") if re.match(rf"{distribution}\b", one)]
    extras = [re.search(r'extra == "(\w+)"', one) for one in requirements]
    if not extras or None in extras:
        return None
    return f"{package} is not installed: pip install 'hf-vanilla-transformer[{extras[0][1]}]'"
