# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Tells whether an answer is right, and what is wrong with it.

`check(answer)` tries the properties that must hold of the reader's class or function, from the inside out. The first
that fails is the message, unless a known mistake gives the same there, whose sentence then says what is wrong. A right
answer is kept in a file, from which `mine(names)` takes it in the next chapter.
"""

import ast
import contextlib
import copy
import functools
import inspect
import itertools
import signal
import sys
import threading
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import my_transformer
import properties_layers as layers
import properties_parts as parts
import properties_training as training
import torch
from kept import Missing, fresh, keep, mine
from probes import Fails, Properties, failure, given, holds, kind, numbers, same
from words import say, told


__all__ = ["NotRight", "check", "check_answer", "mine"]
SECONDS = 5.0  # of the processor, after which a property gives up
MISTAKES = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text(encoding="utf-8"))
PROPERTIES: dict[str, Callable[[Callable], Properties]] = {
    "softmax": parts.softmax,
    "most_frequent_pair": parts.most_frequent_pair,
    "merge": parts.merge,
    "Embedding": parts.embedding,
    "ScaledDotProductAttention": parts.attention,
    "MultiHeadAttention": parts.multi_head,
    "FeedForward": parts.feed_forward,
    "LayerNorm": parts.layer_norm,
    "Dropout": parts.dropout,
    "EncoderLayer": layers.encoder_layer,
    "DecoderLayer": layers.decoder_layer,
    "Encoder": layers.encoder,
    "Decoder": layers.decoder,
    "Transformer": layers.transformer,
    "tie_embeddings": layers.tie_embeddings,
    "shift_right": training.shift_right,
    "smoothed_targets": training.smoothed_targets,
    "smoothed_loss": training.smoothed_loss,
    "noam": training.noam,
    "greedy": training.greedy,
    "training_step": training.training_step,
    "overfit": training.overfit,
    "cached_attention": training.cached_attention,
    "beam_step": training.beam_step,
    "rotation": parts.rotation,
}


class NotRight(Exception):
    """An answer that is not right yet. Jupyter shows its sentence alone, without the traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def check(answer: Any) -> None:
    """Try the properties of a blank with the reader's answer; stop with a sentence if one fails, else keep it."""
    names = sys._getframe(1).f_globals
    name = next((one for one in PROPERTIES if names.get(one) is answer), getattr(answer, "__name__", str(answer)))
    if name not in PROPERTIES:
        raise NotRight(
            say(
                f"{name}: 이런 이름의 빈칸은 없습니다. 빈칸의 이름을 그대로 두세요.",
                f"{name} is no blank. Leave the name as it was.",
            )
        )
    torch.ones(2, device="meta").exp().softmax(dim=0)  # what PyTorch loads for it takes a second, once
    sentence = fault(name, answer)
    if sentence:
        raise NotRight(f"{name}: {blame(name, answer, names, sentence)}")
    try:
        sentence = fault(name, fresh(name, answer, names)[name])
    except Missing as missing:
        sentence = str(missing)
    if sentence:
        told = say(
            "맞지만, 다음 장에서 이 셀만으로는 실행되지 않습니다", "right, but in the next chapter it cannot run"
        )
        raise NotRight(f"{name}: {told}: {sentence}")
    print(say(f"{name}: 맞습니다.", f"{name}: right."))
    keep(name, answer, names)


