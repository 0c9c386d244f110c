"""Models compute on the device what they compute on the processor."""

import copy
import itertools
import shutil

import pytest
import torch
from exports.models import CONFIGS, HEADS, random_model
from shared import ROOT, tiny_config
from transformers import AutoTokenizer

from hf_vanilla_transformer import (
    VanillaTransformerEncoderModel,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)


CLASSES = {**HEADS, "encoder-decoder": VanillaTransformerModel, "encoder": VanillaTransformerEncoderModel}
TEXTS = [[7, 8, 9, 10, 3], [11, 12, 3], [13, 3]]
TRANSLATOR = ROOT / "model_cards" / "multi30k-de-en"


def padded(side: str, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids (3, 5) and their mask."""
    longest = max(map(len, TEXTS))
    pads = [[0] * (longest - len(text)) for text in TEXTS]
    rows = [pad + text if side == "left" else text + pad for pad, text in zip(pads, TEXTS, strict=True)]
    ids = torch.tensor(rows, device=device)
    return ids, ids.ne(0).long()


def inputs_of(task: str, side: str, device: torch.device) -> dict[str, torch.Tensor]:
    ids, mask = padded(side, device)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if task == "classification":
        inputs["labels"] = torch.tensor([1, 0, 1], device=device)
    elif task == "translation":
        inputs["labels"] = ids.masked_fill(mask == 0, -100)
    elif task == "encoder-decoder":
        inputs |= {"decoder_input_ids": ids, "decoder_attention_mask": mask}
    return inputs


def model_of(name: str, task: str, attention: str, device: torch.device):
    """A tiny model with random weights, the same on every device."""
    config = CONFIGS[name]()
    config._attn_implementation = attention
    torch.manual_seed(0)
    return (random_model(config, task) if task in HEADS else CLASSES[task](config).eval()).to(device)


def outputs_and_gradients(model, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The outputs at tokens, the loss or the outputs' sum of squares, and every gradient, on the processor."""
    output = model(**inputs)
    values = output[1] if "labels" in inputs else output[0]
    if values.dim() == 3:
        values = values[inputs["attention_mask"] == 1]
    loss = output.loss if "labels" in inputs else values.square().mean()
    loss.backward()
    results = {"outputs": values.detach(), "loss": loss.detach()}
    results |= {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
    return {name: value.float().cpu() for name, value in results.items()}


@pytest.mark.parametrize("task", CLASSES)
@pytest.mark.parametrize("name", [name for name in CONFIGS if name.startswith("preset")])
def test_outputs_loss_and_gradients_are_the_processors(name, task, device):
    for attention, side in itertools.product(["eager", "sdpa"], ["left", "right"]):
        here, there = (
            outputs_and_gradients(model_of(name, task, attention, place), inputs_of(task, side, place))
            for place in (torch.device("cpu"), device)
        )
        assert here.keys() == there.keys() and len(here) > 10
        for part, value in here.items():
            torch.testing.assert_close(there[part], value, rtol=1e-4, atol=1e-4, msg=f"{attention}, {side}: {part}")


# float16 keeps 11 bits of a number and bfloat16 8: a sum of products is wrong by about 2^-11 and 2^-8, and the
# thirty roundings from the ids to the outputs, in independent directions, make it five times that.
BOUNDS = {torch.float16: 5 * 2**-11, torch.bfloat16: 5 * 2**-8}


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("task", HEADS)
@pytest.mark.parametrize("name", ["preset base", "preset transformer-evolution"])
def test_autocast_is_near_float32(name, task, attention, dtype, device):
    model, inputs = model_of(name, task, attention, device), inputs_of(task, "right", device)
    exact = model(**inputs)
    with torch.autocast(device.type, dtype):
        rough = model(**inputs)
    rough.loss.backward()
    logits = rough.logits.float()
    assert (logits - exact.logits).norm() / exact.logits.norm() < BOUNDS[dtype]
    assert abs(rough.loss - exact.loss) < BOUNDS[dtype] * max(1, abs(exact.loss))
    assert not torch.equal(logits, exact.logits)
    assert all(value.grad.isfinite().all() for value in model.parameters())


def kernel_model(task: str, attention: str, device: torch.device):
    """With heads as wide as kernels need them."""
    config = tiny_config(d_model=64, head_dim=16, encoder_layers=1, decoder_layers=1)
    config._attn_implementation = attention
    return random_model(config, task).to(device)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles flex attention with g++")
def test_flex_attention_is_eager_attention(device):
    inputs = inputs_of("translation", "right", device)
    eager, flex = (
        outputs_and_gradients(kernel_model("translation", attention, device), inputs)
        for attention in ("eager", "flex_attention")
    )
    for part, value in eager.items():
        torch.testing.assert_close(flex[part], value, rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    """Fifty German ones."""
    who = ["Ein Mann", "Eine Frau", "Ein kleines Mädchen", "Ein brauner Hund", "Ein Junge mit einer roten Mütze"]
    what = ["steht", "sitzt allein", "spielt mit einem Ball", "läuft schnell", "schläft"]
    where = ["auf der Straße.", "vor einem großen Haus am Wasser."]
    return [" ".join(words) for words in itertools.product(who, what, where)]


@pytest.fixture(scope="module")
def translator():
    """The repository's own, in float32, on the processor."""
    model = VanillaTransformerForConditionalGeneration.from_pretrained(TRANSLATOR, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(TRANSLATOR)


@pytest.mark.slow
@pytest.mark.parametrize(
    "search",
    [
        {"num_beams": 1},
        {"num_beams": 4},
        {"num_beams": 1, "cache_implementation": "static"},
        {"num_beams": 1, "do_sample": True, "top_k": 1},
    ],
    ids=str,
)
def test_fifty_translations_are_the_processors(search, sentences, translator, device):
    model, tokenizer = translator
    inputs = tokenizer(sentences, padding=True, return_tensors="pt")
    expected = model.generate(**inputs, max_new_tokens=30, num_beams=search["num_beams"])
    actual = copy.deepcopy(model).to(device).generate(**inputs.to(device), max_new_tokens=30, **search)
    assert len({tuple(row) for row in expected.tolist()}) > 40
    assert torch.equal(actual.cpu(), expected)


def test_a_model_is_loaded_onto_the_device(device, tmp_path):
    model = model_of("preset transformer-evolution", "classification", "sdpa", torch.device("cpu"))
    model.save_pretrained(tmp_path)
    loaded = VanillaTransformerForSequenceClassification.from_pretrained(tmp_path, device_map="auto")
    assert {value.device.type for value in (*loaded.parameters(), *loaded.buffers())} == {device.type}
    ids, mask = padded("right", device)
    torch.testing.assert_close(
        loaded(ids, mask).logits.cpu(), model(ids.cpu(), mask.cpu()).logits, rtol=1e-4, atol=1e-4
    )
