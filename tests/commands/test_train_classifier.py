"""`vanilla-transformer train-classifier`: what a run leaves, what its settings do, what is refused."""

import csv
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from shared import QUIET, ROOT, RUN_FILES, TINY, TWO_STEPS, error_line
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from hf_vanilla_transformer.commands.classifier import headline
from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.metrics import classification_report
from hf_vanilla_transformer.tokenizer import train_tokenizer


QUICK = [*TWO_STEPS, "--vocab_size", "1500", *TINY]
NSMC_SMALL = str(ROOT / "model_cards/nsmc-small")


def test_a_run_leaves_a_complete_folder(trained):
    assert {file.name for file in trained.iterdir()} >= RUN_FILES
    metrics = json.loads((trained / "metrics.json").read_text())
    assert [entry["epoch"] for entry in metrics["epochs"]] == [1, 2]
    for split, rows in (("train", 510), ("validation", 90), ("test", 120)):
        report = metrics[split]
        assert report["rows"] == rows == sum(map(sum, report["confusion_matrix"]))
        assert report["accuracy"] == (report["confusion_matrix"][0][0] + report["confusion_matrix"][1][1]) / rows
    record = json.loads((trained / "run.json").read_text())
    assert record["data"]["train"]["rows"] == 510
    assert record["versions"].keys() >= {"torch", "transformers"}


def test_the_published_accuracy_is_the_saved_models(trained):
    """The model in the folder, asked anew, gets the test split's figure."""
    test = load_labelled_text("sample")["test"]
    answers = pipeline("text-classification", model=str(trained))(test["text"][:], batch_size=32)
    names = test.features["label"].names
    right = sum(answer["label"] == names[label] for answer, label in zip(answers, test["label"], strict=True))
    assert right / len(test) == json.loads((trained / "metrics.json").read_text())["test"]["accuracy"]


