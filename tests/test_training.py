"""Training by transformers' Trainer: the loop is its own; here is what must hold of our model in it."""

import json

import numpy as np
import pytest
import torch
from conftest import tiny_config
from datasets import ClassLabel, Dataset, Features, Value
from transformers import DataCollatorForSeq2Seq, DataCollatorWithPadding, Trainer, TrainingArguments

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.figures import plot_training_curves
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training import (
    LAST_CHECKPOINT,
    checksum,
    classification_report,
    compute_metrics,
    epochs,
    given_settings,
    load_config,
    parse_arguments,
    prepare_output_dir,
    save_recipe,
)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["가 나 다 라", "가나다라 마바사"], vocab_size=29, max_length=16)


def rows(number: int) -> Dataset:
    """Sequences of unequal length; the label says whether token 7 or token 8 comes first."""
    generator = np.random.default_rng(0)
    data = {"input_ids": [], "labels": [], "length": []}
    for _ in range(number):
        label = int(generator.integers(2))
        ids = [7 + label, *generator.integers(9, 29, size=generator.integers(1, 9)).tolist()]
        data["input_ids"].append(ids)
        data["labels"].append(label)
        data["length"].append(len(ids))
    return Dataset.from_dict(data)


def arguments(folder, **overrides) -> TrainingArguments:
    defaults = {
        "use_cpu": True,
        "report_to": "none",
        "disable_tqdm": True,
        "save_strategy": "no",
        "learning_rate": 3e-3,
        "per_device_train_batch_size": 8,
        "train_sampling_strategy": "group_by_length",
        "logging_steps": 1,
    }
    return TrainingArguments(str(folder), **{**defaults, **overrides})


