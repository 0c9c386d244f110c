"""The benchmarks compare what is alike, and their script leaves its measurements."""

import json
import runpy

import pytest
import torch
from conftest import ROOT, tiny_config

from hf_vanilla_transformer import benchmarks
from hf_vanilla_transformer.baselines import BartClassifier, TorchClassifier, bart_config
from hf_vanilla_transformer.benchmarks import (
    CONTENDERS,
    NAIVE,
    OURS,
    OurClassifier,
    compare_classifiers,
    compare_generation,
    count_flops,
    make_batches,
    make_step,
    matrix_product_rate,
    peak_memory,
    take_turns,
)


CPU = torch.device("cpu")
TEXTS = [list(range(7, 7 + length)) for length in (3, 9, 1, 4, 9, 2, 5)]


@pytest.mark.parametrize("grouped", [True, False])
def test_batches_hold_every_text_once(grouped):
    batches = make_batches(TEXTS, batch_size=2, pad_token_id=0, grouped=grouped)
    rows = [
        row[mask.bool()].tolist()
        for batch in batches
        for row, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]
    assert sorted(rows) == sorted(TEXTS)
    lengths = [batch["input_ids"].shape[1] for batch in batches]
    assert lengths == ([2, 4, 9, 9] if grouped else [9, 4, 9, 5])


def test_a_few_batches_are_spread_over_all_lengths():
    texts = [[7] * length for length in range(1, 41)]
    batches = make_batches(texts, batch_size=2, pad_token_id=0, grouped=True, number=4)
    assert [batch["input_ids"].shape[1] for batch in batches] == [6, 16, 26, 36]
    assert len(make_batches(texts, batch_size=2, pad_token_id=0, grouped=True, number=99)) == 20


@pytest.mark.parametrize("baseline", [BartClassifier, TorchClassifier])
def test_baselines_are_as_large_and_as_much_work(baseline):
    """But for keys and values of the source, which ours leaves out for a single query, unless somebody waits."""
    config = tiny_config(vocab_size=50, d_model=32, encoder_layers=2, decoder_layers=2, activation_function="gelu")
    ours = OurClassifier(config, CPU)
    theirs = baseline(bart_config(config) if baseline is BartClassifier else config)
    batches = make_batches(TEXTS, batch_size=4, pad_token_id=0, grouped=True)
    for train in (True, False):
        assert count_flops(ours, batches, train) < 0.9 * count_flops(theirs, batches, train)
    for name, module in ours.named_modules():
        if name.endswith("encoder_attn.k_proj"):
            module.register_forward_hook(lambda *args: None)
    for train in (True, False):
        assert count_flops(theirs, batches, train) == pytest.approx(count_flops(ours, batches, train), rel=0.03)
    layers = [
        sum(weight.numel() for name, weight in model.named_parameters() if "layers" in name)
        for model in (ours, theirs)
    ]
    assert layers[0] == layers[1]


@pytest.mark.parametrize("name", CONTENDERS)
def test_a_training_step_moves_every_layer(name):
    model = CONTENDERS[name].make(tiny_config(), CPU)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    make_step(model, torch.float32, CPU, train=True)(make_batches(TEXTS, 7, 0, grouped=True)[0])
    moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
    assert {name for name in before if name.endswith("fc1.weight") or name.endswith("linear1.weight")} <= moved


def test_each_way_has_its_turns():
    taken = []
    ways = {name: lambda name=name: taken.append(name) for name in "abc"}
    seconds = take_turns(ways, 3, CPU)
    assert "".join(taken) == "abccbaabc"
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3, "c": 3}