def test_a_run_says_where_it_goes_what_it_reached_and_what_comes_next(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    status, rehearsed, err = run("train-classifier", "sample", *QUICK, "--dry_run")
    assert status == 0 and not os.path.exists("runs"), err
    *facts, training, left, end = rehearsed.splitlines()
    assert facts[:2] == [
        "rows: train 510, validation 90, test 120",
        "labels of train: negative 255 (50%), positive 255 (50%)",
    ]
    assert re.fullmatch(r"training: 2 updates of \S+ seconds, \d+\.\d minutes in all, without evaluations", training)
    assert left.startswith("runs/sample would get the model (") and end == "Nothing was written there."
    status, out, _ = run("train-classifier", "sample", *QUICK)
    assert status == 0 and set(os.listdir("runs/sample")) >= RUN_FILES
    status, _, err = run("train-classifier", "sample", *QUICK, "--dry_run")
    assert status == 2 and "runs/sample is not empty" in err
    folder = "runs/sample"
    lines = out.strip().splitlines()
    assert lines[0] == f"The result goes to {folder}" and lines[2 : 2 + len(facts)] == facts
    assert re.fullmatch(r"test accuracy: 0\.\d{4}", lines[-5])
    assert lines[-4].startswith("The model answers positive to every text of test")  # after two updates
    assert lines[-3].startswith(f"{folder}: the model")
    assert lines[-2].endswith(f"vanilla-transformer predict --model {folder} --file texts.txt")
    assert lines[-1].endswith(f"vanilla-transformer push-to-hub {folder} --repo_id USER/NAME --dry_run")


@pytest.mark.parametrize("other", [0, 1])
def test_a_model_that_answers_one_label_alone_is_told(other):
    answers = np.eye(2)[[0, 0, other]]
    report = classification_report(answers, np.array([0, 1, 1]), ["a", "b"])
    told = "The model answers a to every text of test: it has learned nothing from 90 texts."
    assert (told in headline(report, 90, "single_label_classification")) == (other == 0)


@pytest.mark.slow
def test_epochs_are_measured_on_validation_and_the_vocabulary_is_of_train(run, tmp_path):
    """No text of the test split has a say in what is trained or chosen."""
    flags = ["--data", "sample", "--validation_fraction", "0.2", "--output_dir", tmp_path, *QUICK]
    assert run("train-classifier", *flags)[0] == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    last = metrics["epochs"][-1]
    assert last["eval_loss"] == pytest.approx(metrics["validation"]["loss"], abs=1e-6)
    assert last["eval_loss"] != pytest.approx(metrics["test"]["loss"], abs=1e-6)
    texts = load_labelled_text("sample", validation_fraction=0.2)["train"]["text"][:]
    vocabulary = train_tokenizer(texts, vocab_size=1500).get_vocab()
    assert AutoTokenizer.from_pretrained(tmp_path).get_vocab() == vocabulary


@pytest.mark.slow
def test_a_new_model_is_drawn_by_the_seed(run, tmp_path):
    heads = {}
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        flags = [*QUICK, "--max_steps", "1", "--learning_rate", "0", "--seed", str(seed)]
        status, _, err = run("train-classifier", "--data", "sample", "--output_dir", tmp_path / name, *flags)
        assert status == 0, err
        heads[name] = load_file(tmp_path / name / "model.safetensors")["classifier.weight"]
        assert json.loads((tmp_path / name / "run.json").read_text())["seed"] == seed
    assert torch.equal(heads["one"], heads["again"]) and not torch.equal(heads["one"], heads["other"])


@pytest.mark.slow
def test_the_weights_are_saved_in_half_the_size_and_load_as_they_were_measured(run, tmp_path):
    sizes = {}
    for dtype in ("float32", "float16"):
        folder = tmp_path / dtype
        arguments = ["--data", "sample", "--output_dir", folder, "--weights_dtype", dtype, *TWO_STEPS]
        assert run("train-classifier", *arguments, "--config", '{"encoder_layers": 1}')[0] == 0
        sizes[dtype] = (folder / "model.safetensors").stat().st_size
        weights = load_file(folder / "model.safetensors")
        assert {weight.dtype for weight in weights.values()} == {getattr(torch, dtype)}
        # Each tensor is there once, whatever names it has.
        parameters = json.loads((folder / "run.json").read_text())["parameters"]
        assert sum(weight.numel() for weight in weights.values()) == parameters
        assert json.loads((folder / "config.json").read_text())["dtype"] == "float32"
    assert 1.9 < sizes["float32"] / sizes["float16"] < 2.1

    model = AutoModelForSequenceClassification.from_pretrained(folder)
    assert model.dtype == torch.float32
    test = load_labelled_text("sample")["test"]
    inputs = AutoTokenizer.from_pretrained(folder)(test["text"][:], padding=True, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        loss = torch.nn.functional.cross_entropy(model(**inputs).logits, torch.tensor(test["label"]))
    published = json.loads((folder / "metrics.json").read_text())["test"]["loss"]
    assert loss.item() == pytest.approx(published, abs=1e-6)


@pytest.mark.slow
def test_evaluation_in_half_precision_does_not_round_what_is_saved(run, tmp_path):
    arguments = [
        "--data",
        "sample",
        "--output_dir",
        tmp_path,
        "--weights_dtype",
        "float16",
        "--bf16_full_eval",
        "true",
    ]
    assert run("train-classifier", *arguments, *QUICK)[0] == 0
    weights = load_file(tmp_path / "model.safetensors")
    assert any((weight.to(torch.bfloat16) != weight).any() for weight in weights.values())
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "float32"


@pytest.mark.slow
def test_a_run_that_gets_no_better_stops_early(run, tmp_path):
    """A model that cannot learn, at a learning rate of nothing, is no better after its first epoch."""
    status, _, _ = run(
        "train-classifier",
        *("sample", "--output_dir", tmp_path / "run", "--disable_tqdm", "true"),
        *("--learning_rate", "0", "--num_train_epochs", "9", "--early_stopping_patience", "2", *TINY),
    )
    assert status == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert [entry["epoch"] for entry in metrics["epochs"]] == [1, 2, 3]
    assert metrics["best_step"] == metrics["epochs"][0]["step"]


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_end(run, trained, tmp_path):
    interrupted = tmp_path / "interrupted"
    interrupted.mkdir()
    first = min(trained.glob("checkpoint-*"), key=lambda folder: int(folder.name.rsplit("-")[-1]))
    (interrupted / first.name).symlink_to(first)
    status, out, _ = run(
        "train-classifier",
        *("sample", "--output_dir", interrupted),
        *("--num_train_epochs", "2", "--save_total_limit", "3", "--resume_from_checkpoint"),
    )
    assert status == 0
    whole, resumed = (json.loads((folder / "metrics.json").read_text()) for folder in (trained, interrupted))
    assert resumed["epochs"][-1]["eval_loss"] == pytest.approx(whole["epochs"][-1]["eval_loss"], abs=1e-6)
    assert resumed["test"]["confusion_matrix"] == whole["test"]["confusion_matrix"]
    records = [json.loads((folder / "run.json").read_text()) for folder in (trained, interrupted)]
    assert [record["resumed_from"] for record in records] == [None, first.name]
    assert f" from {first.name} on, seed" in (interrupted / "README.md").read_text()


def test_a_checkpoint_of_another_model_is_refused(run, trained, tmp_path):
    checkpoint = next(iter(trained.glob("checkpoint-*")))
    status, _, err = run(
        "train-classifier",
        *("sample", "--output_dir", tmp_path / "run"),
        *("--config", '{"d_model": 32}', "--resume_from_checkpoint", checkpoint),
    )
    assert status == 2 and "Traceback" not in err
    assert f"{checkpoint.name}: a checkpoint of another model" in err.splitlines()[-1]


def test_a_trained_model_is_fine_tuned_with_new_labels(run, trained, tmp_path):
    table = tmp_path / "mine.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "mood"])
        writer.writerows([[f"영화 {i} 편", ["calm", "glad", "sad"][i % 3]] for i in range(90)])
    status, _, _ = run(
        "train-classifier",
        *("--data", table, "--text_column", "text", "--label_column", "mood", "--validation_fraction", "0.2"),
        *("--model", trained, "--output_dir", tmp_path / "run", *TWO_STEPS),
        *("--config", '{"dropout": 0.25}', "--attn_implementation", "eager"),
    )
    assert status == 0
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert model.config.dropout == 0.25
    assert model.config.id2label == {0: "calm", 1: "glad", 2: "sad"}
    assert model.classifier.out_features == 3
    tokenizer, original = (AutoTokenizer.from_pretrained(folder) for folder in (tmp_path / "run", trained))
    assert tokenizer.get_vocab() == original.get_vocab()


@pytest.mark.slow
def test_a_classifier_is_trained_with_the_attention_that_was_asked_for(run, trained, tmp_path, attentions):
    for number, which in enumerate((QUICK, [*TWO_STEPS, "--model", trained])):
        for attention in ("eager", "sdpa"):
            flags = ["--data", "sample", "--attn_implementation", attention, "--max_steps", "1"]
            flags += ["--output_dir", tmp_path / f"{attention}-{number}"]
            assert run("train-classifier", *which, *flags)[0] == 0
    assert attentions == ["eager", "sdpa"] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "is_new"),
    [(["positive", "negative"], False), (["bad", "good"], True), (["bad\x1b[31m", "good"], None)],
)
def test_a_head_goes_by_the_names_of_its_labels(run, trained, tmp_path, caplog, labels, is_new):
    """What stands in the first row for one model need not do so for another, or for the data."""
    model = AutoModelForSequenceClassification.from_pretrained(trained)
    before = model.classifier.weight.detach().clone()
    model.config.id2label = dict(enumerate(labels))
    model.config.label2id = {label: number for number, label in enumerate(labels)}
    model.save_pretrained(tmp_path / "before")
    AutoTokenizer.from_pretrained(trained).save_pretrained(tmp_path / "before")
    status, _, err = run(
        "train-classifier",
        *("--data", "sample", "--model", tmp_path / "before", "--output_dir", tmp_path / "run"),
        *(*TWO_STEPS, "--learning_rate", "0"),
    )
    if is_new is None:
        assert status == 2 and r"the name 'bad\x1b[31m' has" in err
        return
    assert status == 0, err
    after = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert after.config.id2label == {0: "negative", 1: "positive"}
    assert torch.equal(after.classifier.weight, before.flip(0)) == (not is_new)
    assert ("knows bad, good; for negative, positive it gets a new head" in caplog.text) == is_new
    assert torch.equal(after.model.encoder.embed_tokens.weight, model.model.encoder.embed_tokens.weight)


