"""Models side by side: the tests' own figures, what differs, and what cannot be compared."""

import csv

import numpy as np
import pandas as pd
import pytest
import torch
from exports.models import random_model, save
from scipy.stats import binomtest
from shared import ROOT, tiny_config

import hf_vanilla_transformer as vt
from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.comparing import difference_of
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.tokenizer import train_tokenizer


TEXTS = ["가 나", "다 라", "마 바", "사 아", "가 라", "나 다 라", "바 아", "마 가"]


@torch.no_grad()
def center_answers(model) -> None:
    """Have a random model answer some texts one way and some the other, with probabilities of all sizes."""
    logits = model(torch.arange(5, 29).unsqueeze(1)).logits
    weight, states = model.classifier.weight, torch.linalg.pinv(model.classifier.weight)
    middle = (states @ logits.median(dim=0).values).unsqueeze(0)
    weight -= (weight @ middle.T) @ middle / (middle @ middle.T)  # a text like the median one gets 0 for each label
    weight *= 2 / model(torch.arange(5, 29).unsqueeze(1)).logits.std()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two classifiers with the same labels, in another order, and one with others."""
    folder = tmp_path_factory.mktemp("models")
    for name, labels in (("one", "ab"), ("two", "ba"), ("other", "xy")):
        config = tiny_config(id2label=dict(enumerate(labels)), label2id={label: i for i, label in enumerate(labels)})
        torch.manual_seed(len(name))
        model = VanillaTransformerForSequenceClassification(config)
        center_answers(model)
        model.save_pretrained(folder / name)
        train_tokenizer(TEXTS, vocab_size=29, max_length=16).save_pretrained(folder / name)
    save(random_model(tiny_config()), folder / "translator")
    return folder


def test_rows_and_changes_are_those_of_the_models(models, succeed, tmp_path):
    rows = pd.DataFrame({"text": TEXTS * 5, "label": ["a", "b"] * 20})
    one, two = (vt.Classifier(models / name)(rows["text"]) for name in ("one", "two"))
    right = [
        [answer["label"] == label for answer, label in zip(each, rows["label"], strict=True)] for each in (one, two)
    ]
    report = vt.compare([models / "one", models / "two"], data=rows, text_column="text", output_dir=tmp_path / "out")
    assert [row["accuracy"] for row in report["models"]] == [pytest.approx(np.mean(each)) for each in right]
    with open(tmp_path / "out" / "changed.tsv", encoding="utf-8", newline="") as opened:
        header, *changed = csv.reader(opened, delimiter="\t")
    differs = [place for place in range(40) if one[place]["label"] != two[place]["label"]]
    assert sorted(row[-1] for row in changed) == sorted(rows["text"][place] for place in differs) and differs
    probabilities = [float(row[header.index("probability")]) for row in changed]
    assert probabilities == sorted(probabilities, reverse=True)
    files = {"report.md", "comparison.json", "comparison.png", "changed.tsv"}
    assert {file.name for file in (tmp_path / "out").iterdir()} == files
    rows.to_csv(tmp_path / "t.csv", index=False)
    out = succeed("compare", models / "one", models / "two", "--data", tmp_path / "t.csv", "--text_column", "text")
    assert report["differences"][0]["sentence"] in out


def test_a_difference_is_mcnemars_and_a_paired_bootstraps():
    random = np.random.default_rng(0)
    first = random.random(400) < 0.8
    better = first | (random.random(400) < 0.5)
    found = difference_of("new", "old", better, first)
    assert found["p"] == binomtest(found["gained"], found["gained"]).pvalue and found["lost"] == 0
    low, high = found["interval"]
    assert low < found["accuracy"] < high and found["sentence"].startswith("new: better than old by ")
    spread = (better.astype(float) - first).std() / 20
    assert (high - low) / 2 == pytest.approx(1.96 * spread, rel=0.1)
    assert (
        "no difference from old that these 400 rows could show" in difference_of("x", "old", first, first)["sentence"]
    )
    many = difference_of("new", "old", np.tile(better, 50), np.tile(first, 50))
    assert many["interval"] == pytest.approx(
        [many["accuracy"] - 1.96 * spread / 50**0.5, many["interval"][1]], rel=1e-3
    )


def test_translators_are_compared_by_sacrebleu(models, tmp_path):
    pairs = pd.DataFrame({"de": TEXTS, "en": TEXTS})
    columns = {"source_column": "de", "target_column": "en"}
    report = vt.compare([models / "translator"] * 2, data=pairs, **columns, output_dir=tmp_path / "out")
    assert report["differences"][0]["bleu"] == 0 and "no difference" in report["differences"][0]["sentence"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["one"], "two models or more"),
        (["one", "other"], "its labels are x, y; the first model's a, b"),
        (["one", "translator"], "models of one task"),
        (["one", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_compared_is_one_line(models, names, message, refused):
    assert message in refused("compare", *(models / name for name in names), "--data", "sample")
    with pytest.raises(DataError):
        vt.compare([models / name for name in names], data="sample")


def test_a_model_that_learned_from_the_rows_is_refused(models, tmp_path, refused, succeed):
    """Two runs on one file, cut at other rows: whichever is named first would lose."""
    rows = pd.DataFrame({"text": [f"{text} {number}" for number in range(12) for text in TEXTS], "label": [0, 1] * 48})
    rows.to_csv(tmp_path / "t.csv", index=False)
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        settings = {"data": tmp_path / "t.csv", "text_column": "text", "split_seed": seed, "vocab_size": 29}
        tiny = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}
        vt.train_classifier("few-rows", **settings, config=tiny, max_steps=2, output_dir=tmp_path / name, use_cpu=True)
    for first, second in ("ab", "ba"):
        assert f"{second}: its run has cut" in refused("compare", tmp_path / first, tmp_path / second)
    succeed("compare", tmp_path / "a", tmp_path / "c")
    words = [tmp_path / "a", tmp_path / "b", "--data", tmp_path / "new.csv", "--text_column", "text"]
    rows.assign(text=rows["text"] + " 새").to_csv(tmp_path / "new.csv", index=False)
    succeed("compare", *words)
    for flag, value in (("--robustness", "all"), ("--target_accuracy", "0.9"), ("--id_column", "label")):
        assert flag in refused("compare", *words, flag, value)


def test_predict_may_leave_open_and_say_more(models, succeed, refused, tmp_path):
    plain = vt.Classifier(models / "one").probabilities(TEXTS)
    surest = np.sort(plain.max(axis=1).astype(float))
    gap = np.diff(surest).argmax()  # so that no rounding decides
    threshold = float(surest[gap : gap + 2].mean())
    classify = vt.Classifier(models / "one", threshold=threshold, unsure_label="?")
    expected = ["?" if float(row.max()) < threshold else "ab"[row.argmax()] for row in plain]
    assert [answer["label"] for answer in classify(TEXTS)] == expected and 0 < expected.count("?") < len(TEXTS)
    best = vt.Classifier(models / "one")(TEXTS, top_k=None)
    assert [[one["label"] for one in each] for each in best] == [
        ["ab"[place] for place in (-row).argsort()] for row in plain
    ]
    pd.DataFrame({"text": [*TEXTS, " "]}).to_csv(tmp_path / "t.csv", index=False)
    words = ["--model", models / "one", "--file", tmp_path / "t.csv", "--text_column", "text"]
    succeed(
        "predict",
        *words,
        "--threshold",
        threshold,
        "--unsure_label",
        "?",
        "--all_probabilities",
        "--output",
        tmp_path / "o.csv",
    )
    table = pd.read_csv(tmp_path / "o.csv", keep_default_na=False, dtype=str)
    assert table["predicted"].tolist() == [*expected, ""] and table["probability of a"].tolist()[-1] == ""
    assert table["probability of a"].tolist()[:-1] == [f"{row[0]:.4f}" for row in plain]
    top = ["--threshold", threshold, "--top_k", "2", "--output", tmp_path / "top.csv"]
    succeed("predict", *words, *top)
    table = pd.read_csv(tmp_path / "top.csv", keep_default_na=False, dtype=str)
    assert table["predicted"].tolist() == ["" if one == "?" else one for one in [*expected, ""]]
    assert table["predicted 2"].tolist()[:-1] == ["ab"[row.argmin()] for row in plain]
    assert "unsure_label" in refused("predict", *words, "--unsure_label", "?")
    with pytest.raises(DataError, match="threshold: a probability"):
        vt.Classifier(models / "one", threshold="0.9")
    for threshold in ("1.5", "-1"):
        assert "threshold" in refused("predict", *words, "--threshold", threshold)
    assert "--top_k: at least 1" in refused("predict", *words, "--top_k", "0")


def test_a_long_text_is_answered_by_windows():
    folder = ROOT / "model_cards" / "nsmc-small"
    short, long = "정말 재미있고 감동적인 영화", "지루하고 유치했다 " * 60
    cut, windows = vt.Classifier(folder), vt.Classifier(folder, long_texts="windows")
    np.testing.assert_allclose(windows.probabilities([short]), cut.probabilities([short]), atol=1e-6)
    mixed = f"{short} " * 30 + long
    assert cut(mixed)[0]["label"] == "positive" and windows(mixed)[0]["label"] == "negative"
    assert windows.texts_in_windows == 1
    with pytest.raises(DataError, match="cut or windows"):
        vt.Classifier(folder, long_texts="whole")
