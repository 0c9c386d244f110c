"""Soft labels: what is labelled, by whom, and the loss that learns from it."""

import math
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from datasets import Dataset
from distillation import (
    SOFT_LABELS,
    SOFT_LABELS_FILE,
    SoftLabels,
    compose_texts,
    cross_fit,
    labels_nearby,
    linear_classifier,
    load_soft_labels,
    soft_label_loss,
)
from shared import ROOT, read_json, tiny_config
from transformers import TrainingArguments
from transformers.modeling_outputs import Seq2SeqSequenceClassifierOutput

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.data.checksums import file_checksum
from hf_vanilla_transformer.data.labelled_text import load_labelled_text, tokenize
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.inference import Classifier
from hf_vanilla_transformer.inference.folder import load_tokenizer
from hf_vanilla_transformer.training.trainer import ResumableTrainer


SMALL = str(ROOT / "model_cards/nsmc-small")


@pytest.fixture(scope="module")
def data():
    return load_labelled_text("sample")


@pytest.fixture(scope="module")
def teacher(data):
    """The linear teacher of the data's training texts."""
    return linear_classifier().fit(data["train"]["text"][:], data["train"]["label"][:])


@pytest.fixture
def label(succeed):
    """Label texts, by the linear teacher alone unless there are --models, too."""

    def label(folder, *flags, data="sample"):
        flags = ["--data", data, "--linear", "true", *flags, "--output_dir", folder]
        return succeed("experiments/soft_labels.py", *flags)

    return label


def accuracy_of(folder, teacher):
    return f"{read_json(folder / 'metrics.json')['validation'][teacher]['accuracy']:.4f}"


def loss_of(logits, labels, **kwargs):
    return soft_label_loss(Seq2SeqSequenceClassifierOutput(logits=logits), labels, **kwargs)


def test_the_loss_is_the_cross_entropy_with_the_teachers_probabilities():
    logits = torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]])
    labels = torch.tensor([[0.2, 0.8], [0.5, 0.5]])
    # By hand: the model says 1/2, 1/2 and 3/4, 1/4.
    expected = (math.log(2) + 0.5 * math.log(4 / 3) + 0.5 * math.log(4)) / 2
    torch.testing.assert_close(loss_of(logits, labels).item(), expected)
    # Trainer counts every number of the labels.
    torch.testing.assert_close(loss_of(logits, labels, num_items_in_batch=labels.numel()).item(), expected)
    # In an evaluation, labels are classes.
    torch.testing.assert_close(loss_of(logits, torch.tensor([1, 0])), loss_of(logits, torch.eye(2).flip(0)))


def test_a_batch_in_several_calls_has_the_weights_of_the_whole(tmp_path):
    """Trainer adds up the calls, and counts the labels that the loss divides by."""
    config = tiny_config(dropout=0.0, attention_dropout=0.0, embedding_dropout=0.0, num_labels=3)
    model = VanillaTransformerForSequenceClassification(config)
    rows = Dataset.from_dict(
        {"input_ids": torch.randint(7, 29, (8, 5)).tolist(), "labels": torch.rand(8, 3).softmax(dim=1).tolist()}
    )
    weights = []
    for size, steps in ((4, 1), (2, 2)):
        settings = TrainingArguments(
            tmp_path / str(size),
            per_device_train_batch_size=size,
            gradient_accumulation_steps=steps,
            **{"num_train_epochs": 1, "learning_rate": 0.1, "optim": "sgd", "use_cpu": True},
            **{"report_to": "none", "save_strategy": "no", "disable_tqdm": True},
        )
        copy = deepcopy(model)
        ResumableTrainer(copy, settings, train_dataset=rows, compute_loss_func=soft_label_loss).train()
        weights.append(copy.state_dict())
    torch.testing.assert_close(*weights)
    assert (weights[0]["classifier.weight"] - model.classifier.weight).abs().max() > 1e-3


def test_composed_texts_are_pieces_of_one_text_or_of_two():
    texts = ["가 나 다 라", "마 바", "", "사"]
    composed = compose_texts(texts, 50, seed=1)
    assert len(composed) == 150  # of the texts that have words
    assert composed == compose_texts(texts, 50, seed=1) != compose_texts(texts, 50, seed=2)
    pieces = {" ".join(t.split()[i:j]) for t in texts for i in range(4) for j in range(i + 1, 5)} - {""}
    begins = {" ".join(t.split()[:i]) for t in texts for i in range(1, 5)} - {""}
    ends = {" ".join(t.split()[i:]) for t in texts for i in range(4)} - {""}
    spliced = {f"{begin} {end}" for begin in begins for end in ends}
    assert set(composed) <= pieces | spliced
    assert len(set(composed) & pieces) > 5 and len(set(composed) - pieces) > 5