def train_classifier(folder, tokenizer, model=None, resume=None, **overrides) -> Trainer:
    torch.manual_seed(0)
    trainer = Trainer(
        model or VanillaTransformerForSequenceClassification(tiny_config()),
        arguments(folder, **overrides),
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=rows(64),
        eval_dataset=rows(40),
        processing_class=tokenizer,
        compute_metrics=compute_metrics,
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


@pytest.mark.parametrize("bf16", [False, True])
def test_a_classifier_learns(bf16, tmp_path, tokenizer):
    trainer = train_classifier(tmp_path, tokenizer, num_train_epochs=12, bf16=bf16, eval_strategy="epoch")
    history = list(epochs(trainer.state.log_history))
    assert [entry["epoch"] for entry in history] == list(range(1, 13))
    assert history[-1]["eval_accuracy"] > 0.9
    assert history[-1]["train_loss"] < history[0]["train_loss"] / 2


def test_evaluation_returns_logits_alone(tmp_path, tokenizer):
    trainer = train_classifier(tmp_path, tokenizer, max_steps=1)
    prediction = trainer.predict(rows(5))
    assert isinstance(prediction.predictions, np.ndarray)
    assert prediction.predictions.shape == (5, 2)


@pytest.mark.parametrize("task", ["classification", "generation"])
def test_accumulated_gradients_equal_one_large_batch(task, tmp_path, tokenizer):
    """Targets of unequal length: a mean of means would weigh their tokens unequally."""
    data = rows(16).remove_columns("length")
    config = tiny_config(dropout=0.0, attention_dropout=0.0)
    if task == "generation":
        data = data.map(lambda row: {"labels": row["input_ids"] + [3]})

    def train(batch_size, accumulation):
        torch.manual_seed(0)
        if task == "generation":
            model = VanillaTransformerForConditionalGeneration(config)
            collator = DataCollatorForSeq2Seq(tokenizer, model)
        else:
            model = VanillaTransformerForSequenceClassification(config)
            collator = DataCollatorWithPadding(tokenizer)
        trainer = Trainer(
            model,
            arguments(
                tmp_path,
                per_device_train_batch_size=batch_size,
                gradient_accumulation_steps=accumulation,
                train_sampling_strategy="sequential",
                optim="sgd",
                max_grad_norm=0.0,
                num_train_epochs=2,
                lr_scheduler_type="constant",
                learning_rate=0.1,
            ),
            data_collator=collator,
            train_dataset=data,
        )
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        return losses, dict(model.named_parameters())

    losses, weights = train(16, 1)
    accumulated_losses, accumulated_weights = train(4, 4)
    np.testing.assert_allclose(accumulated_losses, losses, rtol=0, atol=1e-4)
    torch.testing.assert_close(accumulated_weights, weights, rtol=0, atol=1e-5)


def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(tmp_path, tokenizer):
    settings = {"num_train_epochs": 3, "save_strategy": "epoch"}
    whole = train_classifier(tmp_path / "whole", tokenizer, **settings)
    checkpoint = tmp_path / "whole" / "checkpoint-8"
    resumed = train_classifier(tmp_path / "resumed", tokenizer, resume=str(checkpoint), **settings)
    for (name, expected), value in zip(whole.model.named_parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(value, expected), name
    # The checkpoint is a model folder that needs no package.
    assert (checkpoint / "modeling_vanilla_transformer.py").exists()
    assert "auto_map" in json.loads((checkpoint / "config.json").read_text())
    assert (checkpoint / "tokenizer.json").exists()


# --- Arguments ---


def read_recipe(tmp_path, text: str, *flags: str) -> TrainingArguments:
    file = tmp_path / "recipe.yaml"
    file.write_text(text)
    return parse_arguments([TrainingArguments], "test", [str(file), *flags])[0]


def test_flags_override_the_recipe_and_the_recipe_the_defaults(tmp_path):
    parsed = read_recipe(
        tmp_path, "learning_rate: 1e-3\nnum_train_epochs: 7\nreport_to: none\n", "--num_train_epochs", "2"
    )
    assert (parsed.learning_rate, parsed.num_train_epochs, parsed.per_device_train_batch_size) == (1e-3, 2, 8)


@pytest.mark.parametrize(
    ("recipe", "flags", "message"),
    [
        ("learning_rat: 1\n", [], "no such setting: learning_rat"),
        ("- 1\n", [], "not a YAML mapping"),
        ("a: [\n", [], "recipe.yaml"),
        ("learning_rate: high\n", [], "learning_rate"),
        ("", [], "not a YAML mapping"),
        ("seed: 1\n", ["--learning_rate", "high"], "learning_rate"),
        ("seed: 1\n", ["--nonsense", "1"], "--nonsense"),
        ("seed: 1\n", ["another.yaml"], "another.yaml"),
        ("eval_strategy: sometimes\n", [], "sometimes"),
    ],
)
def test_arguments_that_make_no_sense_end_with_status_2_and_one_line(recipe, flags, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        read_recipe(tmp_path, recipe, *flags)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_saved_recipe_makes_the_same_arguments(tmp_path):
    parsed = read_recipe(tmp_path, "learning_rate: 0.003\nbf16: true\nreport_to: none\neval_strategy: epoch\n")
    flags = ["--num_train_epochs", "5", "--output_dir", str(tmp_path / "run")]
    given = given_settings([TrainingArguments], [str(tmp_path / "recipe.yaml"), *flags])
    assert given == {
        "learning_rate": 0.003,
        "bf16": True,
        "report_to": "none",
        "eval_strategy": "epoch",
        "num_train_epochs": 5,
    }
    save_recipe(tmp_path, given)
    again = parse_arguments([TrainingArguments], "test", [str(tmp_path / "recipe.yaml")])[0]
    assert again.to_dict() == {**parsed.to_dict(), "num_train_epochs": 5}


def test_a_run_neither_overwrites_nor_starts_where_there_is_nothing(tmp_path):
    new = tmp_path / "a" / "b"
    assert prepare_output_dir(str(new), None) is None
    assert new.is_dir() and not any(new.iterdir())
    with pytest.raises(ValueError, match="no checkpoint"):
        prepare_output_dir(str(new), LAST_CHECKPOINT)
    (new / "checkpoint-5").mkdir()
    with pytest.raises(ValueError, match="not empty"):
        prepare_output_dir(str(new), None)
    assert prepare_output_dir(str(new), LAST_CHECKPOINT) == str(new / "checkpoint-5")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        prepare_output_dir(str(tmp_path / "file"), None)


def test_another_models_folder_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bart"}')
    with pytest.raises(ValueError, match="'bart', not 'vanilla_transformer'"):
        load_config(str(tmp_path))
    with pytest.raises(ValueError, match="nowhere"):
        load_config(str(tmp_path / "nowhere"))


# --- Metrics and record ---


def test_the_report_counts_right_and_wrong():
    logits = np.array([[2.0, 1.0], [0.0, 1.0], [0.0, 3.0], [1.0, 0.0]])
    report = classification_report(logits, np.array([0, 1, 0, 1]))
    assert report["accuracy"] == 0.5
    assert report["confusion_matrix"] == [[1, 1], [1, 1]]  # rows are true, columns predicted
    assert report["f1"] == 0.5
    assert classification_report(logits, np.array([0, 0, 0, 0]))["confusion_matrix"] == [[2, 2], [0, 0]]


def test_the_checksum_depends_on_rows_and_their_order():
    features = Features({"text": Value("string"), "label": ClassLabel(names=["a", "b"])})
    data = Dataset.from_dict({"text": ["x", "y"], "label": [0, 1]}, features=features)
    assert checksum(data) == checksum(data.select([0, 1]))
    assert checksum(data) != checksum(data.select([1, 0]))


def test_the_curves_are_a_picture(tmp_path):
    from matplotlib.image import imread

    history = [
        {"epoch": e, "train_loss": 1 / e, "eval_loss": 1.1 / e, "eval_accuracy": 1 - 0.5 / e} for e in range(1, 4)
    ]
    plot_training_curves(history, tmp_path / "curves.png")
    picture = imread(tmp_path / "curves.png")
    assert picture.shape[0] > 300 and picture.std() > 0.05
