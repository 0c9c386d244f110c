"""The tensors of a model in torch, by the names that model.js gives them."""

from typing import Any

import numpy as np
import torch
from torch import nn

from hf_vanilla_transformer.modeling_vanilla_transformer import VanillaTransformerResidual


ATTENTIONS = {"self_attn": "self_attention", "encoder_attn": "cross_attention"}


class Recorder:
    """Keep the first input and the output of each module, and of a residual's `before` and `after`."""

    def __init__(self, model: nn.Module):
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        for name, module in model.named_modules():
            module.register_forward_hook(self.hook(name), with_kwargs=True)
            if isinstance(module, VanillaTransformerResidual):
                module.before = self.wrap(f"{name}.before", module.before)
                module.after = self.wrap(f"{name}.after", module.after)

    def hook(self, name: str):
        def keep(module, args, kwargs, output):
            self.inputs[name], self.outputs[name] = (args or (None,))[0], output

        return keep

    def wrap(self, name: str, function):
        def kept(*args):
            self.inputs[name], self.outputs[name] = args[0], function(*args)
            return self.outputs[name]

        return kept


def expected_trace(model, ids: list[int], mask: list[int] | None, target: list[int]) -> dict[str, np.ndarray]:
    """What the page's trace must have for these source ids and decoder inputs; the model has eager attention."""
    recorder = Recorder(model)
    with torch.inference_mode():
        options = {"attention_mask": torch.tensor([mask])} if mask else {}
        model(torch.tensor([ids]), decoder_input_ids=torch.tensor([target]), use_cache=False, **options)
    found: dict[str, torch.Tensor] = {}
    mask_of_keys = torch.tensor(mask or [1] * len(ids), dtype=torch.float32)
    stack("encoder", model, recorder, torch.tensor(ids), mask_of_keys, found)
    steps: dict[str, torch.Tensor] = {}
    stack("decoder", model, recorder, torch.tensor(target), mask_of_keys, steps)
    for name, tensor in steps.items():
        for step in range(len(target)):
            found[name.replace("decoder", f"decoder.steps.{step}", 1)] = of_step(name, tensor, step)
    if hasattr(model, "classifier"):
        found["classifier.pooled"], found["classifier.logits"] = (
            side["classifier"] for side in (recorder.inputs, recorder.outputs)
        )
    else:
        for step, logits in enumerate(recorder.outputs["lm_head"][0]):
            found[f"decoder.steps.{step}.logits"] = logits
    return {name: tensor.numpy() for name, tensor in found.items()}


def of_step(name: str, tensor: torch.Tensor, step: int) -> torch.Tensor:
    """The part of a tensor over all target tokens that the pass with a cache computes at one of them."""
    part = name.rpartition(".")[2]
    is_causal = "self_attention" in name
    if part in ("key", "value"):
        return tensor[:, : step + 1] if is_causal else tensor
    if part == "mask":
        return tensor[step : step + 1, : step + 1] if is_causal else tensor[step : step + 1]
    if part in ("query", "scores", "weights"):
        row = tensor[:, step : step + 1]
        return row[..., : step + 1] if is_causal and part != "query" else row
    return tensor[step : step + 1]


def stack(side: str, model, recorder: Recorder, ids, mask_of_keys, found: dict[str, torch.Tensor]) -> None:
    base = model.model
    coder, inputs = getattr(base, side), recorder.inputs
    at, outputs = f"model.{side}", {name: one for name, one in recorder.outputs.items() if name.startswith("model")}
    scaled = outputs[f"{at}.embed_tokens"][0]
    output = outputs[f"{at}.embed_positions"][0]
    embedding = {"rows": coder.embed_tokens.weight.detach()[ids], "scaled": scaled, "positions": output - scaled}
    found |= {f"{side}.embedding.{name}": one for name, one in {**embedding, "output": output}.items()}
    length = len(ids)
    for number in range(len(coder.layers)):
        layer, name = f"{at}.layers.{number}", f"{side}.layers.{number}"
        for attention, kind in ATTENTIONS.items():
            if f"{layer}.{attention}" not in outputs:
                continue
            module = getattr(coder.layers[number], attention)
            projected = {
                part: module._split_heads(outputs[f"{layer}.{attention}.{part[0]}_proj"])[0]
                for part in ("query", "key", "value")
            }
            parts = {
                **projected,
                "scores": projected["query"] @ projected["key"].mT / module.head_dim**0.5,
                "weights": outputs[f"{layer}.{attention}"][1][0],
                "heads": inputs[f"{layer}.{attention}.out_proj"][0],
                "output": outputs[f"{layer}.{attention}.out_proj"][0],
                "mask": mask_of_keys.expand(length, -1),
            }
            if side == "decoder" and kind == "self_attention":
                parts["mask"] = torch.ones(length, length).tril()
            found |= {f"{name}.{kind}.{part}": tensor for part, tensor in parts.items()}
            found |= residual(f"{layer}.{attention}_residual", f"{name}.{kind}", recorder)
        forward = f"{layer}.feed_forward"
        found[f"{name}.feed_forward.hidden"] = inputs[f"{forward}.fc2"][0]
        found[f"{name}.feed_forward.output"] = outputs[f"{forward}.fc2"][0]
        found |= residual(f"{forward}_residual", f"{name}.feed_forward", recorder)
    found[f"{side}.output"] = outputs[at].last_hidden_state[0]
    if coder.final_norm is not None:
        found[f"{side}.norm"] = outputs[f"{at}.final_norm"][0]


def residual(module: str, name: str, recorder: Recorder) -> dict[str, torch.Tensor]:
    norms = (f"{module}.pre_norm", f"{module}.post_norm")
    (norm,) = (recorder.outputs[one] for one in norms if one in recorder.outputs)
    before, after = recorder.inputs[f"{module}.before"], recorder.outputs[f"{module}.after"]
    return {f"{name}.{part}": one[0] for part, one in {"before": before, "norm": norm, "after": after}.items()}