def test_a_cross_fitted_teacher_has_not_seen_the_text(data):
    """Labels without any rhyme are learned by heart, and cannot be told where they were not seen."""
    texts = data["train"]["text"][:]
    labels = np.random.default_rng(0).integers(0, 2, len(texts))
    by_heart = linear_classifier().fit(texts, labels).predict(texts)
    unseen = cross_fit(texts, labels, seed=1)
    assert unseen.shape == (len(texts), 2)
    assert (by_heart == labels).mean() > 0.95
    assert (unseen.argmax(axis=1) == labels).mean() < 0.6


def test_the_linear_teacher_is_what_its_docstring_says():
    vectorizer, regression = (step for _, step in linear_classifier().steps)
    assert (vectorizer.analyzer, vectorizer.ngram_range, vectorizer.min_df) == ("char_wb", (1, 5), 2)
    assert vectorizer.sublinear_tf and vectorizer.use_idf and regression.C == 8


def test_the_linear_teacher_is_measured_with_changed_texts(succeed, data, teacher, tmp_path):
    flags = ["--robustness", "no_spaces", "typing_slip", "--split", "test", "--output_dir", tmp_path / "run"]
    out = succeed("experiments/linear_baseline.py", *flags)
    changes = read_json(tmp_path / "run" / "evaluation.json")["robustness"]["changes"]
    spaceless = ["".join(text.split()) for text in data["test"]["text"]]
    figures = [teacher.score(texts, data["test"]["label"][:]) for texts in (data["test"]["text"][:], spaceless)]
    assert [one["accuracy"] for one in changes][:2] == pytest.approx(figures)
    assert [one["change"] for one in changes] == ["as_written", "no_spaces", "typing_slip"]
    assert f"{figures[0]:.4f}" in out


def test_labels_nearby_are_bayes_factors():
    """Against the definition, term by term; a file's neighbours are in that file."""
    files = [["a", "x", "b", "twice", "y", "c"], ["twice", "z", "d"], []]
    texts, labels = ["a", "b", "c", "d", "twice", "elsewhere", "again", "again"], [0, 1, 2, 0, 1, 2, 2, 2]
    factors = labels_nearby(files, texts, labels, scale=2)
    prior = np.bincount(labels) / len(labels)
    assert set(factors) == {"a", "x", "b", "y", "c", "z", "d"}
    for lines in files:
        for place, line in enumerate(lines):
            near = 3 * prior
            for other, neighbour in enumerate(lines):
                if neighbour in ("a", "b", "c", "d") and other != place:
                    near[labels[texts.index(neighbour)]] += math.exp(-abs(other - place) / 2)
            if line != "twice":
                np.testing.assert_allclose(factors[line], near / near.sum() / prior)


@pytest.mark.parametrize("keep_texts", [False, True])
def test_labels_become_probabilities_beside_the_teachers(data, keep_texts):
    """The texts stay, too, where they are drawn anew."""
    labelled, tokenizer = data["train"].select(range(3)), load_tokenizer(SMALL)
    soft_labels = SoftLabels("not read")
    soft_labels.number_of_labels = 2
    soft_labels.rows = Dataset.from_dict({"text": ["좋다"], "label": [[0.25, 0.75]]}, features=SOFT_LABELS)
    tokenized = tokenize(labelled, tokenizer, keep_texts=keep_texts)
    rows = soft_labels.extend(tokenized, tokenizer, 128)
    assert rows["labels"][:] == [*np.eye(2)[labelled["label"][:]].tolist(), [0.25, 0.75]]
    assert rows["input_ids"][:3] == tokenized["input_ids"][:]
    assert rows[3]["length"] == len(rows[3]["input_ids"])
    if keep_texts:
        assert rows["text"][:] == [*labelled["text"][:], "좋다"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (None, "no such file"),
        ({"text": ["좋다"], "label": [1]}, "not made by soft_labels.py, its columns are {'text': Value"),
        ({"text": ["좋다"], "label": [[0.2, 0.3, 0.5]]}, "probabilities of 3 labels, where the data have 2"),
    ],
    ids=["missing", "other columns", "other labels"],
)
def test_other_files_are_refused(tmp_path, columns, message):
    file = tmp_path / SOFT_LABELS_FILE
    if columns:
        features = SOFT_LABELS if isinstance(columns["label"][0], list) else None
        Dataset.from_dict(columns, features=features).to_parquet(file)
    with pytest.raises(DataError, match=message):
        load_soft_labels(tmp_path, 2)


