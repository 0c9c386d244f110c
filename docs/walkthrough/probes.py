# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What the properties of the blanks are written with.

A property is a sentence in both languages and what must hold. The first that fails raises `Fails` with its sentence
and an example in numbers: what went in, what is expected, what came out, to as many digits as differ.
"""

import difflib
import itertools
import linecache
import math
import traceback
from collections.abc import Callable
from typing import Any

import my_transformer
import torch
from torch import nn
from words import say, told


Wrong = tuple[Any, str]  # a known wrong value, and its sentence
ELSEWHERE = ("is not on the expected device", "on the same device")  # what torch says of tensors on two devices
STAGE = {"": ""}  # what is tried now, for the sentence of an exception


class Fails(Exception):
    """A property does not hold; its argument is the sentence."""


def trying(what: str) -> None:
    """Say what is tried from here on, should the reader's code raise an exception."""
    STAGE[""] = told(what)


def holds(condition: Any, sentence: str) -> None:
    if not condition:
        raise Fails(told(sentence))


def same(seen: Any, right: Any) -> bool:
    """Whether two results are equal, up to rounding."""
    if isinstance(right, list | tuple):
        return isinstance(seen, list | tuple) and len(seen) == len(right) and all(map(same, seen, right))
    if isinstance(right, torch.Tensor):
        if not isinstance(seen, torch.Tensor) or seen.shape != right.shape or seen.device != right.device:
            return False
        return torch.allclose(seen.double(), right.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(right, float):
        if isinstance(seen, torch.Tensor):
            return seen.numel() == 1 and same(seen.item(), right)
        return isinstance(seen, float | int) and math.isclose(seen, right, rel_tol=1e-4, abs_tol=1e-7)
    return bool(seen == right)


def compare(seen: Any, right: Any, sentence: str, *wrongs: Wrong, given: str = "") -> None:
    """The result must be the right one; the sentence of a known wrong value is better than the property's."""
    if same(seen, right):
        return
    sentence = next((known for value, known in wrongs if same(seen, value)), sentence)
    raise Fails(f"{told(sentence)} {numbers(seen, right, given)}")


def known(seen: Any, *wrongs: Wrong, given: str = "") -> None:
    """Name a known wrong value, before others are tried that only raise an exception with it."""
    for value, sentence in wrongs:
        if same(seen, value):
            raise Fails(told(sentence) + (f" ({given})" if given else ""))


def numbers(seen: Any, right: Any, given: str = "") -> str:
    """Input, expected and seen; of large tensors the first numbers that differ."""
    place = ""
    if isinstance(right, list) and isinstance(seen, list | tuple) and len(seen) == len(right) > 0 and floats(right):
        seen, right = next(one for one in zip(seen, right, strict=True) if not same(*one))
    if isinstance(right, torch.Tensor):
        if not isinstance(seen, torch.Tensor) or seen.shape != right.shape:
            seen, right = kind(seen), kind(right)
        elif right.numel() > 12:
            close = torch.isclose(seen.double(), right.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
            at = (~close).nonzero()[0].tolist()
            place, seen, right = f"{at}: ", seen[tuple(at)].item(), right[tuple(at)].item()
        else:
            seen, right = seen.tolist(), right.tolist()
    for digits in range(3, 9):
        texts = shown(seen, digits), shown(right, digits)
        if texts[0] != texts[1]:
            break
    given = f"{given}: " if given else ""
    return told("expected …, got …", given=given, place=place, seen=texts[0], right=texts[1])


def shown(value: Any, digits: int = 3) -> str:
    if isinstance(value, torch.Tensor):
        return shown(value.tolist(), digits) if value.numel() <= 12 else kind(value)
    if isinstance(value, list | tuple):
        return ("[{}]" if isinstance(value, list) else "({})").format(", ".join(shown(one, digits) for one in value))
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)[:80]


def kind(value: Any) -> str:
    """The type of a value, and the shapes of its tensors."""
    if isinstance(value, torch.Tensor):
        return told("a tensor …", tuple_value_sh=tuple(value.shape))
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} ({', '.join(map(kind, value))})"
    return type(value).__name__


def tensor(value: Any, *shape: int, of: str = "") -> torch.Tensor:
    """The value, if it is a tensor of that shape."""
    holds(
        isinstance(value, torch.Tensor) and value.shape == shape,
        told("… must be a tensor of shape …", of=of or say("결과", "the result"), shape=shape, kind=kind(value))
        + label(),
    )
    return value


def label() -> str:
    return f" ({STAGE['']})" if STAGE[""] else ""


def pair(value: Any, what: str) -> tuple:
    """The value, if it is a tuple of two."""
    holds(isinstance(value, tuple | list) and len(value) == 2, told("return two", what=what, kind=kind(value)))
    return value


