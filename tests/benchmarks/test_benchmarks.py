"""Speed and memory: contenders do comparable work, rates follow from the times, the script leaves its measurements."""

import json
from pathlib import Path

import measures
import pytest
import torch
from baselines import BartClassifier, TorchClassifier, bart_config
from exports.models import save, tiny_preset
from measures import CONTENDERS, NAIVE, OURS, OURS_TWICE, count_flops, make_batches
from shared import LINES, read_json, tiny_config
from test_conversion import checkpoint, convert, read
from tutorial import MovieClassification

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration


CPU = torch.device("cpu")
TEXTS = [list(range(7, 7 + length)) for length in (3, 9, 1, 4, 9, 2, 5)]


@pytest.mark.parametrize("baseline", [BartClassifier, TorchClassifier])
def test_baselines_are_as_large_and_as_much_work(baseline):
    """But for keys and values of the source, which ours leaves out for a single query, unless somebody waits."""
    config = tiny_config(vocab_size=50, d_model=32, encoder_layers=2, decoder_layers=2, activation_function="gelu")
    ours = measures.OurClassifier(config, CPU)
    theirs = baseline(bart_config(config) if baseline is BartClassifier else config)
    batches = make_batches(TEXTS, batch_size=4, pad_token_id=0, grouped=True)
    work = {train: count_flops(theirs, batches, train) for train in (True, False)}
    assert all(count_flops(ours, batches, train) < 0.9 * flops for train, flops in work.items())
    for name, module in ours.named_modules():
        if name.endswith("encoder_attn.k_proj"):
            module.register_forward_hook(lambda *args: None)
    assert {train: count_flops(ours, batches, train) for train in work} == pytest.approx(work, rel=0.03)
    one, other = (
        sum(weight.numel() for name, weight in model.named_parameters() if "layers" in name)
        for model in (ours, theirs)
    )
    assert one == other


SIZES = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "encoder_layers": 1, "decoder_layers": 1}
QUICK = ["--texts", "6", "--batch_size", "3", "--rounds", "1", "--device", "cpu"]


@pytest.mark.slow
def test_each_task_leaves_its_measurements(succeed, tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "peak_memory", lambda config, name, *_: 2**20 * (3 if name == NAIVE else 2))
    # A CPU without bfloat16 takes a minute for the product.
    monkeypatch.setattr(measures, "matrix_product_rate", lambda dtype, device: 1e9)
    monkeypatch.setattr(measures, "AXES", {"length": (4, 8), "batch_size": (1, 2), "depth": (1, 2)})
    arguments = ["--output_dir", tmp_path / "run", *QUICK, "--config", json.dumps(SIZES), "--precisions", "float32"]
    out = succeed("benchmarks/benchmark.py", *arguments)
    report = read_json(tmp_path / "run" / "benchmark.json")
    assert report["arguments"]["config"] == SIZES and report["matrix_product_flops_per_second"].keys() == {"float32"}
    for task in ("training", "inference"):
        engine = {measures.OURS_CTRANSLATE2} if task == "inference" else set()
        # Batches of twice as many texts are measured in bfloat16 alone.
        assert {row["name"] for row in report[task]} == {*CONTENDERS, *engine} - {OURS_TWICE}
        assert all(row["texts_per_second"] > 0 for row in report[task])
        ours = {row["dtype"]: row["texts_per_second"] for row in report[task] if row["name"] == OURS}
        modules = [row for row in report[task] if row["name"] in CONTENDERS]
        assert all(row["times_ours"] == row["texts_per_second"] / ours[row["dtype"]] for row in modules)
        assert f"| {NAIVE} | float32 |" in out
    assert f"| {NAIVE} | float32 | 3 | 1.50 |" in out
    assert (tmp_path / "run" / "benchmark.png").stat().st_size > 10_000


@pytest.mark.parametrize("program", ["benchmark_engines", "gpu", "size"])
def test_the_other_programs_have_their_settings(program, succeed):
    """They measure for minutes, or on a GPU: here they are imported."""
    assert "--output_dir" in succeed(f"benchmarks/{program}.py", "--help")


def test_the_logits_are_those_of_the_tutorials_own_code():
    file = "transformer-evolution-classification"
    tensors, weights = read(file), checkpoint(file)
    model = MovieClassification(convert(file).config).eval()
    # One table of positions serves both stacks; the tutorial's have a length each.
    rows = weights["transformer.decoder.pos_emb.weight"]
    torch.testing.assert_close(model.transformer.decoder.pos_emb.weight[: len(rows)], rows)
    weights["transformer.decoder.pos_emb.weight"] = weights["transformer.encoder.pos_emb.weight"]
    model.load_state_dict(weights)
    torch.testing.assert_close(model(tensors["input.src"]), tensors["output.logits"])


def command(folder: Path, preset: str) -> list:
    """The command for a translator with random weights that end each translation at another length."""
    config = tiny_preset(preset)
    config.tie_word_embeddings = False  # it would repeat its last token
    model = VanillaTransformerForConditionalGeneration(config)
    model.lm_head.weight.data *= 4
    model.lm_head.bias.data[config.eos_token_id] += 2
    model.lm_head.bias.data[config.pad_token_id] -= 100  # a trained model writes no pads
    for name in ("train.a", "train.b", "test.a", "test.b"):
        (folder / name).write_text("\n".join(LINES[:13]) + "\n")
    data = ["--data", folder, "--source_column", "a", "--target_column", "b"]
    return ["benchmarks/benchmark_translation.py", "--model", save(model, folder / "model"), *data]


@pytest.mark.parametrize("preset", ["pytorch-seq2seq", "base"])
def test_all_ways_give_the_same_translations(succeed, tmp_path, preset):
    """Of more sentences than a batch holds."""
    settings = ["--rounds", "2", "--batch_size", "4", "--max_new_tokens", "8", "--file", tmp_path / "times.json"]
    assert succeed(*command(tmp_path, preset), *settings).count("tokens/s") == 3
    report = read_json(tmp_path / "times.json")
    assert report["sentences"] == 13 and report["tokens"] > 13
    assert set(report["same_translations"].values()) == {13}
    assert [len(times) for times in report["seconds"].values()] == [2, 2, 2]
