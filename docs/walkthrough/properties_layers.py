# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What must hold of the blanks of chapter 5: layers, stacks, the whole, tied embeddings."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import my_transformer
import torch
from probes import Properties, agrees, build, drops, elsewhere, same
from torch import nn
from words import told


PARTS = {"self_attention": "out_proj", "cross_attention": "out_proj", "feed_forward": "fc2"}  # and their last matrix
PADDING = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]).bool()[:, None, None, :]


def constant(modules: Iterable[nn.Module], outputs: dict[str, Any]) -> None:
    """Make sub-layers give the same numbers whatever they read."""
    for module in modules:
        for name, output in outputs.items():
            last = getattr(getattr(module, name), PARTS[name])
            nn.init.zeros_(last.weight)
            last.bias.data[:] = torch.as_tensor(output)


def encoder_layer(answer: Callable) -> Properties:
    yield from layer(answer, "EncoderLayer", ["self_attention", "feed_forward"])


def decoder_layer(answer: Callable) -> Properties:
    yield from layer(answer, "DecoderLayer", ["self_attention", "cross_attention", "feed_forward"])


def layer(answer: Callable, name: str, parts: list[str]) -> Properties:
    def made(outputs: dict[str, Any]) -> nn.Module:
        module = build(answer, name, 8, heads=2, ffn_dim=16)
        constant([module], outputs)
        return module

    def inputs(length: int, d_model: int) -> list[torch.Tensor]:
        x, memory = torch.randn(2, length, d_model), torch.randn(2, 5, d_model)
        if name == "EncoderLayer":
            return [x, PADDING[..., :length]]
        return [x, memory, torch.ones(length, length).bool().tril(), PADDING]

    def added(module: nn.Module, x: torch.Tensor, *rest: Any) -> torch.Tensor:
        return module(x, *rest) - x

    module = made({part: 10.0**number for number, part in enumerate(parts)})
    yield "there is no self.dropout", lambda: callable(getattr(module, "dropout", None))
    yield "after model.eval(), results differ from", repeats, module, *inputs(5, 8)
    numbers = ", ".join(["1", "10", "100"][: len(parts)])
    yield told("If sub-layers give …, the result is x", numbers=numbers), module, *inputs(5, 8)
    for part in parts:
        module = made({one: 0.0 for one in parts if one != part})
        yield told("What … adds must come from", part=part), added, module, *inputs(5, 8)
    for number, first in enumerate(parts):
        for second in parts[number + 1 :]:
            silent = {one: 0.0 for one in parts if one not in (first, second)}
            module = made(silent | {first: torch.randn(8)})
            yield told("… must read x with the output of … added", second=second, first=first), module, *inputs(5, 8)
    for length, sizes in ((4, (8, 2, 16)), (5, (12, 3, 20))):
        yield from agrees(build(answer, name, *sizes), *inputs(length, sizes[0]))
    wide = [torch.randn(8, 30, 8) + 9, *([torch.randn(8, 5, 8), None] if name == "DecoderLayer" else []), None]
    for part in parts:
        module = build(answer, name, 8, 2, 16, dropout=0.5).train()
        constant([module], {one: float(one == part) for one in parts})
        yield from drops(told("the output of … (set to 1, x subtracted)", part=part), 0.5, added, module, *wide)
    module = build(answer, name, 8, 2, 16, dropout=0.0).train()
    yield "with dropout=0.0, training gives the same", module, *inputs(5, 8)
    yield from elsewhere(module, *inputs(5, 8))


def repeats(module: nn.Module, *inputs: Any) -> bool:
    return same(module(*inputs), module(*inputs))


def encoder(answer: Callable) -> Properties:
    yield from stack(answer, "Encoder", ["self_attention", "feed_forward"])


def decoder(answer: Callable) -> Properties:
    yield from stack(answer, "Decoder", list(PARTS))