def failure(error: BaseException) -> str:
    """An exception of the reader's code in one sentence, with its line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "ipykernel" in frame.filename]
    message, line = str(error).partition("\n")[0][:200], frames[-1].line if frames else ""
    if any(words in message for words in ELSEWHERE):
        sentence = told("A tensor is made on the CPU, so that this")
    elif "inplace operation" in message or "in-place operation" in message:
        sentence = told("A value that the backward pass needs was")
    elif "does not require grad" in message or "Inference tensors" in message:
        sentence = told("result has no gradient: no_grad, detach")
    elif isinstance(error, NameError):
        sentence = told("A name is not defined: …", message=message)
    else:
        sentence = told("an error") + f": {type(error).__name__}: {message}"
    return sentence + (f" [{line}]" if line else "") + label()


def elsewhere(call: Callable[[], Any]) -> None:
    """Run on `meta`, a device without numbers; what would be on the CPU there would be on a GPU, too."""
    trying(say("다른 장치에서", "on another device"))
    try:
        call()
    except Exception as error:
        if any(words in str(error) for words in ELSEWHERE):
            raise
    trying("")


def build(answer: Callable, name: str, *args: Any, **sizes: Any) -> tuple[nn.Module, nn.Module]:
    """The reader's module and the right one, with the same random weights, without dropout."""
    asked = ", ".join([*map(str, args), *(f"{key}={value}" for key, value in sizes.items() if key != "head")])
    trying(told("when …(…) is made", name=name, asked=asked))
    right = getattr(my_transformer, name)(*args, **sizes)
    module = answer(*args, **sizes)
    holds(isinstance(module, nn.Module), told("it is …, no nn.Module", kind_module=kind(module)))
    trying("")
    compare_names(module, right)
    with torch.no_grad():
        for parameter in right.parameters():
            nn.init.normal_(parameter, std=0.5)
    module.load_state_dict(right.state_dict())
    return module.eval(), right.eval()


def compare_names(module: nn.Module, right: nn.Module) -> None:
    """Names and shapes of parameters must be those of the right module: trained weights are loaded by them."""
    mine, theirs = ({name: tuple(one.shape) for name, one in each.state_dict().items()} for each in (module, right))
    children = {name for name, _ in module.named_children()} | {name.split(".")[0] for name in mine}
    for path in dict.fromkeys(name.rpartition(".")[0] for name in theirs):
        part = path.partition(".")[0]
        if part and any(isinstance(getattr(module, part, None), kind_) for kind_ in (list, tuple)):
            raise Fails(told("self.… is a Python list, in which PyTorch", part=part))
    missing, extra = [name for name in theirs if name not in mine], [name for name in mine if name not in theirs]
    for part in ("", "encoder", "decoder"):
        stacks = [getattr(each, part, None) if part else each for each in (module, right)]
        counts = [len(getattr(each, "layers", ())) for each in stacks]
        where = f"self.{part}.layers" if part else "self.layers"
        holds(
            counts[0] == counts[1] or not counts[0],
            told("… has … layers, where … were", where=where, counts_0=counts[0], counts_1=counts[1]),
        )
    if missing:
        first = missing[0]
        part = first.partition(".")[0]
        if part in children and "." in first:
            inner = first.rpartition(".")[0]
            holds(f"{inner}.weight" not in mine, told("there is no self.… (bias=False?), which", first=first))
            part = inner if extra and extra[0].startswith(part) else first
        others = sorted({name.partition(".")[0] for name in extra} - {name.partition(".")[0] for name in theirs})
        close = difflib.get_close_matches(part, others, n=1, cutoff=0.5) or others
        own = f" ({', '.join(close)})" if close else ""
        raise Fails(told("there is no self.…", part=part, own=own))
    for name in extra:
        buffer = name in dict(module.named_buffers())
        raise Fails(told("self.… is saved as well" if buffer else "self.… is a parameter too many", name=name))
    for name, shape in theirs.items():
        holds(
            mine[name] == shape,
            told("self.… must have the shape …, and has …", name=name, shape=shape, mine_name=mine[name]),
        )
    trained = {id(one) for one in module.parameters() if one.requires_grad}
    for name, _ in right.named_parameters(remove_duplicate=False):
        mine_ = dict(module.named_parameters(remove_duplicate=False)).get(name)
        holds(mine_ is not None and mine_.requires_grad, told("self.… is not trained", name=name))
    holds(len(trained) == len(list(right.parameters())), "Several layers are one and the same")


def floats(values: Any) -> list[torch.Tensor]:
    """The tensors of a result that have gradients."""
    values = values if isinstance(values, list | tuple) else [values]
    return [one for one in values if isinstance(one, torch.Tensor) and one.is_floating_point()]


