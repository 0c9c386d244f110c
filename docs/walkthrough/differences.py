# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Where a wrong answer that no sentence knows differs from the right one, in a line."""

import difflib
import math
import traceback
from typing import Any

import torch
from words import say


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


def names_differ(module: torch.nn.Module, right: torch.nn.Module) -> str:
    """The first module that the reader's class lacks or names otherwise."""
    theirs, expected = dict(module.named_children()), dict(right.named_children())
    for name, part in expected.items():
        if isinstance(getattr(module, name, None), list | tuple):
            return say(
                f"self.{name}: 파이썬의 목록이라 PyTorch가 그 안을 보지 못합니다. nn.ModuleList에 담으세요.",
                f"self.{name} is a Python list, in which PyTorch finds no parameters. Make it an nn.ModuleList.",
            )
        if name not in theirs and part.state_dict():
            others = sorted(theirs.keys() - expected.keys())
            close = difflib.get_close_matches(name, others, n=1, cutoff=0.5) or others
            return say(
                f"이름이 self.{name}인 모듈이 없습니다." + (f" 이름을 고치세요: {', '.join(close)}" if close else ""),
                f"there is no self.{name}." + (f" Rename it: {', '.join(close)}" if close else ""),
            )
    mine, others = ({name: tuple(one.shape) for name, one in each.state_dict().items()} for each in (module, right))
    for name in mine.keys() - others.keys():
        return say(
            f"self.{name}: 저장되는 이름이 하나 더 있습니다. 학습하지 않는 버퍼라면 persistent=False를 주세요.",
            f"self.{name} is saved as well. If it is a buffer that is not trained, give it persistent=False.",
        )
    name = next(name for name in others if mine.get(name) != others[name])
    return say(
        f"self.{name}: 모양이 {others[name]}이 아니라 {mine.get(name)}입니다.",
        f"self.{name}: shape {mine.get(name)}, not {others[name]}.",
    )


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
    mine, expected = shown(mine), shown(expected)
    return f"{label}: " + say(f"{expected}이어야 하는데 {mine}입니다.", f"{mine}, where {expected} is right.")


def shown(value: Any) -> str:
    """A result in a few words."""
    if isinstance(value, torch.Tensor):
        return say(f"텐서 {tuple(value.shape)}", f"a tensor {tuple(value.shape)}")
    if isinstance(value, list | tuple) and any(isinstance(one, torch.Tensor) for one in value):
        return f"({', '.join(map(shown, value))})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def failure(error: Exception) -> str:
    """An error of the reader's code, with the line that raised it."""
    mine = [frame for frame in traceback.extract_tb(error.__traceback__) if "ipykernel" in frame.filename]
    line = f" ({mine[-1].line})" if mine else ""
    message = str(error).partition("\n")[0]
    return say("오류가 났습니다", "an error") + f": {type(error).__name__}: {message}{line}"