@pytest.mark.slow
def test_a_model_is_fine_tuned_in_float32_and_on_one_label_a_text_whatever_it_was(run, trained, tmp_path):
    model = AutoModelForSequenceClassification.from_pretrained(trained, dtype=torch.float16, problem_type="regression")
    model.save_pretrained(tmp_path / "before")
    AutoTokenizer.from_pretrained(trained).save_pretrained(tmp_path / "before")
    status, out, _ = run("predict", "--model", tmp_path / "before", stdin="좋다")
    assert status == 0 and re.fullmatch(r"-?\d+\.\d{4}\|-?\d+\.\d{4}\t좋다\n", out)
    status, _, err = run(
        "train-classifier",
        *("--data", "sample", "--model", tmp_path / "before", "--output_dir", tmp_path / "run", *TWO_STEPS),
    )
    assert status == 0, err
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert (model.dtype, model.config.problem_type) == (torch.float32, None)


@pytest.mark.slow
def test_a_run_keeps_as_many_tokens_of_a_text_as_it_was_told(run, trained, tmp_path):
    """Else what is measured is not what the folder's own tokenizer gives."""
    for number, options in enumerate((["--model", trained], ["--tokenizer", trained])):
        folder = tmp_path / str(number)
        status, _, err = run(
            "train-classifier",
            *("--data", "sample", "--max_length", "3", "--output_dir", folder, *TWO_STEPS, *options),
        )
        assert status == 0, err
        assert AutoTokenizer.from_pretrained(folder).model_max_length == 3
        measured = json.loads((folder / "metrics.json").read_text())["test"]
        status, _, err = run(
            "evaluate",
            *("--model", folder, "--output_dir", tmp_path / f"{number}-again"),
        )
        assert status == 0, err
        again = json.loads((tmp_path / f"{number}-again" / "evaluation.json").read_text())
        assert again["confusion_matrix"] == measured["confusion_matrix"]