def unchanged(answer: Callable, *inputs: Any) -> Any:
    """The result for these inputs, which must stay as they are."""
    copies = [one.clone() if isinstance(one, torch.Tensor) else one for one in inputs]
    seen = answer(*copies)
    holds(all(map(same, copies, inputs)), "the input is changed in place (by +=")
    return seen


def equal(answer: Callable, right: Callable, *inputs: Any, wrongs: tuple[Wrong, ...] = ()) -> None:
    """For these inputs, results and all gradients must be the right ones, and the inputs stay as they are."""
    shapes = ", ".join(str(tuple(one.shape)) for one in inputs if isinstance(one, torch.Tensor))
    trying(say(f"입력의 모양 {shapes}", f"inputs of shape {shapes}" if shapes else ""))
    with torch.no_grad():
        seen, expected = unchanged(answer, *inputs), right(*inputs)
    for one, other in zip(
        *(each if isinstance(each, list | tuple) else [each] for each in (seen, expected)), strict=False
    ):
        if isinstance(other, torch.Tensor):
            tensor(one, *other.shape)
    compare(
        seen if isinstance(expected, torch.Tensor) else floats(seen),
        expected if isinstance(expected, torch.Tensor) else floats(expected),
        told("with random numbers the result differs…", label=label()),
        *wrongs,
    )
    trying(say("역전파", "backward pass"))
    gradients = []
    for each in (answer, right):
        leaves = [one.clone().requires_grad_() if one in floats([one]) else one for one in map(_as_is, inputs)]
        passed = [one * 1 if isinstance(one, torch.Tensor) and one.requires_grad else one for one in leaves]
        if isinstance(each, nn.Module):
            each.zero_grad()
        sum(
            (one * torch.linspace(-1, 1, one.numel()).view(one.shape)).sum() for one in floats(each(*passed))
        ).backward()
        named = dict(each.named_parameters()) if isinstance(each, nn.Module) else {}
        tensors = {str(number): one for number, one in enumerate(leaves) if isinstance(one, torch.Tensor)}
        gradients.append({name: one.grad for name, one in (tensors | named).items()})
    trying("")
    for name, expected in gradients[1].items():
        seen, part = (
            gradients[0][name],
            told("argument …", int_name_1=int(name) + 1) if name.isdigit() else f"self.{name}",
        )
        if expected is None or (expected == 0).all():
            continue
        holds(seen is not None and (seen != 0).any(), told("no gradient reaches …, so that it never", part=part))
        rows = slice(1, None) if name.endswith("tokens.weight") else slice(None)  # a padding_idx is no mistake
        compare(seen[rows], expected[rows], told("the gradient of … differs", part=part))


def _as_is(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def drops(call: Callable[[], torch.Tensor], expected: torch.Tensor, rate: float, where: str) -> None:
    """In training, each number of the result is 0 with probability `rate`, else as expected, divided by 1 - rate."""
    first, second = ((call() / expected).detach() for _ in range(2))
    where, kept = told(where), first[first.abs() > 1e-3]
    share, scale = (first.abs() <= 1e-3).float().mean().item(), 1 / (1 - rate)
    holds(
        not (first - 1).abs().lt(1e-3).all(), told("…: there is no dropout in training (with", where=where, rate=rate)
    )
    holds(len(kept), told("…: all numbers became 0", where=where))
    if share == 0 or not same(kept, torch.full_like(kept, scale)):
        value = kept[(kept - scale).abs().argmax()].item()
        raise Fails(
            told(
                "…: dropout with rate … makes a number 0",
                where=where,
                rate=rate,
                scale=scale,
                share=share,
                value=value,
            )
        )
    holds(abs(share - rate) < 0.1, told("…: with rate …, … of the numbers were", where=where, rate=rate, share=share))
    holds(not torch.equal(first, second), told("…: each call drops the same numbers", where=where))
    for dim, size in enumerate(first.shape):
        sentence = (
            "whole rows are dropped or kept" if dim == first.dim() - 1 else "the same columns are dropped in all rows"
        )
        holds(size == 1 or not (first == first.narrow(dim, 0, 1)).all(), told(sentence, where=where))


def combinations(parts: list[tuple[str, torch.Tensor]]) -> list[Wrong]:
    """All sums of some of the parts, each with a sentence that names what is missing."""
    wrongs = []
    for chosen in itertools.product([True, False], repeat=len(parts)):
        lacking = ", ".join(name for (name, _), one in zip(parts, chosen, strict=True) if not one)
        total = sum(
            (value for (_, value), one in zip(parts, chosen, strict=True) if one), torch.zeros_like(parts[0][1])
        )
        wrongs.append((total, told("the sum lacks …", lacking=lacking)))
    return wrongs[1:]


def source_lines(name: str, text: str) -> str:
    """A file name under which tracebacks find the lines of a text."""
    file = f"<kept of ipykernel: {name} {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return file
