"""What the chain from text without translations adds to the package: a fast loop, wider layers, cleaned captions."""

import gzip
from pathlib import Path

import pytest
import torch
from shared import tiny_config
from torch import nn

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.inference.folder import load_tokenizer
from hf_vanilla_transformer.tokenizer import train_tokenizer


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


def test_the_loss_by_rows_is_that_of_all_logits():
    """And so are its gradients, to bfloat16's rounding."""
    from one_core import SmoothedLoss

    torch.manual_seed(0)
    hidden, weight, bias = torch.randn(600, 32), torch.randn(100, 32) / 6, torch.randn(100)
    labels, inputs = torch.randint(100, (600,)), [one.requires_grad_() for one in (hidden, weight, bias)]
    loss = SmoothedLoss.apply(*inputs, labels, 0.1)
    found = torch.autograd.grad(loss, inputs)
    logits = hidden @ weight.T + bias
    expected = nn.functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=2e-3, atol=0)
    for one, other in zip(found, torch.autograd.grad(expected, inputs), strict=True):
        assert (one - other).norm() < 0.01 * other.norm()


def test_pooled_dropout_is_dropout():
    from one_core import PooledDropout

    torch.manual_seed(0)
    ones, pools = torch.ones(200, 300), []
    dropout = PooledDropout(pools)
    for rate in (0.3, 0.2):
        dropped = dropout(ones, p=rate, training=True)
        assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - rate)])
        assert dropped.mean() == pytest.approx(1, abs=0.01)
    again = PooledDropout(pools)(ones, p=0.3, training=True)  # of the first list, from another place on
    assert len(pools) == 2 and again.max() == pytest.approx(1 / 0.7) and not torch.equal(again, dropped)
    assert dropout(ones, p=0.3, training=False) is ones and dropout(ones, p=0.0, training=True) is ones


def test_small_updates_add_up(started):
    """In bfloat16 alone, a thousandth of a thousandth is lost each time."""
    from one_core import MasterAdamW

    weight = nn.Parameter(torch.ones(8, dtype=torch.bfloat16))
    optimizer = MasterAdamW([weight], lr=1e-4, weight_decay=0.0)
    for _ in range(200):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
        optimizer.zero_grad()
    assert weight.tolist() == pytest.approx([0.98] * 8, abs=2e-3) and weight.grad is None


def test_the_loop_learns_and_its_record_is_that_of_a_run(started, tmp_path, monkeypatch):
    import one_core

    from hf_vanilla_transformer.hub.record import read_file

    pools, pooled_dropout = [], one_core.PooledDropout
    monkeypatch.setattr(one_core, "PooledDropout", lambda _: pooled_dropout(pools))
    arguments = ["--model", started / "model", "--data", started, "--output_dir", tmp_path / "out", "--updates", 60]
    one_core.main([*map(str, [*arguments, "--rate", 1e-2, "--warmup", 5, "--max_tokens", 400, "--dropout", 0.01])])
    assert len(pools) == 2 + 10 + 6  # of the embeddings, the sub-layers and the attention probabilities
    losses = []
    ids = load_tokenizer(str(tmp_path / "out"))(["a k", "j t"], return_tensors="pt")["input_ids"]
    for folder in (started / "model", tmp_path / "out"):
        model = VanillaTransformerForConditionalGeneration.from_pretrained(folder).eval()
        losses.append(model(input_ids=ids, labels=ids).loss.item())
    assert losses[1] < losses[0] - 0.3
    assert model.config.dropout == model.config.embedding_dropout == 0.01
    run = read_file(tmp_path / "out" / "run.json")
    assert run["data"]["train"]["rows"] == 100 and run["began_as"]["recipe"] == {"seed": 1}
    assert read_file(tmp_path / "out" / "recipe.yaml")["updates"] == 60


def test_sampled_translations_are_of_their_lines(started, tmp_path):
    """A line each; from the most probable token alone, what greedy search writes; the seed decides the rest."""
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    import sample_translations

    from hf_vanilla_transformer import Translator, export

    export(str(started / "model"), output_dir=str(tmp_path / "export"), format="ctranslate2")
    lines = ["a k", "", "j t b", "c l"]
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))

    def sampled(top_k: int, seed: int) -> list[str]:
        flags = ["--model", tmp_path / "export", "--file", tmp_path / "lines", "--output", tmp_path / "sampled"]
        sample_translations.main([*map(str, [*flags, "--top_k", top_k, "--seed", seed])])
        return (tmp_path / "sampled").read_text().splitlines()

    greedy = Translator(str(tmp_path / "export"), num_beams=1)(lines)
    assert sampled(1, 1) == [" ".join(translation.split()) for translation in greedy]
    assert sampled(40, 1) == sampled(40, 1) != sampled(40, 2)


def test_a_wider_model_computes_the_same(started, tmp_path):
    import widen

    folders = ["--model", str(started / "model"), "--output_dir", str(tmp_path / "wide")]
    widen.main([*folders, "--ffn_dim", "50", "--encoder_layers", "3"])
    models = [
        VanillaTransformerForConditionalGeneration.from_pretrained(folder).eval()
        for folder in (started / "model", tmp_path / "wide")
    ]
    config = models[1].config
    assert (config.encoder_ffn_dim, config.encoder_layers, config.dropout) == (50, 3, 0.15)
    ids = torch.tensor([[5, 6, 7, 3]])
    torch.testing.assert_close(*(model(input_ids=ids, labels=ids).logits for model in models))


def test_captions_are_kept_that_are_written_like_the_pairs(tmp_path):
    import clean_captions

    pairs = "Ein Hund spielt.\nEin Mann und ein Hund.\n" * 10
    captions = [
        *("Der Hund spielt.", "Der hund spielt.", "Der Hund spielt", "der Hund spielt."),
        *("Der Hund spielt.", "Hund und Katze."),
    ]
    for name, text in (("pairs", pairs), ("captions", "\n".join(captions))):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    flags = {"--pairs": "pairs", "--file": "captions", "--output": "kept"}
    clean_captions.main([word for flag, name in flags.items() for word in (flag, str(tmp_path / name))])
    assert Path(tmp_path / "kept").read_text().splitlines() == ["Der Hund spielt.", "Hund und Katze."]


def test_pairs_and_captions_are_one_text(tmp_path):
    import more_pairs

    for language in ("de", "en"):
        (tmp_path / f"train.{language}.gz").write_bytes(gzip.compress(f"{language} a\n{language} b\n".encode()))
    written = {
        "one.de": ["Hund.", "Hund.", "Katze.", "", "Maus."],
        "one.en": ["dog.", "dog.", "catcatcat.", "x", "mouse."],
        "kept": ["Hund.", "Katze."],
    }
    for name, lines in written.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    flags = [
        "--multi30k",
        tmp_path,
        "--source_column",
        "en",
        "--target_column",
        "de",
        "--output_dir",
        tmp_path / "all",
    ]
    flags += ["--files", tmp_path / "one.en", tmp_path / "one.de", "--kept", tmp_path / "kept", "--times", 2]
    more_pairs.main([*map(str, flags)])
    source, target = ((tmp_path / "all" / f"train.{side}").read_text().splitlines() for side in ("source", "target"))
    assert source == ["en a", "en b"] * 2 + ["dog."] and target == ["de a", "de b"] * 2 + ["Hund."]
