# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The file that keeps the reader's right answers for the next chapters.

An answer is kept with all that it needs from the notebook: imports, constants, helpers, from whichever cell. The file
has a section for each answer, and each section runs in a namespace of its own.
"""

import ast
import inspect
import linecache
import re
import symtable
from collections.abc import Callable
from pathlib import Path
from typing import Any

import my_transformer
from probes import failure, source_lines
from words import say


HEAD = '"""What I wrote in the chapters; check(...) keeps it here."""\n\nfrom my_transformer import *\n'
BLANKS = [name for name, one in vars(my_transformer).items() if getattr(one, "__module__", "") == "my_transformer"]


class Missing(Exception):
    """What an answer needs is in no cell; its argument is the sentence."""


def folder() -> Path:
    """Where right answers are kept: `runs/` of the clone, which git ignores; in Colab Google Drive, once mounted."""
    drive = Path("/content/drive/MyDrive")
    here = Path.cwd()
    clone = next((place for place in [here, *here.parents] if (place / "model_cards").is_dir()), here)
    return drive if drive.is_dir() else clone / "runs"


def sources() -> dict[str, str]:
    """What the file keeps, by the name of the answer, in the order of the chapters."""
    file = folder() / "my_classes.py"
    pieces = re.split(r"^# %% (\w+)\n", file.read_text(encoding="utf-8") if file.is_file() else "", flags=re.MULTILINE)
    found = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    return {name: found[name].strip("\n") for name in BLANKS if name in found}


def bound(node: ast.stmt) -> set[str]:
    """The names that a statement of a cell defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(one.asname or one.name).partition(".")[0] for one in node.names}
    if isinstance(node, ast.Expr):
        return set()
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def cells(names: dict[str, Any]) -> list[str]:
    """The cells of the notebook in the order in which they ran; of a script none."""
    compiled = [file for file in linecache.cache if "ipykernel" in file and not file.startswith("<kept")]
    return list(names["In"]) if "In" in names else ["".join(linecache.getlines(file)) for file in compiled]


def used(table: symtable.SymbolTable) -> set[str]:
    """The names that a statement takes from the notebook; a function's own variables are not among them."""
    whole = table.get_type() == "module"
    names = {one.get_name() for one in table.get_symbols() if one.is_global() or (whole and one.is_referenced())}
    return names.union(*map(used, table.get_children()))


def section(name: str, cells: list[str]) -> str:
    """The statements that define a name and what they need, as they stand in the cells of a notebook."""
    statements = []  # each with its text
    for cell in cells:
        lines = cell.splitlines()
        try:
            nodes = ast.parse(cell).body
        except SyntaxError:
            continue
        for node in nodes:
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
            statements.append((node, "\n".join(lines[first - 1 : node.end_lineno])))
    names, wanted, chosen = vars(my_transformer), [name], {}
    while wanted:
        one = wanted.pop()
        places = [place for place, (node, _) in enumerate(statements) if one in bound(node)]
        if not places or places[-1] in chosen:
            continue
        node, text = statements[places[-1]]
        is_module = isinstance(node, ast.Import | ast.ImportFrom) and one in names
        if one != name and (one in BLANKS or is_module):  # the repository's, or kept on its own
            continue
        chosen[places[-1]] = text
        wanted += used(symtable.symtable(text, "cell", "exec"))
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):  # NAME = NAME | {...}, NAME += ...
            wanted += [one] if one in {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} else []
    return "\n\n\n".join(chosen[place] for place in sorted(chosen))


def run(kept: dict[str, str], answers: dict[str, Any]) -> dict[str, Any]:
    """Add the answers of sections to `answers`; each section sees those before it."""
    for name, text in kept.items():
        names = dict(vars(my_transformer)) | answers
        exec(compile(text, source_lines(name, text), "exec"), names)
        answers[name] = names[name]
    return answers


def fresh(name: str, answer: Callable, names: dict[str, Any]) -> dict[str, Any]:
    """The answers as the next chapter will have them; without a notebook, the answer itself."""
    text = section(name, cells(names))
    if not text:
        return {name: answer}
    try:
        return run(dict(ordered(sources() | {name: text})), {})
    except Exception as error:
        raise Missing(failure(error)) from error


def ordered(kept: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, kept[name]) for name in BLANKS if name in kept]


def keep(name: str, answer: Callable, names: dict[str, Any]) -> None:
    """Write a right answer into the file. The repository's, unfolded, replaces none of the reader's."""
    text = section(name, cells(names))
    before = sources().get(name, text)
    if before != text == inspect.getsource(getattr(my_transformer, name)).strip():
        print(say("my_classes.py의 내 답은 그대로 둡니다.", "my_classes.py keeps your own earlier answer."))
    elif text:
        sections = ordered(sources() | {name: text})
        folder().mkdir(exist_ok=True)
        pieces = [HEAD, *(f"# %% {one}\n{code}\n" for one, code in sections)]
        (folder() / "my_classes.py").write_text("\n\n".join(pieces), encoding="utf-8")


def mine(*names: str) -> Any:
    """The reader's answers of earlier chapters, else the repository's; says which."""
    answers: dict[str, Any] = {}
    for name, text in sources().items():
        try:
            run({name: text}, answers)
        except Exception as error:
            print(f"my_classes.py, {name}: {failure(error)}")
    for label, group in (
        (say("내가 만든 것", "Mine"), [name for name in names if name in answers]),
        (say("저장소의 것", "The repository's"), [name for name in names if name not in answers]),
    ):
        if group:
            print(f"{label}: {', '.join(group)}")
    found = [answers.get(name, getattr(my_transformer, name)) for name in names]
    return found if len(found) > 1 else found[0]