def test_rates_are_those_of_the_median_turn(monkeypatch):
    monkeypatch.setattr(benchmarks, "take_turns", lambda ways, *_: {name: [0.5, 4.0, 1.0] for name in ways})
    settings = {"batch_size": 7, "batches": 1, "rounds": 3, "device": CPU, "train": False, "names": [OURS]}
    row = compare_classifiers(tiny_config(), TEXTS, limits={"float32": 1e9, "bfloat16": 1e9}, **settings)[0]
    assert (row["texts_per_second"], row["real_tokens"]) == (7.0, 33 / 63)
    assert row["share_of_limit"] == row["flops_per_second"] / 1e9 > 0
    config = tiny_config(activation_function="relu", position_offset=0)
    rows = compare_generation(config, batch_size=3, source_length=5, new_tokens=6, rounds=1, device=CPU)
    assert [one["tokens_per_second"] for one in rows] == [18.0, 18.0]
    assert matrix_product_rate(torch.float32, CPU) == 2 * 2048**3 / 0.5


def test_marian_writes_the_same_tokens():
    config = tiny_config(activation_function="relu", position_offset=0)
    rows = compare_generation(config, batch_size=3, source_length=5, new_tokens=6, rounds=1, device=CPU)
    assert [row["same"] for row in rows] == [True, True]


def test_peak_memory_grows_with_the_model():
    batches = make_batches(TEXTS, 7, 0, grouped=True)
    peaks = [peak_memory(tiny_config(vocab_size=size), OURS, "float32", batches, CPU) for size in (100, 500_000)]
    # Weights, gradients and the optimizer's two moments.
    assert peaks[1] - peaks[0] > 3 * 500_000 * tiny_config().d_model * 4


def test_the_texts_are_drawn_by_the_seed():
    script = runpy.run_path(str(ROOT / "scripts/benchmark.py"))
    drawn = [
        script["draw_texts"](script["BenchmarkArguments"]("nowhere", seed=seed), tiny_config(vocab_size=2000))
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2] and sorted(drawn[0]) == sorted(drawn[2])


def test_the_script_leaves_its_measurements(run, tmp_path):
    config = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "encoder_layers": 1, "decoder_layers": 1}
    status, out, err = run(
        "benchmark.py",
        *("--output_dir", tmp_path / "run", "--texts", "6", "--batch_size", "3", "--rounds", "1", "--device", "cpu"),
        *("--tasks", "training", "inference", "curves", "--config", json.dumps(config)),
    )
    assert status == 0, err
    report = json.loads((tmp_path / "run" / "benchmark.json").read_text())
    assert not {"generation", "memory"} & report.keys()
    for task in ("training", "inference"):
        assert {row["name"] for row in report[task]} == set(CONTENDERS)
        assert all(row["texts_per_second"] > 0 for row in report[task])
        ours = {row["dtype"]: row["texts_per_second"] for row in report[task] if row["name"] == OURS}
        assert all(row["times_ours"] == row["texts_per_second"] / ours[row["dtype"]] for row in report[task])
        assert f"| {NAIVE} | float32 |" in out
    assert {axis: len(points) for axis, points in report["curves"].items()} == {
        "length": 10,
        "batch_size": 6,
        "depth": 8,
    }
    assert (tmp_path / "run" / "benchmark.png").stat().st_size > 10_000

    config["vocab_size"] = 1000
    arguments = ["--texts", "6", "--batch_size", "3", "--rounds", "1", "--device", "cpu", "--tasks", "inference"]
    arguments += ["--config", json.dumps(config), "--contenders", NAIVE, "--output_dir", tmp_path / "two"]
    assert run("benchmark.py", *arguments)[0] == 0
    report = json.loads((tmp_path / "two" / "benchmark.json").read_text())
    assert {row["name"] for row in report["inference"]} == {OURS, NAIVE}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "0"], "--rounds"),
        (["--tasks", "training", "speed"], "not speed"),
        (["--contenders", NAIVE, "GPT"], "not GPT"),
        (["--device", "banana"], "not banana"),
        (["--config", "{"], "--config"),
        (["--preset", "bert"], "no preset 'bert'"),
    ],
)
def test_the_script_refuses_with_one_line(run, tmp_path, arguments, message):
    status, _, err = run("benchmark.py", "--output_dir", tmp_path / "run", *arguments)
    assert status == 2 and message in err.splitlines()[-1]
