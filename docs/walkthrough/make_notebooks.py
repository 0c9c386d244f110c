# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Make the notebooks of the chapters in both editions; of the sources named as arguments, else of all.

A source holds the answers. The solved edition lies beside it and is executed, with outputs. The reader's edition lies
in `blanks/`, without outputs: a cell with the tag "blank" or "exercise" becomes a stub, and its answer comes folded
after its check and hints. `map.svg` and `my_transformer.py`, the answers of all blanks and what other chapters
import (tag "shared"), are written, too. The chapters of an edition run in one folder, in order.

python docs/walkthrough/make_notebooks.py docs/walkthrough/01_vocabulary.py
"""

import ast
import io
import os
import re
import sys
import tempfile
import tokenize
import tomllib
from pathlib import Path

import drawings
import jupytext
import words
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell


HERE = Path(__file__).resolve().parent
PROJECT = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
SOURCES = "[0-9]*.py"
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}
HEADS = {
    "ko": "0장에서 10장까지 채우는 빈칸의 답. make_notebooks.py가 각 장의 셀에서 옮겨 적습니다.",
    "en": "The answers of all blanks, which make_notebooks.py copies from the chapters' cells.",
}
IMPORTS = """
import math
from collections import Counter

import torch
from torch import nn"""

# What the set-up does in Colab first.
COLAB = """if "google.colab" in sys.modules and not Path("model_cards").is_dir():
    !git clone -q {}
    %cd -q hf_vanilla_transformer
    !pip install -q '.[train]' && apt-get install -qq fonts-nanum
"""


def sources() -> list[Path]:
    """The chapters in Korean, then those in English."""
    return [*sorted(HERE.glob(SOURCES)), *sorted((HERE / "en").glob(SOURCES))]


def language(source: Path) -> str:
    return "en" if source.parent.name == "en" else "ko"


def has_tag(cell: NotebookNode, *tags: str) -> bool:
    return not set(tags).isdisjoint(cell.metadata.get("tags", []))


def notebook(source: Path) -> NotebookNode:
    """The solved edition's cells, without outputs. Ids and metadata are the same each time and everywhere."""
    return as_notebook(source, jupytext.read(source).cells)


def as_notebook(source: Path, cells: list[NotebookNode]) -> NotebookNode:
    if "/OWNER/" not in REPOSITORY:  # once it has an address, Colab opens the reader's edition
        file = f"{source.parent.relative_to(HERE.parents[1]).as_posix()}/blanks/{source.stem}.ipynb"
        colab = "https://colab.research.google.com"
        address = f"{colab}/github/{REPOSITORY.removeprefix('https://github.com/')}/blob/main/{file}"
        badge = f"[![Open in Colab]({colab}/assets/colab-badge.svg)]({address})"
        cells[0].source = cells[0].source.replace("\n\n", f"\n\n{badge}\n\n", 1)
        cells[1].source = cells[1].source.replace("sys.path", f"{COLAB.format(REPOSITORY)}sys.path", 1)
    made = NotebookNode(cells=cells, nbformat=4, nbformat_minor=5)
    made.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return made


def blanks(source: Path) -> NotebookNode:
    """The reader's edition: stubs for answers, and each answer folded behind its check and hints."""
    title = "답: 펼쳐서 실행하세요" if language(source) == "ko" else "Answer: unfold and run it"
    cells, answer, checked = [], None, False
    for cell in jupytext.read(source).cells:
        if answer is not None and checked and not cell.source.startswith("<details>"):
            cells.append(answer)
            answer = None
        if has_tag(cell, "blank", "exercise"):
            answer, checked = new_code_cell(f"# @title {title}\n{cell.source}", metadata=FOLDED), False
            cell.source = stub(cell.source)
        elif answer is not None and cell.cell_type == "code":
            answer.source += f"\n\n\n{cell.source}"
            checked = True
        elif cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\((?!https?://|#|\d\d_\w+\.ipynb)([^)]+)\)", r"](../\1)", cell.source)
        cells.append(cell)
    return as_notebook(source, [*cells, *([answer] if answer is not None else [])])


def stub(source: str) -> str:
    """What the reader fills in: definitions with their comments, and `...` for the results of an exercise.

    Of a function stay the signature, its docstring, `super().__init__()` and what refuses wrong input. Its other
    statements become the comment at their end, which tells the step and the shape.
    """
    lines, kept = source.splitlines(), []
    comments = {
        token.start[0]: token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].strip() != token.string
    }
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            kept += ["", "", lines[node.lineno - 1]]
            for method in node.body:
                kept += [*_function(method, lines, comments), ""]
        elif isinstance(node, ast.FunctionDef):
            kept += ["", "", *_function(node, lines, comments), ""]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            kept.append(lines[node.lineno - 1])
        else:
            results = [one for one in ast.walk(node) if isinstance(one, ast.Assign) and one.end_lineno in comments]
            for result in results:
                targets = ast.unparse(result.targets[0]).strip("()")
                dots = ", ".join(["..."] * (targets.count(",") + 1))
                kept.append(f"{targets} = {dots}  {comments[result.end_lineno]}")
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(kept)).strip("\n")