@pytest.mark.slow
def test_teachers_label_texts_and_a_classifier_learns_from_them(succeed, label, data, teacher, tmp_path):
    known = [data[split]["text"][0] for split in ("train", "validation", "test")]
    texts = tmp_path / "texts.txt"
    new = ["정말 좋은 영화였다", "지루하고 유치했다"]
    texts.write_text("\n".join([new[0], *known, "", f" {new[0]} ", new[1]]) + "\n")
    out = label(tmp_path / "soft", "--models", SMALL, "--texts", texts, "--pieces", "1")
    rows = load_soft_labels(tmp_path / "soft", 2)
    assert rows["text"][:2] == new  # each once, and none of the data's own
    assert rows["text"][2:] == compose_texts(data["train"]["text"][:], 1, seed=42)
    assert out.strip().splitlines()[-1] == f"{len(rows)} texts labelled"

    probabilities = [teacher.predict_proba(rows["text"][:]), Classifier(SMALL).probabilities(rows["text"][:])]
    np.testing.assert_allclose(rows["label"][:], np.mean(probabilities, axis=0), atol=1e-5)
    metrics = read_json(tmp_path / "soft/metrics.json")
    assert list(metrics["validation"]) == ["linear", SMALL, "together"]
    assert metrics["rows"] == len(rows)
    assert metrics["texts"] == {str(texts): file_checksum(texts)}

    flags = ["--data", "sample", "--model", SMALL, "--soft_labels", tmp_path / "soft", "--max_length", "64"]
    flags += ["--max_steps", "2", "--eval_strategy", "epoch", "--output_dir", tmp_path / "student"]
    succeed("experiments/train_classifier.py", *flags)
    state = read_json(tmp_path / "student/checkpoint-2/trainer_state.json")
    assert state["epoch"] == pytest.approx(2 / math.ceil((len(data["train"]) + len(rows)) / 8))
    record = read_json(tmp_path / "student/run.json")
    assert record["data"]["train"]["rows"] == len(data["train"])
    recorded = record["data"]["soft_labels"]
    recipe = yaml.safe_load((tmp_path / "soft/recipe.yaml").read_text())
    files = {name: [Path(file).name for file in recipe[name]] for name in ("models", "texts")}
    assert recorded["recipe"] == recipe | files
    named = {SMALL: Path(SMALL).name}  # a record holds no path
    assert recorded["validation"] == {named.get(name, name): report for name, report in metrics["validation"].items()}
    assert recorded["sha256"] == file_checksum(tmp_path / "soft" / SOFT_LABELS_FILE)
    card = (tmp_path / "student/README.md").read_text()
    assert f"further data, `soft_labels`: {len(rows)} rows (SHA-256 `{recorded['sha256']}`)" in card
    assert "scripts/experiments/train_classifier.py recipe.yaml" in card


def test_training_texts_near_a_line_count(label, data, teacher, tmp_path):
    train, validation = data["train"], data["validation"]
    texts, labels = train["text"][:], np.array(train["label"][:])
    measured, truth = validation["text"][:], np.array(validation["label"][:])
    # Two films, with some of the validation texts in the one that has the other label.
    films = [
        [*(texts[place] for place in np.flatnonzero(labels == label)[:40]), *np.array(measured)[truth != label][:4]]
        for label in (0, 1)
    ]
    new = ["그냥 영화", "그저 영화"]
    lines = [*films[0], f" {new[0]}", *map(str, range(100)), new[1], *films[1]]
    (tmp_path / "films.txt").write_text("\n".join(lines) + "\n")
    out = label(tmp_path / "soft", "--texts", tmp_path / "films.txt", "--pieces", "1", "--neighbours", "20")

    factors = labels_nearby([[line.strip() for line in lines]], texts, labels, scale=20)

    def weighted(texts):
        probabilities = teacher.predict_proba(texts) * np.array([factors.get(text, [1, 1]) for text in texts])
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    soft = load_soft_labels(tmp_path / "soft", 2)[:]
    lines, pieces = soft["text"][:102], soft["text"][102:]  # pieces are in no file
    expected = [*weighted(lines), *teacher.predict_proba(pieces)]
    np.testing.assert_allclose(soft["label"], expected, atol=1e-6)
    assert soft["label"][0][0] > teacher.predict_proba(new)[0][0]  # the film with negative reviews

    accuracy = f"{np.mean(weighted(measured).argmax(axis=1) == truth):.4f}"
    assert accuracy == accuracy_of(tmp_path / "soft", "neighbours") != accuracy_of(tmp_path / "soft", "together")
    assert out.strip().splitlines()[-2] == f"neighbours: validation accuracy {accuracy}"


