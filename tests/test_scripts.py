"""The scripts as their users call them: what they leave, what they print, how they refuse."""

import csv
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from accelerate.commands.launch import launch_command_parser
from conftest import ROOT, RUN_FILES, tiny_config
from safetensors.torch import load_file
from torch.distributed.run import get_args_parser
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.hub.upload import repository_files
from hf_vanilla_transformer.inference import class_probabilities, given_texts
from hf_vanilla_transformer.tokenizer import train_tokenizer


# Two steps of a model of no use, in a second or two.
TWO_STEPS = [
    *("--max_steps", "2", "--save_strategy", "no", "--eval_strategy", "epoch", "--load_best_model_at_end", "false"),
    *("--disable_tqdm", "true", "--bf16", "false"),
]
TINY = ["--config", '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}']
QUICK = [*TWO_STEPS, "--vocab_size", "1500", *TINY]
NSMC_SMALL = str(ROOT / "model_cards/nsmc-small")
TINY_TRANSLATOR = '{"d_model": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2}'
REVIEWS = ["정말 재미있고 감동적인 영화", "", "지루하고 유치했다", "​", "최고 " * 400, "그저 그런 영화"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run on the sample, with a checkpoint after each epoch, made by the recipe in a process of its own."""
    folder = tmp_path_factory.mktemp("runs") / "sample"
    subprocess.run(
        [
            *(
                sys.executable,
                ROOT / "scripts/train_classifier.py",
                ROOT / "hf_vanilla_transformer/recipes/sample.yaml",
            ),
            *("--output_dir", folder, "--num_train_epochs", "2", "--save_total_limit", "3"),
        ],
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    return folder


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


def test_the_last_line_is_the_test_accuracy(run, tmp_path):
    status, out, _ = run("train_classifier.py", "--data", "sample", "--output_dir", tmp_path / "run", *QUICK)
    assert status == 0
    assert re.fullmatch(r"test accuracy: 0\.\d{4}", out.strip().splitlines()[-1])


def test_epochs_are_measured_on_validation_and_the_vocabulary_is_of_train(run, tmp_path):
    """No text of the test split has a say in what is trained or chosen."""
    flags = ["--data", "sample", "--validation_fraction", "0.2", "--output_dir", tmp_path, *QUICK]
    assert run("train_classifier.py", *flags)[0] == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    last = metrics["epochs"][-1]
    assert last["eval_loss"] == pytest.approx(metrics["validation"]["loss"], abs=1e-6)
    assert last["eval_loss"] != pytest.approx(metrics["test"]["loss"], abs=1e-6)
    texts = load_labelled_text("sample", validation_fraction=0.2)["train"]["text"][:]
    vocabulary = train_tokenizer(texts, vocab_size=1500).get_vocab()
    assert AutoTokenizer.from_pretrained(tmp_path).get_vocab() == vocabulary


def test_a_new_model_is_drawn_by_the_seed(run, tmp_path):
    heads = {}
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        flags = [*QUICK, "--max_steps", "1", "--learning_rate", "0", "--seed", str(seed)]
        status, _, err = run("train_classifier.py", "--data", "sample", "--output_dir", tmp_path / name, *flags)
        assert status == 0, err
        heads[name] = load_file(tmp_path / name / "model.safetensors")["classifier.weight"]
        assert json.loads((tmp_path / name / "run.json").read_text())["seed"] == seed
    assert torch.equal(heads["one"], heads["again"]) and not torch.equal(heads["one"], heads["other"])


def test_the_weights_are_saved_in_half_the_size_and_load_as_they_were_measured(run, tmp_path):
    sizes = {}
    for dtype in ("float32", "float16"):
        folder = tmp_path / dtype
        arguments = ["--data", "sample", "--output_dir", folder, "--weights_dtype", dtype, *TWO_STEPS]
        assert run("train_classifier.py", *arguments, "--config", '{"encoder_layers": 1}')[0] == 0
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
    assert run("train_classifier.py", *arguments, *QUICK)[0] == 0
    weights = load_file(tmp_path / "model.safetensors")
    assert any((weight.to(torch.bfloat16) != weight).any() for weight in weights.values())
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "float32"


def test_a_run_that_gets_no_better_stops_early(run, tmp_path):
    """A model that cannot learn, at a learning rate of nothing, is no better after its first epoch."""
    status, _, _ = run(
        "train_classifier.py",
        *(
            ROOT / "hf_vanilla_transformer/recipes/sample.yaml",
            "--output_dir",
            tmp_path / "run",
            "--disable_tqdm",
            "true",
        ),
        *("--learning_rate", "0", "--num_train_epochs", "9", "--early_stopping_patience", "2", *TINY),
    )
    assert status == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert [entry["epoch"] for entry in metrics["epochs"]] == [1, 2, 3]
    assert metrics["best_step"] == metrics["epochs"][0]["step"]


def test_an_interrupted_run_goes_on_to_the_same_end(run, trained, tmp_path):
    interrupted = tmp_path / "interrupted"
    interrupted.mkdir()
    first = min(trained.glob("checkpoint-*"), key=lambda folder: int(folder.name.rsplit("-")[-1]))
    (interrupted / first.name).symlink_to(first)
    status, out, _ = run(
        "train_classifier.py",
        *(ROOT / "hf_vanilla_transformer/recipes/sample.yaml", "--output_dir", interrupted),
        *("--num_train_epochs", "2", "--save_total_limit", "3", "--resume_from_checkpoint"),
    )
    assert status == 0
    whole, resumed = (json.loads((folder / "metrics.json").read_text()) for folder in (trained, interrupted))
    assert resumed["epochs"][-1]["eval_loss"] == pytest.approx(whole["epochs"][-1]["eval_loss"], abs=1e-6)
    assert resumed["test"]["confusion_matrix"] == whole["test"]["confusion_matrix"]
    records = [json.loads((folder / "run.json").read_text()) for folder in (trained, interrupted)]
    assert [record["resumed_from"] for record in records] == [None, first.name]
    assert f"went on from {first.name}" in (interrupted / "README.md").read_text()


def test_a_checkpoint_of_another_model_is_refused(run, trained, tmp_path):
    checkpoint = next(iter(trained.glob("checkpoint-*")))
    status, _, err = run(
        "train_classifier.py",
        *(ROOT / "hf_vanilla_transformer/recipes/sample.yaml", "--output_dir", tmp_path / "run"),
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
        "train_classifier.py",
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


def test_a_classifier_is_trained_with_the_attention_that_was_asked_for(run, trained, tmp_path, attentions):
    for number, which in enumerate((QUICK, [*TWO_STEPS, "--model", trained])):
        for attention in ("eager", "sdpa"):
            flags = ["--data", "sample", "--attn_implementation", attention, "--max_steps", "1"]
            flags += ["--output_dir", tmp_path / f"{attention}-{number}"]
            assert run("train_classifier.py", *which, *flags)[0] == 0
    assert attentions == ["eager", "sdpa"] * 2


@pytest.mark.parametrize(("labels", "is_new"), [(["positive", "negative"], False), (["bad", "good"], True)])
def test_a_head_goes_by_the_names_of_its_labels(run, trained, tmp_path, caplog, labels, is_new):
    """What stands in the first row for one model need not do so for another, or for the data."""
    model = AutoModelForSequenceClassification.from_pretrained(trained)
    before = model.classifier.weight.detach().clone()
    model.config.id2label = dict(enumerate(labels))
    model.config.label2id = {label: number for number, label in enumerate(labels)}
    model.save_pretrained(tmp_path / "before")
    AutoTokenizer.from_pretrained(trained).save_pretrained(tmp_path / "before")
    status, _, err = run(
        "train_classifier.py",
        *("--data", "sample", "--model", tmp_path / "before", "--output_dir", tmp_path / "run"),
        *(*TWO_STEPS, "--learning_rate", "0"),
    )
    assert status == 0, err
    after = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert after.config.id2label == {0: "negative", 1: "positive"}
    assert torch.equal(after.classifier.weight, before.flip(0)) == (not is_new)
    assert ("knows bad, good; for negative, positive it gets a new head" in caplog.text) == is_new
    assert torch.equal(after.model.encoder.embed_tokens.weight, model.model.encoder.embed_tokens.weight)


def test_a_model_is_fine_tuned_in_float32_and_on_one_label_a_text_whatever_it_was(run, trained, tmp_path):
    model = AutoModelForSequenceClassification.from_pretrained(trained, dtype=torch.float16, problem_type="regression")
    model.save_pretrained(tmp_path / "before")
    AutoTokenizer.from_pretrained(trained).save_pretrained(tmp_path / "before")
    status, _, err = run("predict.py", "--model", tmp_path / "before", stdin="좋다")
    assert status == 2 and "before: trained for regression" in err
    status, _, err = run(
        "train_classifier.py",
        *("--data", "sample", "--model", tmp_path / "before", "--output_dir", tmp_path / "run", *TWO_STEPS),
    )
    assert status == 0, err
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert (model.dtype, model.config.problem_type) == (torch.float32, None)


def test_a_run_keeps_as_many_tokens_of_a_text_as_it_was_told(run, trained, tmp_path):
    """Else what is measured is not what the folder's own tokenizer gives."""
    for number, options in enumerate((["--model", trained], ["--tokenizer", trained])):
        folder = tmp_path / str(number)
        status, _, err = run(
            "train_classifier.py",
            *("--data", "sample", "--max_length", "3", "--output_dir", folder, *TWO_STEPS, *options),
        )
        assert status == 0, err
        assert AutoTokenizer.from_pretrained(folder).model_max_length == 3
        measured = json.loads((folder / "metrics.json").read_text())["test"]
        status, _, err = run(
            "evaluate.py",
            *("--model", folder, "--data", "sample", "--split", "test", "--output_dir", tmp_path / f"{number}-again"),
        )
        assert status == 0, err
        again = json.loads((tmp_path / f"{number}-again" / "evaluation.json").read_text())
        assert again["confusion_matrix"] == measured["confusion_matrix"]


def test_a_run_without_evaluations_shows_its_training_loss(run, tmp_path):
    status, _, _ = run(
        "train_classifier.py",
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
    assert "| 2 |" in (tmp_path / "run" / "README.md").read_text()


# --- Refusals ---


@pytest.fixture
def faults(tmp_path):
    """Things that are wrong, by name."""
    bart = tmp_path / "bart"
    bart.mkdir()
    (bart / "config.json").write_text('{"model_type": "bart"}')
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "ratings_train.txt").write_text("id\tdocument\tlabel\n1\t좋다\t1\n2\t나쁘다\t2\n")
    (broken / "ratings_test.txt").write_text("id\tdocument\tlabel\n1\t좋다\t1\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").touch()
    (tmp_path / "a-file").touch()
    (tmp_path / "latin-1.txt").write_bytes("caf\xe9\n".encode("latin-1"))
    headless = tmp_path / "headless"
    VanillaTransformerModel(tiny_config()).save_pretrained(headless)
    train_tokenizer(["가나다"], vocab_size=29).save_pretrained(headless)
    shutil.copytree(headless, tmp_path / "corrupt")
    (tmp_path / "corrupt" / "model.safetensors").write_bytes(b"not safetensors")
    shutil.copytree(headless, tmp_path / "misfit")
    config = json.loads((headless / "config.json").read_text())
    (tmp_path / "misfit" / "config.json").write_text(json.dumps({**config, "d_model": 8}))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "{}/nowhere"], "nowhere"),
        (["--data", "{}/broken"], "ratings_train.txt, line 3"),
        (["--data", "sample", "--text_column", "review"], "review"),
        (["--data", "sample", "--model", "{}/bart"], "'bart', not 'vanilla_transformer'"),
        (["--data", "sample", "--model", "{}/nowhere"], "nowhere"),
        (["--data", "sample", "--model", "{}/headless", "--config", '{"d_model": 8}'], "only the rates of dropout"),
        (["--data", "sample", "--model", "{}/headless", "--config", '{"dropout": 2}'], "`dropout` must be between"),
        (["--data", "sample", "--attn_implementation", "fast"], "fast"),
        (["--data", "sample", "--weights_dtype", "int8"], "--weights-dtype: invalid choice: 'int8'"),
        (["--data", "sample", "--tokenizer", "{}/nowhere"], "nowhere"),
        (["--data", "sample", "--config", '{"d_model": 7}'], "encoder_attention_heads"),
        (["--data", "sample", "--config", '{"d_modle": 8}'], "no such field: d_modle"),
        (["--data", "sample", "--config", '{"vocab_size": 8}'], "less than the tokenizer's"),
        (["--data", "sample", "--config", '{"max_position_embeddings": 8}'], "more than the model's 8 positions"),
        (["--data", "sample", "--early_stopping_patience", "1"], "--load_best_model_at_end"),
        (["--data", "sample", "--early_stopping_patience", "0"], "--early_stopping_patience: at least 1"),
        (["--data", "sample", "--max_steps", "-1", "--num_train_epochs", "0"], "--num_train_epochs: more than 0"),
        (["--data", "sample", "--resume_from_checkpoint", "{}/bart"], "'bart', not 'vanilla_transformer'"),
        (["--data", "sample", "--config", "[]"], "--config"),
        (["--data", "sample", "--config", "{"], "--config"),
        (["--data", "sample", "--vocab_size", "10"], "vocab_size"),
        (["--vocab_size", "8007", "--model", NSMC_SMALL], "--vocab_size: of no effect with --model"),
        (["--tokenizer_model", "bpe", "--model", NSMC_SMALL], "--tokenizer_model: of no effect with --model"),
        (["--vocab_size", "8007", "--tokenizer", "{}/headless"], "--vocab_size: of no effect with --tokenizer"),
        (["--data", "sample", "--tokenizer_model", "wordpiece"], "wordpiece"),
        (["--data", "sample", "--max_length", "0"], "max_length"),
        (["--data", "sample", "--output_dir", "{}/full"], "not empty"),
        (["--data", "sample", "--output_dir", "{}/a-file"], "a-file"),
        (["--data", "sample", "--resume_from_checkpoint"], "no checkpoint"),
        (["--data", "sample", "--resume_from_checkpoint", "{}/nowhere"], "no checkpoint"),
        (
            ["--data", "sample", "--tokenizer", "{}/headless", "--model", NSMC_SMALL],
            "headless gives other ids than",
        ),
        (["--data", "sample", "--config", '{"id2label": {"0": "a"}}'], "the labels are the data's"),
        (["--data", "sample", "--metric_for_best_model", "f2"], "loss, accuracy, f1; not f2"),
        (["--label_smoothing_factor", "1"], "--label_smoothing_factor: at least 0 and below 1"),
        (["--lr_scheduler_kwargs", '{"num_cycle": 2}'], "--lr_scheduler_kwargs: get_linear_schedule_with_warmup()"),
        (["--lr_scheduler_type", "warmup_stable_decay"], "missing 1 required positional argument: 'num_decay_steps'"),
        (["--data", "sample", "--report_to", "clearml"], "ClearMLCallback requires 'clearml' to be installed"),
    ],
)
def test_training_refuses_with_one_line(run, faults, arguments, message):
    arguments = [argument.replace("{}", str(faults)) for argument in arguments]
    before = {file for file in faults.rglob("*") if file.is_file()}
    status, _, err = run("train_classifier.py", *TWO_STEPS, "--output_dir", faults / "new", *arguments)
    assert status == 2
    lines = [line for line in err.splitlines() if line.startswith("train_classifier.py: error:")]
    assert len(lines) == 1 and message in lines[0]
    assert "Traceback" not in err
    assert {file for file in faults.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "{}/nowhere"], "nowhere"),
        (["--model", "{}/bart"], "'bart', not 'vanilla_transformer'"),
        (["--model", "{}/headless"], "not a classifier"),
        (["--model", "{}/corrupt"], "error:"),
        (["--model", "{}/misfit"], "misfit: no model can be read here"),
        (["--model", "MODEL", "--dtype", "half"], "--dtype: invalid choice: 'half'"),
        (["--model", "MODEL", "--file", "{}/nowhere.txt"], "nowhere.txt"),
        (["--model", "MODEL", "--file", "{}/latin-1.txt"], "latin-1.txt, line 1: byte 4 is not UTF-8"),
        ([], "--model"),
    ],
)
def test_prediction_refuses_with_one_line(run, faults, trained, arguments, message):
    arguments = [argument.replace("{}", str(faults)).replace("MODEL", str(trained)) for argument in arguments]
    status, out, err = run("predict.py", *arguments)
    assert (status, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert "Traceback" not in err


def test_the_quickstart_fine_tunes_the_ready_made_classifier(run, tmp_path, monkeypatch):
    """Without learning anything it knows the embedded reviews already."""
    assert "hf_vanilla_transformer/recipes/sample-finetune.yaml" in (ROOT / "Makefile").read_text()
    monkeypatch.chdir(ROOT)
    status, _, _ = run(
        "train_classifier.py",
        *(
            ROOT / "hf_vanilla_transformer/recipes/sample-finetune.yaml",
            "--output_dir",
            tmp_path / "run",
            "--max_steps",
            "1",
        ),
        *("--learning_rate", "0", "--disable_tqdm", "true"),
    )
    assert status == 0
    test = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    published = json.loads((ROOT / "model_cards/nsmc-small/metrics.json").read_text())["test"]
    assert test["accuracy"] > published["accuracy"] - 0.05
    card = (tmp_path / "run" / "README.md").read_text()
    assert "fine-tuned on 510 reviews" in card and "park-nsmc" in card and "insults" in card


# --- Prediction ---


@pytest.mark.parametrize("batch_size", ["1", "4"])
def test_answers_come_in_the_order_of_the_texts(run, trained, tmp_path, batch_size):
    (tmp_path / "reviews.txt").write_text("\n".join(REVIEWS) + "\n", encoding="utf-8")
    status, out, _ = run(
        "predict.py", "--model", trained, "--file", tmp_path / "reviews.txt", "--batch_size", batch_size
    )
    assert status == 0
    answers = [line.split("\t") for line in out.split("\n")[:-1]]
    assert [text for _, _, text in answers] == REVIEWS
    classify = pipeline("text-classification", model=str(trained))
    for label, probability, text in answers:
        assert label in ("negative", "positive")
        assert 0.5 <= float(probability) <= 1
        if text.strip("​"):  # the pipeline has no answer to nothing
            expected = classify(text, truncation=True)[0]
            assert (label, float(probability)) == (expected["label"], pytest.approx(expected["score"], abs=1e-4))


def test_answers_in_half_precision_are_nearly_the_same(run, trained):
    answers = []
    for dtype in ("float32", "bfloat16"):
        status, out, _ = run("predict.py", "--model", trained, "--dtype", dtype, stdin="\n".join(REVIEWS))
        assert status == 0
        answers.append([line.split("\t")[:2] for line in out.splitlines()])
    for (label, probability), (nearly_label, nearly) in zip(*answers, strict=True):
        assert label == nearly_label and float(nearly) == pytest.approx(float(probability), abs=0.02)
    assert answers[0] != answers[1]


def test_lines_from_standard_input(run, trained):
    status, out, _ = run("predict.py", "--model", trained, stdin="재미있다\n지루하다\n")
    assert status == 0
    assert [line.split("\t")[2] for line in out.splitlines()] == ["재미있다", "지루하다"]
    assert run("predict.py", "--model", trained, stdin="")[:2] == (0, "")
    status, out, _ = run("predict.py", "--model", trained, stdin="\ufeff재미있다".encode())
    assert status == 0 and out.split("\t")[2] == "재미있다\n"
    status, out, err = run("predict.py", "--model", trained, stdin="재미있다\n지루하다\n".encode("cp949"))
    assert (status, out) == (2, "") and "standard input, line 1: byte 1 is not UTF-8" in err


def test_at_a_terminal_each_line_is_answered_as_it_is_typed(monkeypatch):
    typed = iter(["하나", "둘", ""])
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    assert list(given_texts(None)) == [["하나"], ["둘"]]


def test_a_text_is_cut_to_what_tokenizer_and_model_read():
    tokenizer = train_tokenizer(["가 나 다"], vocab_size=29, max_length=1000)
    model = VanillaTransformerForSequenceClassification(tiny_config(max_position_embeddings=4)).eval()
    texts = ["가 나 다 가 나 다"]
    probabilities = class_probabilities(model, tokenizer, texts, 2)
    tokenizer.model_max_length = 4
    torch.testing.assert_close(class_probabilities(model, tokenizer, texts, 2), probabilities)


# --- Evaluation ---


def test_the_evaluation_is_the_runs_own(run, trained, tmp_path):
    status, out, err = run("evaluate.py", "--model", trained, "--output_dir", tmp_path / "run", "--batch_size", "32")
    assert status == 0, err
    report = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    expected = json.loads((trained / "metrics.json").read_text())["validation"]
    assert {name: report[name] for name in expected if name != "loss"} == {
        name: value for name, value in expected.items() if name != "loss"
    }
    assert f"accuracy {expected['accuracy']:.4f}" in out
    for groups in (report["by_length"], report["bins"]):
        assert sum(group["rows"] for group in groups) == 90
        assert sum(group["rows"] * group["accuracy"] for group in groups) == pytest.approx(90 * expected["accuracy"])
    with open(tmp_path / "run" / "errors.tsv", encoding="utf-8", newline="") as file:
        errors = list(csv.DictReader(file, delimiter="\t"))
    assert len(errors) == round(90 * (1 - expected["accuracy"]))
    texts = load_labelled_text("sample", validation_fraction=0.15)["validation"]["text"][:]  # as the recipe cuts
    assert all(error["label"] != error["predicted"] and error["text"] == texts[int(error["row"])] for error in errors)
    surest = [float(error["probability"]) for error in errors]
    assert surest == sorted(surest, reverse=True)
    assert (tmp_path / "run" / "reliability.png").stat().st_size > 5_000


def test_an_evaluation_in_half_precision_is_nearly_the_same(run, trained, tmp_path):
    reports = []
    for dtype in ("float32", "bfloat16"):
        folder = tmp_path / dtype
        assert run("evaluate.py", "--model", trained, "--output_dir", folder, "--dtype", dtype)[0] == 0
        reports.append(json.loads((folder / "evaluation.json").read_text()))
    errors = [report["expected_calibration_error"] for report in reports]
    assert errors[0] != errors[1] and reports[1]["accuracy"] == pytest.approx(reports[0]["accuracy"], abs=0.05)


def test_a_text_at_the_limit_of_a_group_is_in_it():
    by_length = runpy.run_path(str(ROOT / "scripts/evaluate.py"))["accuracy_by_length"]
    groups = by_length(["a" * 5, "a" * 6, "a" * 80, "a" * 81], np.array([True, False, True, True]))
    assert [(group["most_characters"], group["rows"], group["accuracy"]) for group in groups] == [
        *((5, 1, 1.0), (10, 1, 0.0), (80, 1, 1.0), (None, 1, 1.0))
    ]


def test_an_evaluation_is_of_the_cut_that_the_recipe_or_the_flags_tell(run, tmp_path):
    folder = shutil.copytree(ROOT / "model_cards/nsmc-small", tmp_path / "model")
    recipe = yaml.safe_load((folder / "recipe.yaml").read_text())
    (folder / "recipe.yaml").write_text(yaml.safe_dump({**recipe, "validation_fraction": 0.2, "split_seed": 7}))
    for name, flags, fraction, seed in (
        ("recipe", [], 0.2, 7),
        ("flags", ["--validation_fraction", "0.3", "--split_seed", "8"], 0.3, 8),
    ):
        assert run("evaluate.py", "--model", folder, "--output_dir", tmp_path / name, *flags)[0] == 0
        texts = load_labelled_text("sample", validation_fraction=fraction, seed=seed)["validation"]["text"][:]
        with open(tmp_path / name / "errors.tsv", encoding="utf-8", newline="") as file:
            errors = list(csv.DictReader(file, delimiter="\t"))
        assert errors and all(error["text"] == texts[int(error["row"])] for error in errors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "tset"], "--split"),
        (["--dtype", "int8"], "--dtype"),
        (["--batch_size", "0"], "--batch_size"),
        (["--model", "nowhere"], "nowhere"),
        (["--data", "nowhere.csv"], "nowhere.csv"),
        (["--data", "three.csv"], "its labels are negative, positive; those of the data are a, b, c"),
    ],
)
def test_an_evaluation_is_refused_with_one_line(run, trained, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("three.csv").write_text("document,label\n" + "x,a\ny,b\nz,c\n" * 40)
    status, _, err = run("evaluate.py", "--model", trained, "--output_dir", tmp_path / "run", *arguments)
    assert status == 2 and message in err.splitlines()[-1]


# --- README ---


def readme_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def translator(tmp_path_factory) -> Path:
    """A translator's folder, with random weights."""
    folder = tmp_path_factory.mktemp("translator")
    tokenizer = train_tokenizer(["Two dogs play in the snow.", "Zwei Hunde spielen im Schnee."] * 2, 60, add_eos=True)
    VanillaTransformerForConditionalGeneration(tiny_config(vocab_size=len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_the_readmes_programs_run(trained, translator, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "quickstart").symlink_to(trained)
    (tmp_path / "runs" / "en-de").symlink_to(translator)
    (tmp_path / "model_cards").symlink_to(ROOT / "model_cards")
    monkeypatch.chdir(tmp_path)
    programs = readme_blocks("python")
    assert programs
    for program in programs:
        exec(compile(program, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "positive" in out or "negative" in out
    repository_files("runs/own")


def test_the_readmes_commands_run(run, trained, translator, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("scripts", "model_cards"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "reviews.txt").write_text("재미있다\n")
    (tmp_path / "sentences.txt").write_text("Two dogs.\n")
    (tmp_path / "multi30k").mkdir()
    for split in ("train", "val", "test_2016_flickr"):
        (tmp_path / "multi30k" / f"{split}.en").write_text("Two dogs play in the snow.\n" * 2)
        (tmp_path / "multi30k" / f"{split}.de").write_text("Zwei Hunde spielen im Schnee.\n" * 2)
    (tmp_path / "my.csv").write_text("text,label\n" + "좋다,1\n나쁘다,0\n" * 40)
    (tmp_path / "nsmc" / "raw").mkdir(parents=True)
    for split in ("train", "test"):
        (tmp_path / "nsmc" / f"ratings_{split}.txt").write_text(
            "id\tdocument\tlabel\n" + "1\t좋다\t1\n2\t나쁘다\t0\n" * 9
        )
    documents = [f"{number}번 보았다" for number in range(30)]
    reviews = [{"review_id": str(number), "review": text} for number, text in enumerate(documents, 10)]
    (tmp_path / "nsmc" / "raw" / "1.json").write_text(json.dumps(reviews))
    commands = [
        shlex.split(line)
        for block in readme_blocks("sh")
        for line in block.replace("\\\n", "").splitlines()
        if "scripts/" in line
    ]
    assert {Path(command[1]).name for command in commands} >= {"train_classifier.py", "predict.py"}
    (tmp_path / "figures").mkdir()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "quickstart").symlink_to(trained)
    torch.save(
        {
            name.removeprefix("state_dict."): tensor
            for name, tensor in load_file(ROOT / "tests/reference_outputs/annotated-transformer.safetensors").items()
            if name.startswith("state_dict.")
        },
        tmp_path / "model.pt",
    )
    for number, (program, script, *arguments) in enumerate(commands):
        if program.endswith("torchrun"):
            # Its flags are read; tests/test_distributed.py starts processes.
            launch = get_args_parser().parse_args([script, *arguments])
            script, arguments = launch.training_script, launch.training_script_args
        elif program.endswith("accelerate"):
            launch = launch_command_parser().parse_args(arguments)
            script, arguments = launch.training_script, launch.training_script_args
        if script.endswith("train_classifier.py"):
            data = [] if "--data" in arguments else ["--data", "sample"]
            # A run that goes on with another has its sizes, and lies where the next one looks for it.
            goes_on = arguments[0].startswith("hf_vanilla_transformer/recipes/nsmc-small")
            arguments += [*data, *TWO_STEPS]
            is_new = not goes_on and "sample-finetune" not in arguments[0]
            arguments += ["--vocab_size", "30"] if "my.csv" in arguments and is_new else []
            arguments += [] if goes_on else ["--output_dir", str(tmp_path / f"run-{number}")]
            arguments += TINY if is_new else []
        elif script.endswith("pretrain.py"):
            arguments += [*TWO_STEPS, *TINY, "--vocab_size", "60", "--validation", "5"]
        elif script.endswith("push_to_hub.py"):
            arguments += ["--dry_run"]
        elif script.endswith("train_translation.py"):
            arguments += ["--max_steps", "1", "--save_steps", "1", "--average_last", "1"]
            arguments += ["--generation_max_length", "3", "--vocab_size", "60", "--config", TINY_TRANSLATOR]
            arguments += ["--output_dir", str(tmp_path / f"run-{number}")]
        elif script.endswith("translate.py"):
            arguments += ["--model", str(translator)]
        elif script.endswith("train_copy.py"):
            arguments += ["--train_sequences", "8", "--test_sequences", "4", "--max_steps", "1"]
        elif script.endswith("predict.py"):
            arguments += ["--model", str(trained)]
        assert run(Path(script).name, *arguments)[0] == 0, script


def test_make_targets_named_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", "\n".join(readme_blocks("sh")), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