def _function(node: ast.FunctionDef, lines: list[str], comments: dict[int, str]) -> list[str]:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    kept = lines[first - 1 : node.body[0].lineno - 1]
    indent = " " * node.body[0].col_offset
    for statement in node.body:
        code = lines[statement.lineno - 1 : statement.end_lineno]
        refuses = isinstance(statement, ast.If) and isinstance(statement.body[0], ast.Raise)
        if refuses or code[0].strip() == "super().__init__()" or code[0].strip().startswith('"""'):
            kept += code
        else:
            kept += _steps(statement, comments, f"{indent}# ")
    return [*kept, indent + "raise NotImplementedError"]


def _steps(node: ast.stmt, comments: dict[int, str], indent: str) -> list[str]:
    """The comment of a statement behind the name that it sets or its keyword; further in, those of its block."""
    body, other = getattr(node, "body", []), getattr(node, "orelse", [])
    head = range(node.lineno, body[0].lineno if body else node.end_lineno + 1)
    comment = "".join(comments.get(number, "") for number in head).removeprefix("# ")
    label = type(node).__name__.lower() if body or isinstance(node, ast.Return) else ""  # if, for, with, return
    if isinstance(node, ast.Assign):
        target = ast.unparse(node.targets[0]).strip("()")
        label = target if re.fullmatch(r"(self\.)?\w+(, \w+)*", target) else ""
        if label.startswith("self.") and not comment:
            comment = ast.unparse(getattr(node.value, "func", node.value))  # the class of a module
    kept = [f"{indent}{label}: {comment}" if label else indent + comment] if comment else []
    further = indent + "    " if comment else indent
    blocks = [line for one in body for line in _steps(one, comments, further)]
    otherwise = [line for one in other for line in _steps(one, comments, further)]
    return [*kept, *blocks, *([f"{indent}else:"] if otherwise else []), *otherwise]


def execute(made: NotebookNode, folder: str) -> None:
    """Run the cells in a folder, which keeps what later chapters take from earlier ones."""
    from nbclient import NotebookClient

    client = NotebookClient(
        made, kernel_name="python3", timeout=1800, record_timing=False, resources={"metadata": {"path": folder}}
    )
    client.execute()
    made.metadata.language_info = NotebookNode(name="python")  # without the version


def answers(folder: Path) -> str:
    """The text of `my_transformer.py`: the answers of a language's blanks, as they stand in the cells."""
    cells = [cell for file in sorted(folder.glob(SOURCES)) for cell in jupytext.read(file).cells]
    code = [cell.source for cell in cells if has_tag(cell, "blank", "shared")]
    head = f'"""{HEADS["en" if folder.name == "en" else "ko"]}"""\n{IMPORTS}'
    return "\n\n\n".join([head, *code]) + "\n"


def made_files() -> dict[str, str]:
    """The text of `map.svg` and `my_transformer.py` in both languages."""
    made = {}
    for name, folder in (("ko", ""), ("en", "en/")):
        words.use(name)
        made |= {f"{folder}map.svg": drawings.model_map().svg(), f"{folder}my_transformer.py": answers(HERE / folder)}
    words.use("ko")
    return made


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"  # as in tests: more threads round sums otherwise
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # progress bars need no widgets here
    for name, text in made_files().items():
        (HERE / name).write_text(text, encoding="utf-8")
    for source in sources():
        (source.parent / "blanks").mkdir(exist_ok=True)
        jupytext.write(blanks(source), source.parent / "blanks" / f"{source.stem}.ipynb")
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or sources()
    for edition in ("ko", "en"):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("model_cards", "docs"):
                Path(folder, name).symlink_to(HERE.parents[1] / name)
            for source in [one for one in chosen if language(one) == edition]:
                made = notebook(source)
                execute(made, folder)
                file = source.with_suffix(".ipynb")
                jupytext.write(made, file)
                print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
