# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Tells whether an answer is right, and what is wrong with it.

`check(answer)` calls the reader's class or function with small inputs, and compares the result with the right answer
and with each known mistake. A right answer is kept in a file, from which `mine(names)` takes it in the next chapter.
"""

import ast
import difflib
import functools
import inspect
import linecache
import math
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import my_transformer
import torch
from mistakes import MISTAKES, Mistake
from probes import PROBES, NamesDiffer
from words import say


class NotRight(Exception):
    """An answer that is not right yet. Jupyter shows its sentence alone, without the traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def check(answer: Callable) -> None:
    """Compare an answer with the right one; stop with a sentence if it differs, else keep it."""
    name = answer.__name__
    got, right = outcomes(name, answer), outcomes(name, getattr(my_transformer, name))
    if not same(got, right):
        raise NotRight(f"{name}: {explanation(name, got, right)}")
    print(say(f"{name}: 맞습니다.", f"{name}: right."))
    keep(answer)


def outcomes(name: str, answer: Callable) -> dict[str, Any]:
    """What an answer gives for each probe: values, or the error that it raises."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            probes = PROBES[name](answer)
        except Exception as error:
            return {"": error}
        return {label: result(probe) for label, probe in probes.items()}


def result(probe: Callable[[], Any]) -> Any:
    try:
        return probe()
    except Exception as error:
        return error


def same(got: Any, right: Any) -> bool:
    """Whether two results are equal, up to rounding; two errors are if they are of one type."""
    if isinstance(got, Exception) or isinstance(right, Exception):
        return type(got) is type(right)
    if isinstance(right, dict):
        return same(list(got.values()), list(right.values()))  # the labels are in the reader's language
    if isinstance(right, list | tuple):
        return isinstance(got, list | tuple) and len(got) == len(right) and all(map(same, got, right))
    if isinstance(right, torch.Tensor):
        if not isinstance(got, torch.Tensor) or got.shape != right.shape:
            return False
        return torch.allclose(got.double(), right.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(right, float):
        return isinstance(got, float | int) and math.isclose(got, right, rel_tol=1e-4)
    return bool(got == right)


def explanation(name: str, got: dict[str, Any], right: dict[str, Any]) -> str:
    """The sentence of the known mistake that gives the same, else the first difference."""
    errors = [one for one in got.values() if isinstance(one, Exception)]
    for error in errors:
        if isinstance(error, NotImplementedError):
            return say(
                "아직 쓰지 않았습니다. 위의 셀을 채우고 실행하거나, 아래의 답을 펼쳐 실행하세요.",
                "not written yet. Fill in the cell above and run it, or unfold the answer below and run that.",
            )
        if isinstance(error, NamesDiffer):
            return names_differ(*error.args)
    for mistake, known in outcomes_of_mistakes(name):
        if same(got, known):
            return say(mistake.korean, mistake.english)
    return difference(got, right)


@functools.cache
def outcomes_of_mistakes(name: str) -> list[tuple[Mistake, dict[str, Any]]]:
    return [(mistake, outcomes(name, variant(name, mistake))) for mistake in MISTAKES[name]]


def variant(name: str, mistake: Mistake) -> Callable:
    """The right answer with a mistake in it."""
    source = inspect.getsource(getattr(my_transformer, name))
    for old, new in zip(mistake.changes[::2], mistake.changes[1::2], strict=True):
        if old not in source:
            raise ValueError(f"{name}: no {old!r}")
        source = source.replace(old, new)
    names = dict(vars(my_transformer))
    exec(source, names)
    return names[name]


def names_differ(module: torch.nn.Module, right: torch.nn.Module) -> str:
    """The first module that the reader's class lacks or names otherwise."""
    theirs, expected = dict(module.named_children()), dict(right.named_children())
    for name, part in expected.items():
        if isinstance(getattr(module, name, None), list | tuple):
            return say(
                f"self.{name}가 파이썬의 목록이라 PyTorch가 파라미터를 찾지 못합니다. nn.ModuleList에 담으세요.",
                f"self.{name} is a Python list, in which PyTorch finds no parameters. Make it an nn.ModuleList.",
            )
        if name not in theirs and part.state_dict():
            close = difflib.get_close_matches(name, theirs.keys() - expected.keys(), n=1, cutoff=0.5)
            return say(
                f"self.{name}이(가) 없습니다." + (f" self.{close[0]}의 이름을 고치세요." if close else ""),
                f"there is no self.{name}." + (f" Rename self.{close[0]}." if close else ""),
            )
    extra = sorted(module.state_dict().keys() ^ right.state_dict().keys())
    return say(f"파라미터의 이름이 다릅니다: {extra[0]}", f"the names of parameters differ: {extra[0]}")


