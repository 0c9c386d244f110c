"""A naive Transformer, written from the paper's equations one position and one head at a time.

Slow and obvious: no batches, no masks, no caches. It reads the weights of our model by name, and computes one pair of
sequences without pads, which is what a padded row of a batch must equal.
"""

import math

import torch


def norm(model, x: torch.Tensor, weights: torch.nn.Module) -> torch.Tensor:
    """Layer norm of one vector (D,), by the configuration's kind."""
    eps = model.config.layer_norm_eps
    centred = x - x.sum() / len(x)
    if model.config.layer_norm_type == "standard":
        normed = centred / ((centred**2).sum() / len(x) + eps).sqrt()
    else:
        normed = centred / (((centred**2).sum() / (len(x) - 1)).sqrt() + eps)
    return weights.weight * normed + weights.bias


def attention(module, queries: list[torch.Tensor], memory: list[torch.Tensor], causal: bool) -> list[torch.Tensor]:
    """§3.2: each query vector attends to the memory, head by head."""
    d = module.head_dim
    outputs = []
    for position, query in enumerate(queries):
        visible = memory[: position + 1] if causal else memory
        heads = []
        for head in range(module.q_proj.out_features // d):
            rows = slice(head * d, (head + 1) * d)

            def project(layer, vector, rows=rows):
                return layer.weight[rows] @ vector + (0 if layer.bias is None else layer.bias[rows])

            q = project(module.q_proj, query)
            scores = torch.stack([q @ project(module.k_proj, key) / math.sqrt(d) for key in visible])
            weights = scores.exp() / scores.exp().sum()
            heads.append(
                sum(weight * project(module.v_proj, key) for weight, key in zip(weights, visible, strict=True))
            )
        bias = 0 if module.out_proj.bias is None else module.out_proj.bias
        outputs.append(module.out_proj.weight @ torch.cat(heads) + bias)
    return outputs


def feed_forward(model, module, x: torch.Tensor) -> torch.Tensor:
    """§3.3, Eq. 2."""
    inner = module.fc1.weight @ x + module.fc1.bias
    if model.config.activation_function == "relu":
        inner = inner.clamp(min=0)
    else:
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    return module.fc2.weight @ inner + module.fc2.bias


def residual(model, module, xs: list[torch.Tensor], sublayer) -> list[torch.Tensor]:
    """§3.1: post-norm or pre-norm residual connection round a function of a list of vectors."""
    if model.config.norm_first:
        outputs = sublayer([norm(model, x, module.pre_norm) for x in xs])
        return [x + y for x, y in zip(xs, outputs, strict=True)]
    return [norm(model, x + y, module.post_norm) for x, y in zip(xs, sublayer(xs), strict=True)]


def embed(model, stack, ids: list[int]) -> list[torch.Tensor]:
    """§3.4, §3.5: token embedding and position."""
    d = model.config.d_model
    vectors = []
    for k, token in enumerate(ids):
        x = stack.embed_tokens.weight[token]
        if model.config.scale_embedding:
            x = x * math.sqrt(d)
        row = k + model.config.position_offset
        if model.config.position_embedding_type == "sinusoidal":
            angles = [row / 10000 ** (2 * (i // 2) / d) for i in range(d)]
            x = x + torch.tensor([math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)]).to(x)
        elif model.config.position_embedding_type == "learned":
            x = x + stack.embed_positions.weight[row]
        vectors.append(x)
    return vectors


def apply_layer(model, layer, xs: list[torch.Tensor], memory: list[torch.Tensor] | None) -> list[torch.Tensor]:
    """§3.1: a layer of the encoder, or with a memory one of the decoder."""
    is_causal = memory is not None
    xs = residual(model, layer.self_attn_residual, xs, lambda v: attention(layer.self_attn, v, v, is_causal))
    if memory is not None:
        xs = residual(
            model, layer.encoder_attn_residual, xs, lambda v: attention(layer.encoder_attn, v, memory, False)
        )
    return residual(
        model, layer.feed_forward_residual, xs, lambda v: [feed_forward(model, layer.feed_forward, x) for x in v]
    )


def apply_stack(model, stack, ids: list[int], memory: list[torch.Tensor] | None = None) -> list[torch.Tensor]:
    xs = embed(model, stack, ids)
    for layer in stack.layers:
        xs = apply_layer(model, layer, xs, memory)
    return [norm(model, x, stack.final_norm) for x in xs] if model.config.final_norm else xs


def encode_decode(model, source: list[int], target: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """The encoder's (S, D) and the decoder's output (T, D) of a `VanillaTransformerModel` for one pair of ids."""
    xs = apply_stack(model, model.encoder, source)
    ys = apply_stack(model, model.decoder, target, memory=xs)
    return torch.stack(xs), torch.stack(ys)