def test_the_training_texts_are_labelled_too(label, data, tmp_path):
    out = label(tmp_path, "--cross_fit", "true", "--pieces", "1", "--seed", "3")
    rows, texts = load_soft_labels(tmp_path, 2), data["train"]["text"][:]
    assert rows["text"][:] == texts + compose_texts(texts, 1, seed=3)
    expected = cross_fit(texts, data["train"]["label"][:], 3)
    np.testing.assert_allclose(rows["label"][: len(texts)], expected, atol=1e-6)
    assert out.strip().splitlines() == [
        f"linear: validation accuracy {accuracy_of(tmp_path, 'linear')}",
        f"together: validation accuracy {accuracy_of(tmp_path, 'together')}",
        f"{len(rows):,} texts labelled",
    ]


def test_soft_labels_of_another_cut_are_refused(refused, label, tmp_path):
    """Their texts, or their teachers' training texts, are among validation now."""
    label(tmp_path / "soft", "--pieces", "1")
    train = ["--data", "sample", "--soft_labels", tmp_path / "soft", "--output_dir", tmp_path / "run"]
    line = refused("experiments/train_classifier.py", *train, "--split_seed", "1")
    assert "made for other data, or for another cut" in line
    (tmp_path / "soft/metrics.json").unlink()
    assert "metrics.json" in refused("experiments/train_classifier.py", *train)


def test_a_label_of_too_few_texts_is_told(refused, label, tmp_path):
    rows = ["text,label", *("좋다,1", "나쁘다,0") * 20, *["그저 그렇다,2"] * 6]
    (tmp_path / "my.csv").write_text("\n".join(rows) + "\n")
    label(tmp_path / "soft", "--text_column", "text", "--pieces", "1", data=tmp_path / "my.csv")
    assert {len(label) for label in load_soft_labels(tmp_path / "soft", 3)["label"]} == {3}
    arguments = ["--data", tmp_path / "my.csv", "--text_column", "text", "--linear", "true", "--cross_fit", "true"]
    line = refused("experiments/soft_labels.py", *arguments, "--output_dir", tmp_path / "cross")
    assert "4 training texts of 2, where 5 are needed" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pieces", "1"], "no teacher"),
        (["--linear", "true"], "nothing to label"),
        (["--linear", "true", "--pieces", "-1"], "--pieces"),
        (["--models", SMALL, SMALL, "--pieces", "1"], "--models"),
        (["--linear", "true", "--pieces", "1", "--neighbours", "2"], "--neighbours"),
        (["--linear", "true", "--texts", "x.txt", "--neighbours", "-2"], "--neighbours"),
        (["--models", "neighbours", "--pieces", "1"], "none by the name of linear, together or neighbours"),
        (["--models", "nowhere", "--pieces", "1"], "nowhere"),
        (["--models", SMALL, "--linear", "true", "--cross_fit", "true", "--pieces", "1"], "--cross_fit: with"),
        (["--linear", "true", "--texts", "nowhere.txt"], "nowhere.txt"),
        (["--linear", "true", "--texts", "new.txt", "--neighbours", "3"], "no training text is a line of the files"),
        # What a model calls positive may be what the data call the first label.
        (
            ["--data", "my.csv", "--text_column", "text", "--models", SMALL, "--pieces", "1"],
            "its labels are negative, positive; those of the data are good, worse",
        ),
    ],
)
def test_labelling_is_refused_with_one_line(refused, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("new.txt").write_text("새 영화\n")
    Path("my.csv").write_text("text,label\n" + "좋다,good\n나쁘다,worse\n" * 20)
    assert message in refused("experiments/soft_labels.py", *arguments, "--output_dir", tmp_path / "soft")