def stack(answer: Callable, name: str, parts: list[str]) -> Properties:
    silent = dict.fromkeys(parts, 0.0)

    def made(*outputs: dict[str, Any]) -> nn.Module:
        """The stack of two layers, whose sub-layers give these numbers."""
        module = build(answer, name, 20, 8, heads=2, ffn_dim=16, layers=2)
        for one, numbers in zip(module.layers, outputs, strict=False):
            constant([one], numbers)
        return module

    def inputs(d_model: int, length: int = 5) -> list[torch.Tensor]:
        ids, memory = torch.randint(1, 20, (2, length)), torch.randn(2, 5, d_model)
        return [ids, PADDING[..., :length]] if name == "Encoder" else [ids, memory, PADDING]

    def difference(ids: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        """What a change of token 3, which is padding or follows, does before it."""
        other = ids.clone()
        other[1, 3] = (ids[1, 3] + 1) % 20
        return (module(other, *rest) - module(ids, *rest))[1, : 2 if name == "Encoder" else 3]

    module = made(silent, silent)
    yield "after model.eval(), results differ from", repeats, module, *inputs(8)
    yield "If no layer adds anything, the result is", module, *inputs(8)
    for number in range(2):
        module = made(*({**silent, "feed_forward": torch.randn(8) * (one == number)} for one in range(2)))
        yield told("What layer … adds must be in the result", number=number), module, *inputs(8)
    module = made()
    yield "result has nan: some row of a mask shows", lambda *inputs: bool(module(*inputs).isnan().any()), *inputs(8)
    hidden = "A change of padding changed other" if name == "Encoder" else "A change of token 3 changed the results"
    yield hidden, difference, *inputs(8)
    yield "All of self.layers are applied in turn", module, *inputs(8)
    for sizes in ((20, 8, 2, 16, 2), (30, 12, 3, 20, 3)):
        yield from agrees(build(answer, name, *sizes), *inputs(sizes[1], 4))
    wide = [torch.randint(20, (16, 25)), *([torch.randn(16, 5, 8)] if name == "Decoder" else []), None]
    module = build(answer, name, 20, 8, 2, 16, layers=2, dropout=0.5).train()
    yield from drops_embedding(module, wide)
    for number in range(2):
        where = told("the feed-forward network of layer …", number=number)
        yield from drops(where, 0.5, partial(of_layer, module, number), *wide)
    yield "with dropout=0.0, training gives the same", build(answer, name, 20, 8, 2, 16, 2, 0.0).train(), *inputs(8)
    yield from elsewhere(module, *inputs(8))


def bare(module: nn.Module, number: int, ids: torch.Tensor, *rest: Any) -> torch.Tensor:
    """A stack without its norm, in which one layer at most adds 1."""
    module.norm = nn.Identity()
    for place, one in enumerate(module.layers):
        outputs = {part: 0.0 for part in PARTS if hasattr(one, part)}
        constant([one], outputs | {"feed_forward": float(place == number)})
    return module(ids, *rest)


def drops_embedding(module: nn.Module, inputs: list[Any]) -> Properties:
    def ratios(ids: torch.Tensor, *rest: Any) -> torch.Tensor:
        return bare(module, -1, ids, *rest) / module.embedding(ids)

    yield from drops(told("the sum of embedding and positions"), 0.5, ratios, *inputs)


def of_layer(module: nn.Module, number: int, *inputs: Any) -> torch.Tensor:
    """What a layer adds, while the embedding is 0."""
    nn.init.zeros_(module.embedding.tokens.weight), module.embedding.positions.zero_()
    return bare(module, number, *inputs)


def transformer(answer: Callable) -> Properties:
    head = nn.Linear(8, 3)
    whole = {"vocab_size": 20, "d_model": 8, "heads": 2, "ffn_dim": 16, "head": head}
    module = build(answer, "Transformer", encoder_layers=2, decoder_layers=1, **whole)
    source, is_token = torch.randint(20, (2, 5)), PADDING[:, 0, 0]
    source[0, 3] = 0
    yield "self.head must be the head that was", lambda: module.head is head
    for length in (5, 4):
        yield "encoder reads source, the decoder reads", module, source, is_token, torch.randint(20, (2, length))
    for sizes, layers in (((20, 8, 2, 16), (2, 1)), ((30, 12, 3, 20), (1, 2))):
        module = build(answer, "Transformer", *sizes, *layers, head=nn.Linear(sizes[1], 4))
        yield from agrees(module, torch.randint(1, 20, (2, 5)), is_token, torch.randint(1, 20, (2, 4)))
    module = build(answer, "Transformer", encoder_layers=1, decoder_layers=1, dropout=0.5, **whole).train()
    ids, memory = torch.randint(20, (16, 25)), torch.randn(16, 5, 8)
    yield from drops_embedding(module.encoder, [ids, None])
    yield from drops_embedding(module.decoder, [ids, memory, None])
    yield from elsewhere(module, source, is_token, torch.zeros(2, 4).long())


def tie_embeddings(answer: Callable) -> Properties:
    encoder, decoder = "encoder.embedding.tokens.weight", "decoder.embedding.tokens.weight"

    def tied(head: bool) -> dict[str, bool]:
        """Whether weights are the encoder's parameter, and whether its values are those of a table before."""
        model = my_transformer.Transformer(20, 8, 2, 16, 1, 1, head=nn.Linear(8, 20 if head else 2))
        before = [model.get_parameter(name).tolist() for name in (encoder, decoder, "head.weight")]
        answer(model) if head else answer(model, head=False)
        table = model.get_parameter(encoder)
        is_tied = {name: model.get_parameter(name) is table for name in (decoder, "head.weight")}
        return is_tied | {encoder: table.requires_grad and table.tolist() in before}

    yield "… is not the encoder's parameter", tied, True
    yield "With head=False, head must stay as it", tied, False
