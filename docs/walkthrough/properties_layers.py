# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What must hold of the blanks of chapter 5: layers, stacks, the whole. It gives the answers away."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from probes import (
    build,
    combinations,
    compare,
    drops,
    elsewhere,
    equal,
    holds,
    kind,
    known,
    same,
    tensor,
    trying,
    unchanged,
)
from torch import nn
from words import told


LAST = {
    "self_attention": "out_proj",
    "cross_attention": "out_proj",
    "feed_forward": "fc2",
}  # a sub-layer's last matrix
SIZES = {"d_model": 8, "heads": 2, "ffn_dim": 16}
STACKS = ((20, 8, 2, 16, 2), (30, 12, 3, 20, 3))  # vocab_size, d_model, heads, ffn_dim, layers


@torch.no_grad()
def constant(modules: Iterable[nn.Module], **outputs: Any) -> None:
    """Make sub-layers give the same numbers whatever they read."""
    for module in modules:
        for name, output in outputs.items():
            last = getattr(getattr(module, name), LAST[name])
            last.weight.zero_()
            last.bias.copy_(torch.as_tensor(output))


def encoder_layer(answer: Callable) -> None:
    layer(answer, "EncoderLayer", ["self_attention", "feed_forward"])


def decoder_layer(answer: Callable) -> None:
    layer(answer, "DecoderLayer", ["self_attention", "cross_attention", "feed_forward"])


def inputs_of(name: str, length: int = 4, d_model: int = 8) -> list[Any]:
    """What a layer reads, with masks."""
    x, memory = torch.randn(2, length, d_model), torch.randn(2, 5, d_model)
    shut = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]).bool()[:, None, None, :]
    if name == "EncoderLayer":
        return [x, shut[..., -length:] | (torch.arange(length) == 0)]
    return [x, memory, torch.ones(length, length).bool().tril(), shut]


