"""scripts/figures.py: its commands run, a model's attention is the model's, refusals."""

import json
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import torch
from matplotlib.image import imread
from shared import ROOT, tiny_config

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.inference.folder import load_model, load_tokenizers


figures = runpy.run_path(str(ROOT / "scripts/figures.py"))
EPOCHS = [{"epoch": e, "train_loss": 1 / e, "eval_loss": 1.1 / e, "eval_accuracy": 1 - 0.5 / e} for e in (1, 2, 3)]
EVALUATION = {
    "bins": [{"confidence": 0.6, "accuracy": 0.5, "rows": 4}, {"confidence": 0.9, "accuracy": 0.8, "rows": 6}],
    "selective": [
        {"threshold": 0.5, "answered": 1.0, "accuracy": 0.7},
        {"threshold": 1, "answered": 0, "accuracy": None},
    ],
    "robustness": {"changes": [{"change": "as_written", "accuracy": 0.7}, {"change": "repeats", "accuracy": 0.6}]},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """Model folders by name, with random weights."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = train_tokenizer(["가 나 다 라", "가나다라 마바사"], vocab_size=29, max_length=16)
    for name, model in {
        "classifier": VanillaTransformerForSequenceClassification(tiny_config()),
        "two-vocabularies": VanillaTransformerForConditionalGeneration(tiny_config(decoder_vocab_size=23)),
    }.items():
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    target_tokenizer = train_tokenizer(["a b c d", "abcd efg"], vocab_size=23, max_length=16)
    target_tokenizer.save_pretrained(folder / "two-vocabularies" / "target_tokenizer")
    (folder / "classifier" / "metrics.json").write_text(json.dumps({"epochs": EPOCHS}))
    (folder / "classifier" / "evaluation.json").write_text(json.dumps(EVALUATION))
    return folder


@pytest.fixture(autouse=True)
def in_the_models_folder(models, monkeypatch):
    monkeypatch.chdir(models)


# The arguments of the commands in the docstring.
COMMANDS = [
    shlex.split(line)[2:]
    for line in figures["__doc__"].replace("\\\n", "").splitlines()
    if line.startswith("    python scripts/figures.py")
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[1])
def test_the_docstrings_commands_run(arguments, succeed, tmp_path):
    assert arguments[arguments.index("--file") + 1].endswith(".png")
    arguments = ["classifier" if argument.startswith("runs/") else argument for argument in arguments]
    succeed("figures.py", *arguments, "--file", tmp_path / "a.png")
    assert imread(tmp_path / "a.png").std() > 0.05


@pytest.mark.parametrize(
    ("model", "kind", "target"),
    [("classifier", "encoder", None), ("classifier", "decoder", "가 나"), ("two-vocabularies", "cross", "ab c")],
)
def test_attention_is_the_models(model, kind, target, succeed, monkeypatch):
    """Of the layer and the head that are asked for, with the tokens in their places."""
    calls = []

    def plot_attention(probabilities, query_tokens, key_tokens, file, title):
        calls.append((probabilities, query_tokens, key_tokens))

    monkeypatch.setattr(sys.modules["paper_plots"], "plot_attention", plot_attention)
    arguments = ["--model", model, "--kind", kind, "--layer", "1", "--text", "가나다라 마바사"]
    arguments += ["--target", target] if target else []
    for flags in ([], ["--head", "2"]):
        succeed("figures.py", "--figure", "attention", *arguments, *flags, "--file", "a.png")
    (all_heads, queries, keys), (head, *_) = calls
    network = load_model(model, attn_implementation="eager").eval()
    of_source, of_target = load_tokenizers(model, network.config)
    ids = torch.tensor([of_source("가나다라 마바사").input_ids])
    decoder_ids = torch.tensor([[network.config.decoder_start_token_id, *of_target(target or "").input_ids]])
    with torch.no_grad():
        outputs = network(ids, decoder_input_ids=decoder_ids, output_attentions=True)
    torch.testing.assert_close(all_heads, outputs[f"{kind}_attentions"][1][0])
    torch.testing.assert_close(head.squeeze(0), all_heads[2])
    source, written = of_source.convert_ids_to_tokens(ids[0]), of_target.convert_ids_to_tokens(decoder_ids[0])
    assert (queries, keys) == (source if kind == "encoder" else written, written if kind == "decoder" else source)


def test_rates_are_the_papers():
    _, rates = figures["noam_rates"]("512:2:40", 100)
    expected = [2 * 512**-0.5 * min(step**-0.5, step * 40**-1.5) for step in range(1, 101)]
    assert rates == pytest.approx(expected, rel=1e-12)