def difference(got: dict[str, Any], right: dict[str, Any]) -> str:
    """Where an answer first differs from the right one."""
    if "" in got:
        return failure(got[""])
    label = next(label for label in right if not same(got[label], right[label]))
    mine, expected = got[label], right[label]
    if isinstance(mine, Exception):
        return f"{label}: {failure(mine)}"
    if isinstance(expected, Exception):
        kind = type(expected).__name__
        return f"{label}: " + say(f"{kind}를 내야 합니다. {expected}", f"this must raise {kind}. {expected}")
    while isinstance(expected, list | tuple) and isinstance(mine, list | tuple) and len(mine) == len(expected):
        mine, expected = next(pair for pair in zip(mine, expected, strict=True) if not same(*pair))
    if isinstance(mine, torch.Tensor) and isinstance(expected, torch.Tensor):
        if mine.shape != expected.shape:
            mine, expected = (f"{tuple(one.shape)}" for one in (mine, expected))
            return f"{label}: " + say(f"모양이 {expected}이 아니라 {mine}입니다.", f"shape {mine}, not {expected}.")
        close = torch.isclose(mine.double(), expected.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
        place = tuple((~close).nonzero()[0].tolist())
        label = f"{label}, {list(place)}" if place else label
        mine, expected = (f"{one[place].item():.4g}" for one in (mine, expected))
    return f"{label}: " + say(f"{expected}이어야 하는데 {mine}입니다.", f"{mine}, where {expected} is right.")


def failure(error: Exception) -> str:
    """An error of the reader's code, with the line that raised it."""
    mine = [frame for frame in traceback.extract_tb(error.__traceback__) if "ipykernel" in frame.filename]
    line = f" ({mine[-1].line})" if mine else ""
    return say("오류가 났습니다", "an error") + f": {type(error).__name__}: {error}{line}"


def check_answer(answer: Any, right: Any, *wrong: tuple[Any, str]) -> None:
    """Check the answer of an exercise.

    Args:
        answer: The reader's, or a function that asks for it; `...` stands in the cell before there is one.
        right: The right value, or a function that tells whether the answer is right.
        wrong: Known wrong values, or functions that know them, each with its sentence.
    """
    answer = result(answer) if callable(answer) else answer
    is_empty = isinstance(answer, NotImplementedError) or "'ellipsis'" in str(answer)
    if is_empty or any(one is ... for one in [answer, *_parts(answer)]):
        raise NotRight(say("아직 쓰지 않았습니다.", "Not written yet."))
    if isinstance(answer, Exception):
        raise NotRight(failure(answer)) from answer
    if agrees(answer, right):
        print(say("맞습니다.", "Right."))
        return
    for value, sentence in wrong:
        if agrees(answer, value):
            raise NotRight(sentence)
    told = isinstance(right, int | float | str | list | tuple)
    raise NotRight(
        say("아직 아닙니다.", "Not yet.")
        + (say(f" {right}이어야 하는데 {answer}입니다.", f" This is {answer}, not {right}.") if told else "")
    )


def _parts(answer: Any) -> list | tuple:
    return answer if isinstance(answer, list | tuple) else []


def agrees(answer: Any, value: Any) -> bool:
    try:
        return bool(value(answer)) if callable(value) else same(answer, value)
    except Exception:
        return False


def folder() -> Path:
    """Where right answers are kept: `runs/` of the clone, which git ignores; in Colab Google Drive, once mounted."""
    drive = Path("/content/drive/MyDrive")
    here = Path.cwd()
    clone = next((place for place in [here, *here.parents] if (place / "model_cards").is_dir()), here)
    return drive if drive.is_dir() else clone / "runs"


def kept() -> dict[str, str]:
    """The source of each answer in the file, by name."""
    file = folder() / "my_classes.py"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return {node.name: segment(text, node) for node in ast.parse(text).body if hasattr(node, "name")}


def segment(text: str, node: Any) -> str:
    """A definition as it stands in a text, with its decorators and comments."""
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def keep(answer: Callable) -> None:
    """Write a right answer into the file."""
    code = inspect.unwrap(answer if not inspect.isclass(answer) else vars(answer)["forward"]).__code__
    text = "".join(linecache.getlines(code.co_filename))
    nodes = [one for one in ast.parse(text).body if getattr(one, "name", None) == answer.__name__]
    if not nodes:  # it does not come from a cell
        return
    sources = kept() | {answer.__name__: segment(text, nodes[-1])}
    head = '"""What I wrote in the chapters; check(...) keeps it here."""\n\nfrom my_transformer import *'
    folder().mkdir(exist_ok=True)
    (folder() / "my_classes.py").write_text("\n\n\n".join([head, *sources.values()]) + "\n", encoding="utf-8")


def mine(*names: str) -> Any:
    """The reader's answers of earlier chapters, else the repository's; says which."""
    found, file = kept(), folder() / "my_classes.py"
    answers: dict[str, Any] = dict(vars(my_transformer))
    if found:
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), answers)
    for label, group in (
        (say("내가 만든 것", "Mine"), [name for name in names if name in found]),
        (say("저장소의 것", "The repository's"), [name for name in names if name not in found]),
    ):
        if group:
            print(f"{label}: {', '.join(group)}")
    return [answers[name] for name in names] if len(names) > 1 else answers[names[0]]