def layer(answer: Callable, name: str, parts: list[str]) -> None:
    build(answer, name, 8, heads=2, ffn_dim=16)
    inputs = inputs_of(name)
    x = inputs[0]

    def both(**outputs: Any) -> tuple[nn.Module, nn.Module]:
        made = build(answer, name, *SIZES.values())
        constant(made, **outputs)
        return made

    def sub(
        right: nn.Module, part: str, normed: torch.Tensor, key: Any = None, value: Any = None, mask: Any = ""
    ) -> Any:
        """What a sub-layer adds, from these inputs."""
        if part == "feed_forward":
            return right.feed_forward(normed)
        own = [normed, normed, inputs[-1] if name == "EncoderLayer" else inputs[2]]
        key_, value_, mask_ = own if part == "self_attention" else [inputs[1], inputs[1], inputs[3]]
        key, value = key_ if key is None else key, value_ if value is None else value
        return getattr(right, part)(normed, key, value, mask_ if isinstance(mask, str) else mask)[0]

    with torch.no_grad():
        if name == "DecoderLayer":
            module, right = both(feed_forward=0.0, self_attention=0.0)
            square = torch.randn_like(x)
            shut = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]]).bool()[:, None, None, :]
            read = right.cross_attention_norm(x)
            trying("4 tokens on both sides")
            known(
                module(x, square, inputs[2], shut) - x,
                (right.cross_attention(read, square, read, shut)[0], "values of cross-attention are normed"),
                (right.cross_attention(read, read, square, shut)[0], "keys of cross-attention are normed"),
                (right.cross_attention(square, read, read, shut)[0], "Query and key of cross-attention are"),
                (right.cross_attention(read, read, read, shut)[0], "Cross-attention looks at the decoder"),
                (right.cross_attention(read, square, square, inputs[2])[0], "Cross-attention gets the causal mask"),
            )
            trying("")
        # Each sub-layer gives a number, whatever it reads: 1, 10 and 100.
        values = dict(zip(parts, (1.0, 10.0, 100.0), strict=False))
        module, right = both(**values)
        tensor(unchanged(module, *inputs), *x.shape)
        holds(same(module(*inputs), module(*inputs)), "after model.eval(), results differ from")
        norms = {part: getattr(right, f"{part}_norm") for part in parts}
        total = x + sum(values.values())
        after = x
        for part, value in values.items():
            after = norms[part](after + value)
        inner = x
        for part, value in values.items():
            inner = norms[part](inner) + value
        compare(
            module(*inputs),
            total,
            told(
                "If sub-layers give …, the result is x",
                join_f_one_g_f=", ".join(f"{one:g}" for one in values.values()),
            ),
            (after, "is post-norm: it normalizes after the"),
            (inner, "residual starts from the normalized"),
            *(
                (
                    torch.full_like(x, sum(list(values.values())[number:])),
                    told("There is no residual connection: the", part=part),
                )
                for number, part in enumerate(parts)
            ),
            *combinations([("x", x), *((part, torch.full_like(x, value)) for part, value in values.items())]),
            (norms[parts[-1]](total), "There is one norm too many, at the end of"),
            given=f"{', '.join(f'{part} = {value:g}' for part, value in values.items())}",
        )
        for part in parts:
            others = {one: 0.0 for one in parts if one != part}
            module, right = both(**others)
            normed, norms = getattr(right, f"{part}_norm")(x), {one: getattr(right, f"{one}_norm") for one in parts}
            trying(told("self.… alone", part=part))
            wrongs = [
                (sub(right, part, x), told("… gets x itself", part=part)),
                *(
                    (sub(right, part, norm(x)), told("… reads what went through self.…_norm", part=part, one=one))
                    for one, norm in norms.items()
                    if one != part
                ),
            ]
            if part != "feed_forward":
                attend = lambda *args, part=part, right=right: sub(right, part, *args)  # noqa: E731
                shut = inputs[-1] if name == "EncoderLayer" else inputs[2]
                wrongs += [
                    (attend(normed, None, None, None), told("… ignores its mask and sees what is", part=part)),
                    (
                        attend(normed, None, None, ~inputs[-1] if part == "cross_attention" else ~shut),
                        told("mask of … is inverted", part=part),
                    ),
                ]
            if part == "self_attention":
                wrongs += [
                    (attend(normed, None, x), told("values of … are x", part=part)),
                    (attend(normed, x, x), told("Keys and values of … are x", part=part)),
                    (attend(x, normed, normed), told("query of … is x", part=part)),
                ]
            if name == "DecoderLayer" and part == "self_attention":
                wrongs += [(attend(normed, inputs[1], inputs[1], inputs[3]), "Self-attention looks at memory")]
            if part == "cross_attention":
                memory = inputs[1]
                wrongs += [
                    (attend(normed, normed, normed, None), "Cross-attention looks at the decoder"),
                    (attend(normed, normed, normed, inputs[2]), "Cross-attention looks at the decoder"),
                    (attend(normed, norms[part](memory), norms[part](memory)), "memory is normalized again"),
                    (
                        right.self_attention(normed, memory, memory, inputs[3])[0],
                        "self.self_attention is called in place of",
                    ),
                ]
            seen = module(*inputs) - x
            compare(seen, sub(right, part, normed), told("What … adds must come from", part=part), *wrongs)
            trying("")
        # The order: of two sub-layers, the later reads x with what the earlier has added.
        vector = torch.randn(x.shape[-1])
        for number, first in enumerate(parts):
            for second in parts[number + 1 :]:
                silent = {one: 0.0 for one in parts if one not in (first, second)}
                module, right = both(**silent, **{first: vector})
                norm = getattr(right, f"{second}_norm")
                compare(
                    module(*inputs) - x - vector,
                    sub(right, second, norm(x + vector)),
                    told("… must read x with the output of … added", second=second, first=first),
                    (
                        sub(right, second, norm(x)),
                        told("… reads x as it was before the output of", second=second, first=first),
                    ),
                    (
                        sub(right, second, getattr(right, f"{first}_norm")(x)),
                        told("… gets the earlier normed vector", second=second),
                    ),
                )
                module, right = both(**silent, **{second: vector})
                norm = getattr(right, f"{first}_norm")
                compare(
                    module(*inputs) - x - vector, sub(right, first, norm(x)),
                    told("… must come before …", first=first, second=second),
                )  # fmt: skip
    for length, sizes in ((4, (8, 2, 16)), (5, (12, 3, 20))):
        made = build(answer, name, *sizes)
        equal(*made, *inputs_of(name, length, sizes[0]))
    for rate in (0.5, 0.2):
        for part in parts:
            module, _ = build(answer, name, 8, 2, 16, dropout=rate)
            constant([module], **{one: float(one == part) for one in parts})
            wide = [torch.randn(8, 30, 8), *([torch.randn(8, 5, 8)] if name == "DecoderLayer" else [])]
            masks = [None] * (len(inputs) - len(wide))
            zeros = (module.train()(*wide, *masks) == 0).float().mean()
            holds(zeros < 0.1, told("…: dropout comes after the addition and", part=part))
            drops(
                lambda module=module, wide=wide, masks=masks: module(*wide, *masks) - wide[0],
                torch.ones_like(wide[0]), rate, told("the output of … (set to 1, x subtracted)", part=part),
            )  # fmt: skip
    module, _ = build(answer, name, *SIZES.values(), dropout=0.0)
    compare(module.train()(*inputs), module.eval()(*inputs), "with dropout=0.0, training gives the same")
    on = [one.to("meta") for one in inputs]
    elsewhere(lambda: module.to("meta")(*on))