@pytest.mark.slow
def test_a_run_without_evaluations_shows_its_training_loss(run, tmp_path):
    status, _, _ = run(
        "train-classifier",
        *(
            "--data",
            "sample",
            "--output_dir",
            tmp_path / "run",
            *QUICK,
            "--eval_strategy",
            "no",
            "--logging_steps",
            "1",
        ),
    )
    assert status == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert [set(entry) for entry in metrics["epochs"]] == [{"epoch", "step", "train_loss"}] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "{}/nowhere"], "nowhere"),
        (["--data", "{}/broken"], "ratings_train.txt, line 3"),
        (["--data", "sample", "--text_column", "review"], "review"),
        (["--data", "sample", "--model", "{}/bart"], "'bart', not 'vanilla_transformer'"),
        (["--data", "sample", "--model", "{}/nowhere"], "nowhere"),
        (
            ["--data", "sample", "--model", "{}/headless", "--config", '{"d_model": 8}'],
            "only the dropout rates can be changed",
        ),
        (["--data", "sample", "--model", "{}/headless", "--config", '{"dropout": 2}'], "`dropout` must be between"),
        (["--data", "sample", "--attn_implementation", "fast"], "fast"),
        (["--data", "sample", "--weights_dtype", "int8"], "--weights_dtype: invalid choice: 'int8'"),
        (["--data", "sample", "--tokenizer", "{}/nowhere"], "nowhere"),
        (["--data", "sample", "--config", '{"d_model": 7}'], "encoder_attention_heads"),
        (["--data", "sample", "--config", '{"d_modle": 8}'], "no such field: d_modle"),
        (["--data", "sample", "--config", '{"vocab_size": 8}'], "less than the tokenizer's"),
        (["--data", "sample", "--config", '{"max_position_embeddings": 8}'], "more than the model's 8 positions"),
        (["--data", "sample", "--early_stopping_patience", "1"], "--load_best_model_at_end"),
        (["--data", "sample", "--early_stopping_patience", "0"], "--early_stopping_patience: at least 1"),
        (["--data", "sample", "--resume_from_checkpoint", "{}/bart"], "'bart', not 'vanilla_transformer'"),
        (["--data", "sample", "--config", "[]"], "--config"),
        (["--data", "sample", "--config", "{"], "--config"),
        (["--data", "sample", "--vocab_size", "10"], "vocab_size"),
        (["--vocab_size", "8007", "--model", NSMC_SMALL], "--vocab_size: has no effect with --model"),
        (["--tokenizer_model", "bpe", "--model", NSMC_SMALL], "--tokenizer_model: has no effect with --model"),
        (["--vocab_size", "8007", "--tokenizer", "{}/headless"], "--vocab_size: has no effect with --tokenizer"),
        (["--data", "sample", "--tokenizer_model", "wordpiece"], "wordpiece"),
        (["--data", "sample", "--max_length", "0"], "max_length"),
        (["--data", "sample", "--robustness", "upside_down"], "no such change: upside_down"),
        (["--data", "sample", "--augment", "typos"], "--augment: spacing, typing_slip; not typos"),
        (
            ["--data", "sample", "--output_dir", "{}/full"],
            "full is not empty, and nothing is overwritten: choose another output_dir",
        ),
        (["--data", "sample", "--output_dir", "{}/a-file"], "a-file"),
        (["--data", "sample", "--resume_from_checkpoint"], "no checkpoint"),
        (["--data", "sample", "--resume_from_checkpoint", "{}/nowhere"], "no checkpoint"),
        (
            ["--data", "sample", "--tokenizer", "{}/headless", "--model", NSMC_SMALL],
            "headless gives other ids than",
        ),
        (["--data", "sample", "--config", '{"id2label": {"0": "a"}}'], "the labels are the data's"),
        (["--data", "sample", "--metric_for_best_model", "f2"], "loss, accuracy, f1; not f2"),
        (["--data", "sample", "--report_to", "azure_ml"], "--report_to: AzureMLCallback requires azureml"),
        (["--label_smoothing_factor", "1"], "--label_smoothing_factor: at least 0 and below 1"),
    ],
)
def test_training_refuses_with_one_line(run, faults, arguments, message):
    arguments = [argument.replace("{}", str(faults)) for argument in arguments]
    before = {file for file in faults.rglob("*") if file.is_file()}
    status, _, err = run("train-classifier", *TWO_STEPS, "--output_dir", faults / "new", *arguments)
    assert status == 2 and message in error_line("train-classifier", err)
    assert {file for file in faults.rglob("*") if file.is_file()} == before


