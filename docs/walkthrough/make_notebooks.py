# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Run chapters and write their notebooks, with outputs: all of them, or the sources named as arguments.

It also writes `map.svg`, and `my_transformer.py` with the classes that the chapters build.

python docs/walkthrough/make_notebooks.py docs/walkthrough/01_vocabulary.py
"""

import ast
import os
import sys
import tempfile
from pathlib import Path

import drawings
import jupytext
from nbformat import NotebookNode


HERE = Path(__file__).resolve().parent
MY_TRANSFORMER = '''\
"""2장에서 5장까지 만든 클래스. make_notebooks.py가 각 장의 셀에서 옮겨 적습니다."""

import math

import torch
from torch import nn
'''


def notebook(source: Path) -> NotebookNode:
    """A chapter's cells, without outputs. Ids and metadata are the same each time and everywhere."""
    made = jupytext.read(source)
    made.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    made.nbformat, made.nbformat_minor = 4, 5
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
    return made


def execute(made: NotebookNode) -> None:
    """Run the cells in a folder that has nothing but `model_cards` and `docs`; solutions keep no output."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        for name in ("model_cards", "docs"):
            Path(folder, name).symlink_to(HERE.parents[1] / name)
        client = NotebookClient(
            made, kernel_name="python3", timeout=600, record_timing=False, resources={"metadata": {"path": folder}}
        )
        client.execute()
    made.metadata.language_info = NotebookNode(name="python")  # without the version
    for cell in made.cells:
        if "jupyter" in cell.metadata:  # folded
            cell.outputs = []


def made_files() -> dict[str, str]:
    """The text of `map.svg`, and of `my_transformer.py`: the classes of chapters 2 to 5, as they stand in cells."""
    classes = []
    for source in sorted(HERE.glob("0[2-5]_*.py")):
        code = source.read_text(encoding="utf-8").partition("# ## 풀이")[0]
        for node in ast.parse(code).body:
            if isinstance(node, ast.ClassDef):
                classes.append("\n".join(code.splitlines()[node.lineno - 1 : node.end_lineno]))  # and comments
    return {
        "map.svg": drawings.model_map().svg(),
        "my_transformer.py": "\n\n\n".join([MY_TRANSFORMER.rstrip(), *classes]) + "\n",
    }


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # progress bars need no widgets here
    for name, text in made_files().items():
        (HERE / name).write_text(text, encoding="utf-8")
    for source in [Path(name) for name in sys.argv[1:]] or sorted(HERE.glob("[0-9]*.py")):
        made = notebook(source)
        execute(made)
        jupytext.write(made, source.with_suffix(".ipynb"))
        print(f"{source.with_suffix('.ipynb').name}: {source.with_suffix('.ipynb').stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