def encoder(answer: Callable) -> None:
    stack(answer, "Encoder")


def decoder(answer: Callable) -> None:
    stack(answer, "Decoder")


def run(right: nn.Module, ids: torch.Tensor, *rest: Any, layers: Any = None, dim: Any = None) -> torch.Tensor:
    """The right stack with other masks or layers."""
    x = right.embedding(ids)
    for one in right.layers if layers is None else layers:
        x = one(x, *rest)
    return right.norm(x)


def stack(answer: Callable, name: str) -> None:
    build(answer, name, 20, 8, heads=2, ffn_dim=16, layers=2)
    parts = ["self_attention", "feed_forward"] + ["cross_attention"] * (name == "Decoder")
    ids, memory = torch.randint(20, (2, 5)), torch.randn(2, 5, 8)
    mask = torch.tensor([[1] * 5, [1, 1, 1, 0, 0]]).bool()[:, None, None, :]
    causal = torch.ones(5, 5).bool().tril()
    inputs = [ids, mask] if name == "Encoder" else [ids, memory, mask]
    rest = [mask] if name == "Encoder" else [memory, causal, mask]
    with torch.no_grad():
        module, right = build(answer, name, *STACKS[0])
        trying("2 texts of 5 tokens")
        tensor(unchanged(module, *inputs), 2, 5, 8)
        trying("")
        holds(same(module(*inputs), module(*inputs)), "after model.eval(), results differ from")
        holds(not module(*inputs).isnan().any(), "result has nan: some row of a mask shows")
        for one in (module, right):
            constant(one.layers, **dict.fromkeys(parts, 0.0))
        x = right.embedding(ids)
        compare(
            module(*inputs), right.norm(x), "If no layer adds anything, the result is",
            (x, "There is no final norm: return"), (right.norm(right.norm(x)), "norm is applied twice"),
            (right.norm(right.embedding.tokens(ids)), "self.embedding is not called: positions"),
            (right.norm(x + right.embedding.positions[:5]), "Positions are added twice"),
            (right.norm(x * 8**0.5), "√d multiplies twice"),
        )  # fmt: skip
        vectors = torch.randn(2, 8)
        for number in range(2):
            module, right = build(answer, name, *STACKS[0])
            for one in (module, right):
                constant(one.layers, **dict.fromkeys(parts, 0.0))
                constant([one.layers[number]], feed_forward=vectors[number])
            compare(
                module(*inputs),
                right.norm(right.embedding(ids) + vectors[number]),
                told("What layer … adds must be in the result", number=number),
                (right.norm(right.embedding(ids)), told("Layer … is not applied", number=number)),
                (
                    right.norm(right.embedding(ids) + 2 * vectors[number]),
                    told("Layer … is applied twice", number=number),
                ),
            )
        module, right = build(answer, name, *STACKS[0])
        wrongs = [(run(right, ids, *rest, layers=right.layers[::-1]), "layers are applied in reverse")]
        for shut, sentence in (
            (None, "source mask is not handed to the layers"),
            (~mask, "The source mask is inverted."),
        ):
            wrongs.append((run(right, ids, *rest[:-1], shut), sentence))
        if name == "Decoder":
            full = torch.ones(5, 5).bool()
            for wrong, sentence in (
                (full.tril(1), "causal mask is one too wide: each"),
                (full.tril(-1), "causal mask is one too narrow: no"),
                (full.triu(), "causal mask is upside down: triu shows"),
                (full.triu(1), "causal mask is inverted: it shows what"),
                (None, "There is no causal mask: each position"),
                (full, "causal mask is all True: each position"),
                (torch.eye(5).bool(), "causal mask shows each position itself"),
                (causal & mask, "source's padding mask is mixed into"),
                (mask, "Self-attention gets the source mask"),
            ):
                wrongs.append((run(right, ids, memory, wrong, mask), sentence))
            wrongs.append((run(right, ids, memory, causal, causal), "Cross-attention gets the causal mask (2)"))
            seen, changed = module(*inputs), ids.clone()
            changed[:, 3] = (ids[:, 3] + 1) % 20
            later = module(changed, memory, mask)
            moved = [place for place in range(3) if not torch.allclose(seen[:, place], later[:, place], atol=1e-5)]
            if moved:
                known(
                    seen, *wrongs, given=told("positions changed by token 3: …", moved=moved),
                )  # fmt: skip
            holds(not moved, told("A change of token 3 changed the results", moved=moved))
            wrongs.append((run(right, ids, memory.flip(0), causal, mask), "memory is out of order"))
        else:
            seen, changed = module(*inputs), ids.clone()
            changed[1, 3:] = (ids[1, 3:] + 1) % 20
            later = module(changed, mask)
            unlike = not torch.allclose(seen[1, :3], later[1, :3], atol=1e-5)
            if unlike:
                known(seen, *wrongs, given=told("changed padding changes other positions"))
            holds(not unlike, "A change of padding changed other")
        expected = run(right, ids, *rest)
        compare(module(*inputs), expected, "All of self.layers are applied in turn", *wrongs)
    for sizes in STACKS:
        made = build(answer, name, *sizes)
        ids, memory = torch.randint(1, 20, (3, 4)), torch.randn(3, 6, sizes[1])
        mask = torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0], [1, 0, 1, 1, 1, 1]]).bool()[:, None, None, :]
        equal(*made, *([ids, mask[..., :4]] if name == "Encoder" else [ids, memory, mask]))
    for rate in (0.5, 0.2):
        module, right = build(answer, name, 20, 8, 2, 16, layers=2, dropout=rate)
        constant(module.layers, **dict.fromkeys(parts, 0.0))
        ids, seen = torch.randint(20, (16, 25)), {}
        module.norm.register_forward_hook(lambda _, inputs, __, seen=seen: seen.update(x=inputs[0].detach()))
        memory = torch.randn(16, 5, 8)
        arguments = [ids, None] if name == "Encoder" else [ids, memory, None]

        def entering(module: nn.Module = module, arguments: list = arguments, seen: dict = seen) -> torch.Tensor:
            module(*arguments)
            return seen["x"]

        module.train()(*arguments)
        if seen:
            drops(entering, right.embedding(ids).detach(), rate, "the sum of embedding and positions")
        for number, one in enumerate(module.layers):
            constant([one], feed_forward=1.0)
            between = {}
            hook = one.register_forward_hook(
                lambda _, inputs, output, between=between: between.update(x=(output - inputs[0]).detach())
            )

            def added(
                module: nn.Module = module, arguments: list = arguments, between: dict = between
            ) -> torch.Tensor:
                module(*arguments)
                return between["x"]

            module(*arguments)
            if between:
                drops(added, torch.ones(16, 25, 8), rate, told("the feed-forward network of layer …", number=number))
            hook.remove()
    module, _ = build(answer, name, *STACKS[0], dropout=0.0)
    arguments = [one[:2] for one in arguments[:-1]] + [None]
    compare(module.train()(*arguments), module.eval()(*arguments), "with dropout=0.0, training gives the same")
    module.to("meta")
    on = [
        torch.zeros(2, 4, dtype=torch.long, device="meta"),
        torch.zeros(2, 4, 8, device="meta"),
        torch.ones(2, 1, 1, 4, dtype=torch.bool, device="meta"),
    ]
    elsewhere(lambda: module(*(on[::2] if name == "Encoder" else on)))


