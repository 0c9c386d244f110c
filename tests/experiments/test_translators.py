"""The programs of the translators' chain: each does once what its docstring says."""

import gzip

import clean_captions
import more_pairs
import one_core
import pytest
import torch
import widen
from shared import tiny_config
from torch import nn

from hf_vanilla_transformer import Translator, VanillaTransformerForConditionalGeneration, export
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.hub.record import read_file
from hf_vanilla_transformer.inference.folder import load_tokenizer


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A model with a tokenizer and a record, and pairs: copies."""
    folder = tmp_path_factory.mktemp("more-text")
    lines = [f"{one} {other}" for one in "abcdefghij" for other in "klmnopqrst"]
    for side in ("source", "target"):
        (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines))
    tokenizer = train_tokenizer(lines, vocab_size=60, add_eos=True, max_length=20)
    config = tiny_config(vocab_size=len(tokenizer), max_position_embeddings=20, dropout=0.0)
    torch.manual_seed(0)
    VanillaTransformerForConditionalGeneration(config).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    for file in ("metrics.json", "run.json"):
        (folder / "model" / file).write_text("{}")
    (folder / "model" / "recipe.yaml").write_text("seed: 1\n")
    return folder


def test_the_loss_by_rows_and_its_gradients_are_those_of_all_logits():
    hidden, weight, bias = torch.randn(600, 32), torch.randn(100, 32) / 6, torch.randn(100)
    labels, inputs = torch.randint(100, (600,)), [one.requires_grad_() for one in (hidden, weight, bias)]
    loss = one_core.SmoothedLoss.apply(*inputs, labels, 0.1)
    gradients = torch.autograd.grad(loss, inputs)
    logits = hidden @ weight.T + bias
    expected = nn.functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=2e-3, atol=0)
    for one, other in zip(gradients, torch.autograd.grad(expected, inputs), strict=True):
        assert (one - other).norm() < 0.01 * other.norm()  # bfloat16's rounding


def test_the_loop_learns_and_its_record_is_that_of_a_run(started, tmp_path, monkeypatch):
    monkeypatch.setattr(one_core, "_DRAWN", 2**16)  # fewer random numbers take less time
    arguments = ["--model", started / "model", "--data", started, "--output_dir", tmp_path / "out", "--updates", 60]
    one_core.main([*map(str, [*arguments, "--rate", 1e-2, "--warmup", 5, "--max_tokens", 400, "--dropout", 0.01])])
    ids = load_tokenizer(str(tmp_path / "out"))(["a k", "j t"], return_tensors="pt")["input_ids"]
    losses = []
    for folder in (started / "model", tmp_path / "out"):
        model = VanillaTransformerForConditionalGeneration.from_pretrained(folder).eval()
        losses.append(model(input_ids=ids, labels=ids).loss.item())
    assert losses[1] < losses[0] - 0.3
    assert read_file(tmp_path / "out" / "run.json")["data"]["train"]["rows"] == 100
    assert read_file(tmp_path / "out" / "recipe.yaml")["updates"] == 60


def test_sampled_translations_are_of_their_lines(started, tmp_path):
    """A line each; from the most probable token alone, what greedy search writes."""
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    import sample_translations

    export(str(started / "model"), output_dir=str(tmp_path / "export"), format="ctranslate2")
    lines = ["a k", "", "j t b", "c l"]
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))
    flags = ["--model", tmp_path / "export", "--file", tmp_path / "lines", "--output", tmp_path / "sampled"]
    sample_translations.main([*map(str, [*flags, "--top_k", 1, "--seed", 1])])
    greedy = Translator(str(tmp_path / "export"), num_beams=1)(lines)
    assert (tmp_path / "sampled").read_text().splitlines() == [" ".join((text or "").split()) for text in greedy]


def test_a_wider_model_computes_the_same(started, tmp_path):
    folders = ["--model", str(started / "model"), "--output_dir", str(tmp_path / "wide")]
    widen.main([*folders, "--ffn_dim", "50", "--encoder_layers", "3"])
    models = [
        VanillaTransformerForConditionalGeneration.from_pretrained(folder).eval()
        for folder in (started / "model", tmp_path / "wide")
    ]
    assert (models[1].config.encoder_ffn_dim, models[1].config.encoder_layers) == (50, 3)
    ids = torch.tensor([[5, 6, 7, 3]])
    torch.testing.assert_close(*(model(input_ids=ids, labels=ids).logits for model in models))


def test_captions_are_kept_that_are_written_like_the_pairs(tmp_path):
    pairs = "Ein Hund spielt.\nEin Mann und ein Hund.\n" * 10
    captions = "Der Hund spielt.\nDer hund spielt.\nDer Hund spielt\nDer Hund spielt.\nHund und Katze.\n"
    for name, text in (("pairs", pairs), ("captions", captions)):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    flags = {"--pairs": "pairs", "--file": "captions", "--output": "clean"}
    clean_captions.main([word for flag, name in flags.items() for word in (flag, str(tmp_path / name))])
    assert (tmp_path / "clean").read_text().splitlines() == ["Der Hund spielt.", "Hund und Katze."]


def test_pairs_and_captions_are_one_text(tmp_path):
    for language in ("de", "en"):
        (tmp_path / f"train.{language}.gz").write_bytes(gzip.compress(f"{language} a\n{language} b\n".encode()))
    written = {
        "one.de": ["Hund.", "Hund.", "Katze.", "", "Maus."],
        "one.en": ["dog.", "dog.", "catcatcat.", "x", "mouse."],
        "captions": ["Hund.", "Katze."],
    }
    for name, lines in written.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    flags = ["--multi30k", tmp_path, "--source_column", "en", "--target_column", "de", "--times", 2]
    flags += ["--files", tmp_path / "one.en", tmp_path / "one.de", "--captions", tmp_path / "captions"]
    more_pairs.main([*map(str, flags), "--output_dir", str(tmp_path / "all")])
    source, target = ((tmp_path / "all" / f"train.{side}").read_text().splitlines() for side in ("source", "target"))
    assert source == ["en a", "en b"] * 2 + ["dog."] and target == ["de a", "de b"] * 2 + ["Hund."]