@pytest.mark.slow
def test_the_quickstart_fine_tunes_the_ready_made_classifier(run, tmp_path, monkeypatch):
    """Without learning anything it knows the embedded reviews already."""
    assert "train-classifier sample-finetune" in (ROOT / "Makefile").read_text()
    monkeypatch.chdir(ROOT)
    status, _, _ = run(
        "train-classifier",
        *("sample-finetune", "--output_dir", tmp_path / "run", "--max_steps", "1"),
        *("--learning_rate", "0", "--disable_tqdm", "true"),
    )
    assert status == 0
    test = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    published = json.loads((ROOT / "model_cards/nsmc-small/metrics.json").read_text())["test"]
    assert test["accuracy"] > published["accuracy"] - 0.05
    card = (tmp_path / "run" / "README.md").read_text()
    assert "| train | 510 |" in card and "NSMC, dedicated to the public domain" in card and "insults" in card


def test_a_classifier_learns_from_other_spacings_and_is_measured_on_them(run, tmp_path):
    flags = [
        "--augment",
        "spacing",
        "--robustness",
        "no_spaces",
        "all_spaced",
        "random_spaces",
        "--logging_steps",
        "1",
    ]
    losses = {}
    for name, chosen in (("spaced", flags), ("again", flags), ("written", ["--logging_steps", "1"])):
        status, _, err = run("train-classifier", "sample", "--output_dir", tmp_path / name, *QUICK, *chosen)
        assert status == 0, err
        metrics = json.loads((tmp_path / name / "metrics.json").read_text())
        losses[name] = metrics["epochs"][0]["train_loss"]
    assert losses["spaced"] == losses["again"] != losses["written"]
    test = json.loads((tmp_path / "spaced" / "metrics.json").read_text())["test"]
    by_name = {one["change"]: one for one in test["robustness"]["changes"]}
    assert by_name["as_written"]["accuracy"] == test["accuracy"]
    assert by_name["all_spaced"]["accuracy"] == by_name["no_spaces"]["accuracy"]  # the same tokens
    assert by_name["all_spaced"]["changed"] == 120
    card = (tmp_path / "spaced" / "README.md").read_text()
    assert f"| no spaces | {by_name['no_spaces']['changed']} | {by_name['no_spaces']['accuracy']:.4f} |" in card
    assert f"random spaces | | {test['robustness']['mean_of_spacings']:.4f} |" in card
    assert "robustness" not in (tmp_path / "written" / "README.md").read_text()