def transformer(answer: Callable) -> None:
    whole = {"vocab_size": 20, "d_model": 8, "heads": 2, "ffn_dim": 16}
    head = nn.Linear(8, 3)
    module, right = build(answer, "Transformer", **whole, encoder_layers=2, decoder_layers=1, head=head)
    holds(module.head is head, "self.head must be the head that was")
    source, is_token = torch.randint(1, 20, (2, 5)), torch.tensor([[1] * 5, [1, 1, 1, 0, 0]]).bool()
    source[0, 3] = 0
    for length in (5, 4):
        target = torch.randint(20, (2, length))
        mask, own = is_token[:, None, None, :], (source != 0)[:, None, None, :]
        with torch.no_grad():
            trying(told("5 source tokens, … written ones", length=length))
            seen = module(source, is_token, target)
            holds(isinstance(seen, torch.Tensor), told("result is one tensor of logits", kind_seen=kind(seen)))
            encoder, decoder = right.encoder, right.decoder
            memory = encoder(source, mask)
            compare(
                seen, head(decoder(target, memory, mask)), "encoder reads source, the decoder reads",
                (head(decoder(target, encoder(source, None), None)), "source mask is not handed on, and the"),
                (head(decoder(target, encoder(source, None), mask)), "encoder does not get the source mask, and"),
                (head(decoder(target, encoder(source, own), own)), "The mask comes from source"),
                (head(decoder(target, memory, None)), "decoder does not get the source mask"),
                (head(decoder(target, encoder(source, ~mask), ~mask)), "source mask is inverted"),
                (head(decoder(source, memory, mask)), "decoder reads source instead of target"),
                (head(decoder(target, right.encoder.embedding(source), mask)), "memory is not the encoder's output"),
                (decoder(target, memory, mask), "result does not pass through head"),
                (memory if length == 5 else seen[:0], "decoder is missing"),
                (head(memory) if length == 5 else seen[:0], "decoder is missing"),
                (head(decoder(target, memory, mask)).softmax(-1), "returns probabilities"),
                (head(decoder(target, memory, mask)).log_softmax(-1), "returns log-probabilities"),
                (head(decoder(target, memory, mask))[:, -1], "returns the last position alone"),
            )  # fmt: skip
            trying("")
    for sizes, layers in (((20, 8, 2, 16), (2, 1)), ((30, 12, 3, 20), (1, 2))):
        made = build(answer, "Transformer", *sizes, *layers, head=nn.Linear(sizes[1], 4))
        equal(*made, source, is_token, torch.randint(1, 20, (2, 4)))
    target = torch.randint(20, (2, 4))
    for rate in (0.0, 0.9):
        module, _ = build(answer, "Transformer", **whole, encoder_layers=1, decoder_layers=1, head=head, dropout=rate)
        for part, name in ((module.encoder, "self.encoder"), (module.decoder, "self.decoder")):
            seen = {}
            module.eval()
            hook = part.register_forward_hook(lambda _, __, output, seen=seen: seen.update(x=output.detach()))
            module(source, is_token, target)
            still = seen.get("x")
            part.train()
            module(source, is_token, target)
            alike = still is None or torch.allclose(still, seen["x"], atol=1e-5)
            share = (still is None) or ((still - seen["x"]).abs().mean() > 0.1)
            holds(
                alike if rate == 0 else not alike and share,
                told("… does not get the rate of dropout", name=name, rate=rate),
            )
            hook.remove()
    elsewhere(lambda: module.to("meta")(source.to("meta"), is_token.to("meta"), target.to("meta")))