def fault(name: str, answer: Callable) -> str:
    """The sentence of the first property that fails, of an exception, or nothing."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = failing(name, answer)
        if not found:
            return ""
        place, sentence, before, seen, right = found
        if isinstance(seen, NotImplementedError) and not str(seen):
            return told("not written yet")
        if isinstance(seen, dict):
            part = next(part for part in right if not same(seen[part], right[part]))
            sentence, seen, right = sentence.format(part=part), seen[part], right[part]
        elif not isinstance(seen, Fails) and (isinstance(seen, Exception) or not isinstance(right, bool)):
            for wrong, known in mistakes(name):
                its = failing(name, wrong, place + 1)
                if its and its[0] == place and same(its[3], seen):
                    return known if isinstance(seen, Exception) else f"{known} {numbers(seen, right, before)}"
    if isinstance(seen, Fails):
        return str(seen)
    if isinstance(seen, BaseException):
        return failure(seen, before)
    if isinstance(right, bool):
        return sentence
    if seen is None:
        return told("there is no return")
    if kind(seen) != kind(right):
        return told("it must be …, and is …", right=kind(right), seen=kind(seen), given=before, sentence=sentence)
    return f"{sentence} {numbers(seen, right, before)}"


def failing(name: str, answer: Callable, last: int | None = None) -> tuple[int, str, str, Any, Any] | None:
    """The first property that fails: its place, sentence and input, what was seen, and what is right."""
    each = zip(outcomes(PROPERTIES[name](answer)), right_outcomes(name), strict=False)
    for place, ((sentence, before, seen), (_, _, right)) in enumerate(itertools.islice(each, last)):
        if isinstance(right, BaseException):
            raise right
        if not same(seen, right):
            return place, told(sentence), before, seen, right
    return None


@functools.cache
def right_outcomes(name: str) -> list[tuple[str, str, Any]]:
    return list(outcomes(PROPERTIES[name](getattr(my_transformer, name))))


def outcomes(properties: Properties) -> Iterator[tuple[str, str, Any]]:
    """For each property its sentence, its input, and what was seen, which may be an exception."""
    for place in itertools.count():
        torch.default_generator.manual_seed(place)
        sentence = before = ""
        try:
            with time_limit():
                sentence, call, *inputs = next(properties)
                before = given(inputs)
                copies = copy.deepcopy([one if isinstance(one, torch.Tensor | list) else None for one in inputs])
                seen = call(*inputs)
                for one, copied in zip(inputs, copies, strict=True):
                    a_list = "the list is changed in place (by append"
                    changed = a_list if isinstance(one, list) else "the input is changed in place (by +="
                    holds(copied is None or same(one, copied), changed)
        except StopIteration:
            return
        except (Exception, SystemExit) as error:
            seen = error
        yield sentence, before, seen


def mistakes(name: str) -> Iterator[tuple[Callable, str]]:
    """Known wrong answers, which are the right one with some text replaced, and their sentences."""
    right = ast.unparse(ast.parse(inspect.getsource(getattr(my_transformer, name))))
    rows = [row for blanks, rows in MISTAKES.items() if name in blanks.split() for row in rows]
    for korean, english, change in [(korean, english, one) for korean, english, *changes in rows for one in changes]:
        text, names = right, dict(vars(my_transformer))
        for old, new in change.items():
            text = text.replace(old, new)
        if text != right:
            exec(text, names)
            yield names[name], say(korean, english)


def blame(name: str, answer: Callable, names: dict[str, Any], sentence: str) -> str:
    """What is wrong with the answer itself, whose parts become the repository's; else with which part."""
    if "TimeoutError" in sentence:
        return sentence
    own = [one for one in names if one in PROPERTIES and one != name]
    own = [one for one in own if names[one] is not getattr(my_transformer, one)]
    if not own:
        return sentence
    mine_ = {one: names[one] for one in own}
    names.update({one: getattr(my_transformer, one) for one in own})
    try:
        alone = fault(name, answer)
    finally:
        names.update(mine_)
    if alone:
        return alone
    for one in own:
        if told := fault(one, mine_[one]):
            return say(
                f"이 칸은 맞지만, 여기서 쓰는 {one}이(가) 틀립니다. {told}",
                f"right, but your {one}, which it uses, is not: {told}",
            )
    return sentence


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Stop code that never ends, where the system can."""
    if not hasattr(signal, "SIGVTALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise TimeoutError(say("끝나지 않는 반복입니다", "this loop never ends"))

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def check_answer(answer: Any, right: Any, *wrong: tuple[Any, str]) -> None:
    """Check the answer of an exercise.

    Args:
        answer: The reader's, or a function that asks for it; `...` stands in the cell before there is one.
        right: The right value, or a function that tells whether the answer is right.
        wrong: Known wrong values, or functions that know them, each with its sentence.
    """
    if callable(answer):
        try:
            answer = answer()
        except Exception as error:
            answer = error
    is_empty = isinstance(answer, NotImplementedError) or "'ellipsis'" in str(answer)
    if is_empty or any(one is ... for one in [answer, *(answer if isinstance(answer, list | tuple) else [])]):
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


def agrees(answer: Any, value: Any) -> bool:
    try:
        return bool(value(answer)) if callable(value) else same(answer, value)
    except Exception:
        return False