@pytest.mark.slow
def test_a_resumed_run_changes_texts_as_an_uninterrupted_one(run, tmp_path):
    flags = ["--data", "sample", "--vocab_size", "1500", *TINY, *QUIET, "--augment", "spacing", "typing_slip"]
    flags += ["--max_steps", "6", "--per_device_train_batch_size", "160", "--learning_rate", "1e-3"]
    flags += ["--save_strategy", "steps", "--save_steps", "1"]
    assert run("train-classifier", *flags, "--output_dir", tmp_path / "whole")[0] == 0
    # In the middle of an epoch, which has four updates.
    shutil.copytree(tmp_path / "whole" / "checkpoint-3", tmp_path / "resumed" / "checkpoint-3")
    status, _, err = run("train-classifier", *flags, "--output_dir", tmp_path / "resumed", "--resume_from_checkpoint")
    assert status == 0, err
    whole, resumed = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "resumed"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


WORDS = {"웃긴": "comedy", "무서운": "horror", "슬픈": "drama"}


@pytest.fixture
def films(tmp_path) -> Path:
    """Texts with any number of genres, and a rating that counts their words."""
    chosen = [[word for place, word in enumerate(WORDS) if number >> place & 1] for number in range(60)]
    rows = [
        (" ".join([*words, "영화"]), "|".join(WORDS[word] for word in words), len(words) + 0.5) for words in chosen
    ]
    lines = ["text,genres,rating", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "films.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "films.csv"


SMALL_RUN = [
    "--max_steps",
    "2",
    "--save_strategy",
    "epoch",
    "--eval_strategy",
    "epoch",
    "--vocab_size",
    "40",
    *TINY,
    *QUIET,
]


def test_several_labels_a_text_from_training_to_prediction(run, films, tmp_path):
    data = ["--data", films, "--text_column", "text", "--label_column", "genres"]
    kind = ["sample", "--problem_type", "multi_label_classification"]
    status, out, err = run("train-classifier", *kind, *data, "--output_dir", tmp_path / "run", *SMALL_RUN)
    assert status == 0, err
    assert yaml.safe_load((tmp_path / "run/recipe.yaml").read_text())["metric_for_best_model"] == "micro_f1"
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert [one["label"] for one in metrics["test"]["per_label"]] == ["comedy", "drama", "horror"]
    assert f"\ntest micro F1: {metrics['test']['micro_f1']:.4f}\n" in out and "\ncomedy" in out
    card = (tmp_path / "run/README.md").read_text()
    assert f"| test | Micro F1 | {metrics['test']['micro_f1']:.4f} |" in card and "comedy, drama, horror" in card

    status, out, err = run("evaluate", "--model", tmp_path / "run", "--output_dir", tmp_path / "evaluation")
    assert status == 0, err
    report = json.loads((tmp_path / "evaluation/evaluation.json").read_text())
    assert {name: report[name] for name in ("macro_f1", "exact_match", "per_label")} == {
        name: metrics["test"][name] for name in ("macro_f1", "exact_match", "per_label")
    }
    assert not (tmp_path / "evaluation/reliability.png").exists()

    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert model.config.problem_type == "multi_label_classification"
    model.classifier.weight.data[1] = 0
    model.save_pretrained(tmp_path / "run")
    status, out, _ = run("predict", "--model", tmp_path / "run", stdin="웃긴 영화\n")
    labels, probabilities, text = out.rstrip("\n").split("\t")
    answers = pipeline("text-classification", model=str(tmp_path / "run"))("웃긴 영화", top_k=None)
    expected = {answer["label"]: answer["score"] for answer in answers if answer["score"] > 0.5}
    assert labels == "|".join(label for label in ("comedy", "drama", "horror") if label in expected)
    assert [float(one) for one in probabilities.split("|") if one] == [
        pytest.approx(expected[label], abs=1e-4) for label in labels.split("|") if label
    ]


def test_numbers_from_training_to_prediction(run, films, tmp_path):
    data = ["--data", films, "--text_column", "text", "--label_column", "rating"]
    status, _, err = run("train-classifier", *data, "--output_dir", tmp_path / "asked", *SMALL_RUN)
    assert status == 2 and "'rating' holds 4 different numbers: is problem_type regression" in err
    kind = ["sample", "--problem_type", "regression"]
    run_folder = tmp_path / "run"
    status, _, err = run("train-classifier", *kind, *data, *SMALL_RUN, "--metric_for_best_model", "accuracy")
    assert status == 2 and "--metric_for_best_model: loss, mae" in err
    status, out, err = run("train-classifier", *kind, *data, "--output_dir", run_folder, *SMALL_RUN)
    assert status == 0, err
    assert yaml.safe_load((run_folder / "recipe.yaml").read_text())["metric_for_best_model"] == "mae"
    metrics = json.loads((run_folder / "metrics.json").read_text())
    assert f"\ntest mean absolute error: {metrics['test']['mae']:.4f}\n" in out
    least = min(metrics["epochs"], key=lambda entry: entry["eval_mae"])
    assert least["step"] == metrics["best_step"]
    status, out, err = run("evaluate", "--model", run_folder, "--output_dir", tmp_path / "evaluation")
    assert status == 0, err
    report = json.loads((tmp_path / "evaluation/evaluation.json").read_text())
    assert report["rmse"] == pytest.approx(metrics["test"]["rmse"], abs=1e-5)
    status, out, _ = run("predict", "--model", run_folder, stdin="웃긴 영화\n")
    (answer,) = pipeline("text-classification", model=str(run_folder), function_to_apply="none")("웃긴 영화")
    assert float(out.split("\t")[0]) == pytest.approx(answer["score"], abs=1e-4) and out.endswith("\t웃긴 영화\n")


def test_rare_classes_may_count_as_much_as_frequent_ones(run, films, tmp_path):
    lines = [
        "text,label",
        *(f"좋다 {number},a" for number in range(40)),
        *(f"나쁘다 {number},b" for number in range(8)),
    ]
    (tmp_path / "rare.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    losses = {}
    for weights in ([], ["--class_weights", "balanced"]):
        folder = tmp_path / f"run{len(weights)}"
        data = ["--data", tmp_path / "rare.csv", "--text_column", "text", "--learning_rate", "0"]
        status, _, err = run("train-classifier", *data, *weights, "--output_dir", folder, *SMALL_RUN)
        assert status == 0, err
        losses[bool(weights)] = json.loads((folder / "metrics.json").read_text())["test"]["loss"]
    assert losses[True] != losses[False]
    data = ["--data", films, "--text_column", "text", "--label_column", "rating", "--problem_type", "regression"]
    status, _, err = run("train-classifier", *data, *weights, "--output_dir", tmp_path / "none", *SMALL_RUN)
    assert status == 2 and "--class_weights: only where each text has one class" in err
