# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Tells whether an answer is right, and what is wrong with it.

`check(answer)` calls the reader's class or function with small inputs, and compares the result with the right answer
and with each known mistake. A right answer is kept in a file, from which `mine(names)` takes it in the next chapter.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import my_transformer
import torch
from differences import difference, failure, names_differ, same
from kept import keep, mine
from mistakes import MISTAKES, Mistake
from probes import PROBES, NamesDiffer
from words import say


__all__ = ["NotRight", "check", "check_answer", "mine"]


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
