"""`vanilla-transformer train-classifier`: what a run leaves, what its settings do, what is refused."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from shared import QUIET, ROOT, RUN_FILES, TINY, TWO_STEPS, read_json
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.evaluation.metrics import classification_report
from hf_vanilla_transformer.settings.reading import read_settings
from hf_vanilla_transformer.training.classifier import GROUPS, headline, train_classifier


QUICK = [*TWO_STEPS, "--vocab_size", "1500", *TINY]
SMALL_RUN = ["--max_steps", "2", "--save_strategy", "epoch", "--eval_strategy", "epoch"]
SMALL_RUN += ["--vocab_size", "40", *TINY, *QUIET]
NSMC_SMALL = str(ROOT / "model_cards/nsmc-small")


def test_a_run_says_where_it_goes_what_it_reached_and_what_comes_next(succeed, refused, here):
    lines = succeed("train-classifier", "sample", *QUICK).splitlines()
    assert set(os.listdir("runs/sample")) >= RUN_FILES
    assert "runs/sample is not empty" in refused("train-classifier", "sample", *QUICK)
    assert lines[0] == "rows: train 510, validation 90, test 120"
    assert lines[1] == "labels of train: negative 255 (50%), positive 255 (50%)"
    assert lines[2].startswith("length: median ") and lines[2].endswith(" reach the limit, 64")
    parameters = read_json(Path("runs/sample/run.json"))["parameters"]
    assert lines[3] == f"model: {parameters:,} parameters" and lines[4] == "The result goes to runs/sample"
    accuracy = read_json(Path("runs/sample/metrics.json"))["test"]["accuracy"]
    assert [line for line in lines if line.startswith(f"test accuracy: {accuracy:.4f}")]
    assert lines[-2].endswith("echo 'TEXT' | vanilla-transformer predict --model runs/sample")


@pytest.mark.parametrize("other", [0, 1])
def test_a_model_that_answers_one_label_alone_is_told(other):
    answers = np.eye(2)[[0, 0, other]]
    report = classification_report(answers, np.array([0, 1, 1]), ["a", "b"])
    told = "The model answers a to every text of test: it has learned nothing from 90 texts."
    assert (told in headline(report, 90, "single_label_classification")) == (other == 0)


@pytest.mark.parametrize("answers", [[0, 0, 0], [1, 1, 1], [0, 1, 0]])
def test_a_test_split_of_one_label_says_nothing_of_the_others(answers):
    """Neither that the model has learned nothing, nor that the linear model is better."""
    report = classification_report(np.eye(2)[answers], np.zeros(3, dtype=int), ["a", "b"])
    report["baseline"] = {"accuracy": 1.0, "train_rows": 90, "p_value": 1.0}
    text = headline(report, 90, "single_label_classification")
    assert text.splitlines()[-1].startswith("All texts of test have one label:")
    assert "learned nothing" not in text and "linear model is better" not in text
    report["majority"]["share"] = 2 / 3
    better = "linear model is better" in headline(report, 90, "single_label_classification")
    assert better == (report["accuracy"] < 1)


@pytest.mark.slow
def test_epochs_are_measured_on_validation_and_the_vocabulary_is_of_train(succeed, tmp_path):
    """No text of the test split has a say in what is trained or chosen."""
    flags = ["--data", "sample", "--validation_fraction", "0.2", "--output_dir", tmp_path, *QUICK]
    succeed("train-classifier", *flags, "--calibrate", "false")
    metrics = read_json(tmp_path / "metrics.json")
    last = metrics["epochs"][-1]
    assert last["eval_loss"] == pytest.approx(metrics["validation"]["loss"], abs=1e-6)
    assert last["eval_loss"] != pytest.approx(metrics["test"]["loss"], abs=1e-6)
    texts = load_labelled_text("sample", validation_fraction=0.2)["train"]["text"][:]
    vocabulary = train_tokenizer(texts, vocab_size=1500).get_vocab()
    assert AutoTokenizer.from_pretrained(tmp_path).get_vocab() == vocabulary


@pytest.mark.slow
def test_the_weights_are_saved_in_half_the_size_and_load_as_they_were_measured(succeed, tmp_path):
    folder = tmp_path / "run"
    succeed("train-classifier", "--data", "sample", "--output_dir", folder, "--weights_dtype", "float16", *QUICK)
    weights = load_file(folder / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float16}
    # Each tensor is there once, whatever names it has.
    assert sum(weight.numel() for weight in weights.values()) == read_json(folder / "run.json")["parameters"]
    assert read_json(folder / "config.json")["dtype"] == "float32"
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    assert model.dtype == torch.float32
    test = load_labelled_text("sample")["test"]
    inputs = AutoTokenizer.from_pretrained(folder)(test["text"][:], padding=True, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        loss = torch.nn.functional.cross_entropy(model(**inputs).logits, torch.tensor(test["label"]))
    published = read_json(folder / "metrics.json")["test"]["loss"]
    assert loss.item() == pytest.approx(published, abs=1e-6)


def test_a_trained_model_is_fine_tuned_with_new_labels(trained, tmp_path):
    table = tmp_path / "mine.csv"
    rows = [f"영화 {i} 편,{['calm', 'glad', 'sad'][i % 3]}\n" for i in range(90)]
    table.write_text("text,mood\n" + "".join(rows), encoding="utf-8")
    settings = {"max_steps": 2, "save_strategy": "no", "report_to": "none", "disable_tqdm": True}
    settings |= {"data": table, "text_column": "text", "label_column": "mood", "validation_fraction": 0.2}
    settings |= {"model": trained, "config": {"dropout": 0.25}, "attn_implementation": "eager", "max_length": 3}
    run = train_classifier(output_dir=tmp_path / "run", **settings)
    assert run.model.config._attn_implementation == "eager" and run.model.dtype == torch.float32
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert model.config.dropout == 0.25
    assert model.config.id2label == {0: "calm", 1: "glad", 2: "sad"}
    assert model.classifier.out_features == 3
    tokenizer, original = (AutoTokenizer.from_pretrained(folder) for folder in (tmp_path / "run", trained))
    assert tokenizer.get_vocab() == original.get_vocab() and tokenizer.model_max_length == 3


def test_a_classifier_learns_from_other_spacings_and_is_measured_on_them(succeed, tmp_path):
    flags = ["--augment", "spacing", "--robustness", "no_spaces", "all_spaced", "random_spaces"]
    succeed("train-classifier", "sample", "--output_dir", tmp_path / "spaced", *QUICK, *flags)
    test = read_json(tmp_path / "spaced" / "metrics.json")["test"]
    by_name = {one["change"]: one for one in test["robustness"]["changes"]}
    assert by_name["as_written"]["accuracy"] == test["accuracy"]
    assert by_name["all_spaced"]["accuracy"] == by_name["no_spaces"]["accuracy"]  # the same tokens
    assert by_name["all_spaced"]["changed"] == 120


WORDS = {"웃긴": "comedy", "무서운": "horror", "슬픈": "drama"}


@pytest.fixture
def films(tmp_path, monkeypatch) -> Path:
    """Texts with any number of genres, and a rating that counts their words."""
    chosen = [[word for place, word in enumerate(WORDS) if number >> place & 1] for number in range(60)]
    rows = [
        (" ".join([*words, "영화"]), "|".join(WORDS[word] for word in words), len(words) + 0.5) for words in chosen
    ]
    lines = ["text,genres,rating", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "films.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "films.csv"


def test_several_labels_a_text_from_training_to_prediction(succeed, films, tmp_path):
    data = ["--data", films, "--text_column", "text", "--label_column", "genres"]
    kind = ["sample", "--problem_type", "multi_label_classification"]
    out = succeed("train-classifier", *kind, *data, "--output_dir", tmp_path / "run", *SMALL_RUN)
    metrics = read_json(tmp_path / "run/metrics.json")
    assert metrics["best_step"] == max(metrics["epochs"], key=lambda entry: entry["eval_micro_f1"])["step"]
    assert [one["label"] for one in metrics["test"]["per_label"]] == ["comedy", "drama", "horror"]
    assert f"\ntest micro F1: {metrics['test']['micro_f1']:.4f}; a linear model" in out and "\n| comedy |" in out
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert model.config.problem_type == "multi_label_classification"
    model.classifier.weight.data[1] = 0
    model.save_pretrained(tmp_path / "run")
    out = succeed("predict", "--model", tmp_path / "run", stdin="웃긴 영화\n")
    labels, probabilities, text = out.rstrip("\n").split("\t")
    answers = pipeline("text-classification", model=str(tmp_path / "run"))("웃긴 영화", top_k=None)
    expected = {answer["label"]: answer["score"] for answer in answers if answer["score"] > 0.5}
    assert labels == "|".join(label for label in ("comedy", "drama", "horror") if label in expected)
    assert [float(one) for one in probabilities.split("|") if one] == [
        pytest.approx(expected[label], abs=1e-4) for label in labels.split("|") if label
    ]


def test_numbers_from_training_to_prediction(succeed, films, tmp_path):
    data = ["--data", films, "--text_column", "text", "--label_column", "rating"]
    kind = ["sample", "--problem_type", "regression"]
    run_folder = tmp_path / "run"
    out = succeed("train-classifier", *kind, *data, "--output_dir", run_folder, *SMALL_RUN)
    metrics = read_json(run_folder / "metrics.json")
    assert f"\ntest mean absolute error: {metrics['test']['mae']:.4f}; a linear model" in out
    least = min(metrics["epochs"], key=lambda entry: entry["eval_mae"])
    assert least["step"] == metrics["best_step"]

    out = succeed("predict", "--model", run_folder, stdin="웃긴 영화\n")
    (answer,) = pipeline("text-classification", model=str(run_folder), function_to_apply="none")("웃긴 영화")
    assert float(out.split("\t")[0]) == pytest.approx(answer["score"], abs=1e-4) and out.endswith("\t웃긴 영화\n")


def test_a_recipe_leaves_out_what_a_model_or_tokenizer_brings(trained, caplog):
    """The settings of a new model and a new vocabulary; the others of the recipe count."""
    (_, arguments, training), _ = read_settings(GROUPS, "few-rows", {"model": trained}, "train-classifier")
    assert "--model: brings its own, so the recipe's vocab_size, config are left out" in caplog.text
    assert (training.learning_rate, arguments.config) == (3e-4, {})
    (_, arguments, _), _ = read_settings(GROUPS, "few-rows", {"tokenizer": trained}, "train-classifier")
    assert "--tokenizer: brings its own, so the recipe's vocab_size are left out" in caplog.text
    assert arguments.config["d_model"] == 128
