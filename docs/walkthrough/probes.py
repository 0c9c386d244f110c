# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What the properties of the blanks are written with.

The properties of a blank are a generator, which runs with the reader's answer, with the right one and with known
mistakes. It yields (sentence, function, inputs): what the function makes of the inputs must be the same as with the
right answer, or else the sentence is the message.
"""

import difflib
import linecache
import math
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import my_transformer
import torch
from torch import nn
from words import told


Properties = Iterator[tuple]
ELSEWHERE = ("is not on the expected device", "on the same device")  # what torch says of tensors on two devices


class Fails(Exception):
    """A property does not hold; its argument is the sentence."""


def holds(condition: Any, sentence: str, **values: Any) -> None:
    if not condition:
        raise Fails(told(sentence, **values))


def same(seen: Any, right: Any) -> bool:
    """Whether two results are equal, up to rounding."""
    if isinstance(right, dict):
        return isinstance(seen, dict) and all(same(seen[name], value) for name, value in right.items())
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
    if isinstance(right, Exception):
        return type(seen) is type(right) and str(seen) == str(right)
    return bool(seen == right)


def numbers(seen: Any, right: Any, before: str) -> str:
    """Input, expected and seen; of large tensors the first numbers that differ."""
    if kind(seen) != kind(right):
        seen, right = kind(seen), kind(right)
    if isinstance(right, list | tuple) and any(isinstance(one, torch.Tensor) for one in right):
        seen, right = next(one for one in zip(seen, right, strict=True) if not same(*one))
    if isinstance(right, torch.Tensor) and right.numel() > 12:
        close = torch.isclose(seen.double(), right.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
        place = tuple((~close).nonzero()[0].tolist())
        before = f"{before}: {list(place)}" if before else f"{list(place)}"
        seen, right = seen[place].item(), right[place].item()
    for digits in range(3, 9):
        texts = shown(seen, digits), shown(right, digits)
        if texts[0] != texts[1]:
            break
    return told("expected …, got …", given=f"{before}: " if before else "", seen=texts[0], right=texts[1])


def shown(value: Any, digits: int = 3) -> str:
    if isinstance(value, torch.Tensor):
        return shown(value.tolist(), digits) if value.numel() <= 12 else str(tuple(value.shape))
    if isinstance(value, list | tuple):
        return ("[{}]" if isinstance(value, list) else "({})").format(", ".join(shown(one, digits) for one in value))
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)[:80]


def given(inputs: list[Any]) -> str:
    """The inputs, or, if they are large, the shapes of the tensors among them."""
    large = sum(one.numel() for one in inputs if isinstance(one, torch.Tensor)) > 24
    shapes = [tuple(one.shape) if large and isinstance(one, torch.Tensor) else one for one in inputs]
    return ", ".join(shown(one) for one in shapes if not callable(one))


def kind(value: Any) -> str:
    """The type of a value, and the shapes of its tensors."""
    if isinstance(value, torch.Tensor):
        return told("a tensor …", shape=tuple(value.shape))
    if isinstance(value, list | tuple) and any(isinstance(one, torch.Tensor) for one in value):
        return f"({', '.join(map(kind, value))})"
    return type(value).__name__


def failure(error: BaseException, before: str = "") -> str:
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
    notes = [one for one in (before, *getattr(error, "__notes__", [])) if one]
    return sentence + (f" [{line}]" if line else "") + (f" ({', '.join(notes)})" if notes else "")


def elsewhere(call: Callable, *inputs: Any) -> Properties:
    """Run on `meta`, a device without numbers; what would be on the CPU there would be on a GPU, too."""

    def run(*inputs: Any) -> None:
        if isinstance(call, nn.Module):
            call.to("meta")
        try:
            call(*(one.to("meta") if isinstance(one, torch.Tensor) else one for one in inputs))
        except Exception as error:
            if any(words in str(error) for words in ELSEWHERE):
                raise

    yield "", run, *inputs


def refuses(call: Callable, *inputs: Any) -> bool:
    try:
        call(*inputs)
    except Exception:
        return True
    return False


def build(answer: Callable, name: str, *args: Any, **sizes: Any) -> nn.Module:
    """A module with random weights, which are the same for each answer, without dropout."""
    with torch.random.fork_rng(devices=[]):
        right = getattr(my_transformer, name)(*args, **sizes)
        try:
            module = answer(*args, **sizes)
        except Exception as error:
            asked = ", ".join([*map(str, args), *(f"{key}={value}" for key, value in sizes.items() if key != "head")])
            error.add_note(told("when …(…) is made", name=name, asked=asked))
            raise
    holds(isinstance(module, nn.Module), "it is …, no nn.Module", kind=kind(module))
    compare_names(module, right)
    for parameter in right.parameters():
        nn.init.normal_(parameter, std=0.5)
    module.load_state_dict(right.state_dict())
    return module.eval()


def compare_names(module: nn.Module, right: nn.Module) -> None:
    """Names and shapes of parameters must be those of the right module: trained weights are loaded by them."""
    mine, theirs = ({name: tuple(one.shape) for name, one in each.state_dict().items()} for each in (module, right))
    for name, part in right.named_modules():
        own = module
        for step in name.split(".") if name else []:
            own = getattr(own, step, None)
        holds(not isinstance(own, list | tuple), "self.… is a Python list, in which PyTorch", part=name)
        if isinstance(own, nn.ModuleList):
            holds(len(own) == len(part), "… has … layers, where … were", name=name, seen=len(own), right=len(part))
    extra, missing = [name for name in mine if name not in theirs], [name for name in theirs if name not in mine]
    for name in missing[:1]:
        holds(name.replace("bias", "weight") not in mine, "there is no self.… (bias=False?), which", first=name)
        part = name.partition(".")[0]
        part = part if not hasattr(module, part) else name
        others = list(dict.fromkeys(one.partition(".")[0] if "." not in part else one for one in extra))
        close = difflib.get_close_matches(part, others, n=1, cutoff=0.5) or others
        raise Fails(told("there is no self.…", part=part, own=f" ({', '.join(close)})" if close else ""))
    for name in extra:
        buffer = name in dict(module.named_buffers())
        raise Fails(told("self.… is saved as well" if buffer else "self.… is a parameter too many", name=name))
    trained = dict(module.named_parameters(remove_duplicate=False))
    for name, shape in theirs.items():
        holds(mine[name] == shape, "self.… must have the shape …, and has …", name=name, shape=shape, seen=mine[name])
        holds(name in trained and trained[name].requires_grad, "self.… is not trained", name=name)
    holds(len({id(one) for one in trained.values()}) == len(theirs), "Several layers are one and the same")


def agrees(function: Callable, *inputs: Any) -> Properties:
    """Results and all gradients must be the right ones."""
    yield "with random numbers the result differs…", function, *inputs
    yield "no gradient reaches …, so that it never", reached, function, *inputs
    yield "the gradient of … differs", gradients, function, *inputs


def reached(function: Callable, *inputs: Any) -> dict[str, bool]:
    return {name: bool((one.abs() > 1e-3).any()) for name, one in gradients(function, *inputs).items()}


def gradients(function: Callable, *inputs: Any) -> dict[str, torch.Tensor]:
    """Those of a weighted sum of the results, by the name of what they are for."""
    leaves = [one.clone().requires_grad_() if is_float(one) else one for one in inputs]
    results = function(*(one * 1 if is_float(one) else one for one in leaves))
    results = [one for one in (results if isinstance(results, list | tuple) else [results]) if is_float(one)]
    parameters = dict(function.named_parameters()) if isinstance(function, nn.Module) else {}
    named = {told("argument …", number=number + 1): one for number, one in enumerate(leaves) if is_float(one)}
    named |= {f"self.{name}": one for name, one in parameters.items()}
    total = sum((one * torch.linspace(-1, 1, one.numel()).view(one.shape)).sum() for one in results)
    found = torch.autograd.grad(total, list(named.values()), materialize_grads=True, allow_unused=True)
    return {name: one[1:] if "tokens" in name else one for name, one in zip(named, found, strict=True)}  # padding_idx


def is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def drops(where: str, rate: float, ratios: Callable, *inputs: Any) -> Properties:
    """In training, each number is 0 with probability `rate`, else 1/(1 - rate) times as large as without dropout."""

    def share(*inputs: Any) -> tuple[float, list[float]]:
        found = ratios(*inputs).detach()
        kept = found[found.abs() > 1e-3]
        return round(1 - kept.numel() / found.numel(), 1), [kept.min().item(), kept.max().item()] if len(kept) else []

    def repeats(*inputs: Any) -> bool:
        return torch.equal(ratios(*inputs), ratios(*inputs))

    def uniform(dim: int, *inputs: Any) -> bool:
        found = ratios(*inputs)
        return bool((found == found.narrow(dim, 0, 1)).all())

    yield told("…: dropout with rate … makes a number 0", where=where, rate=rate, scale=1 / (1 - rate)), share, *inputs
    yield told("…: each call drops the same numbers", where=where), repeats, *inputs
    yield told("whole rows are dropped or kept", where=where), uniform, -1, *inputs
    for dim in (0, 1):
        yield told("the same columns are dropped in all rows", where=where), uniform, dim, *inputs


def source_lines(name: str, text: str) -> str:
    """A file name under which tracebacks find the lines of a text."""
    file = f"<kept of ipykernel: {name} {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return file