def tie_embeddings(answer: Callable) -> None:
    import my_transformer

    def made(head: int = 20) -> nn.Module:
        return my_transformer.Transformer(20, 8, 2, 16, 1, 1, head=nn.Linear(8, head))

    def tables(model: nn.Module) -> list[torch.Tensor]:
        return [model.encoder.embedding.tokens.weight, model.decoder.embedding.tokens.weight, model.head.weight]

    for head in (True, False):
        model = made(20 if head else 2)
        before = [one.detach().clone() for one in tables(model)]
        seen = answer(model) if head else answer(model, head=False)
        holds(seen is model, told("Return the model that was handed in", kind_seen=kind(seen)))
        encoder, decoder, last = tables(model)
        for one, name in ((decoder, "decoder.embedding.tokens.weight"), *([(last, "head.weight")] if head else [])):
            holds(
                one is encoder,
                told("… is a copy" if same_values(one, encoder) else "… is not the encoder's parameter", name=name),
            )
        holds(isinstance(encoder, nn.Parameter) and encoder.requires_grad, "table is no nn.Parameter any more, and is")
        holds(any(same_values(encoder, one) for one in before[: 3 if head else 2]), "table has other values")
        holds(head or (last.shape == (2, 8) and same_values(last, before[2])), "With head=False, head must stay as it")
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        source = torch.randint(20, (2, 4))
        model(source, source > 0, source).square().sum().backward()
        optimizer.step()
        holds(
            all(same_values(encoder, one) for one in tables(model)[: 3 if head else 2]) and encoder.grad is not None,
            "After one step of training, the tables",
        )
        number = sum(one.numel() for one in model.parameters())
        compare(
            number, sum(one.numel() for one in made(20 if head else 2).parameters()) - 160 * (2 if head else 1),
            "number of parameters must fall by the",
        )  # fmt: skip


def same_values(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)
