# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Run chapters and write their notebooks, with outputs: all of them, or the sources named as arguments.

python docs/walkthrough/make_notebooks.py docs/walkthrough/01_vocabulary.py
"""

import os
import sys
import tempfile
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbformat import NotebookNode


HERE = Path(__file__).resolve().parent


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
    """Run the cells in a folder that has nothing but `model_cards` and `docs`."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("model_cards", "docs"):
            Path(folder, name).symlink_to(HERE.parents[1] / name)
        client = NotebookClient(
            made, kernel_name="python3", timeout=600, record_timing=False, resources={"metadata": {"path": folder}}
        )
        client.execute()
    made.metadata.language_info = NotebookNode(name="python")  # without the version


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # progress bars need no widgets here
    for source in [Path(name) for name in sys.argv[1:]] or sorted(HERE.glob("[0-9]*.py")):
        made = notebook(source)
        execute(made)
        jupytext.write(made, source.with_suffix(".ipynb"))
        print(f"{source.with_suffix('.ipynb').name}: {source.with_suffix('.ipynb').stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
