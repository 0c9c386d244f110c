"""Training by transformers' Trainer: the loop is its own; here is what must hold of our model in it."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import tiny_config
from datasets import ClassLabel, Dataset, Features, Value
from safetensors.torch import load_file
from transformers import (
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
    EvalPrediction,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainingArguments,
)
from transformers.modeling_outputs import Seq2SeqLMOutput

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.arguments import given_settings
from hf_vanilla_transformer.commands.arguments import parse_arguments
from hf_vanilla_transformer.data.checksums import checksum, file_checksum
from hf_vanilla_transformer.figures import plot_training_curves
from hf_vanilla_transformer.hub.record import epochs, save_record
from hf_vanilla_transformer.metrics import (
    calibration_report,
    classification_report,
    compute_metrics,
    compute_perplexity,
    token_losses,
)
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training.batches import TokenBudgetBatchSampler
from hf_vanilla_transformer.training.losses import LabelSmoothingLoss, smoothed_targets
from hf_vanilla_transformer.training.schedules import noam_peak
from hf_vanilla_transformer.training.trainer import TokenBudgetTrainer


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


# --- Rates, losses, batches ---


@pytest.fixture(scope="module")
def annotated() -> dict[str, torch.Tensor]:
    """What the Annotated Transformer's own code computes."""
    return load_file(Path(__file__).parent / "reference_outputs" / "annotated-transformer-training.safetensors")


@pytest.mark.parametrize(
    ("d_model", "factor", "warmup"), [(256, 1, 4000), (512, 1, 4000), (512, 1, 8000), (512, 2, 4000)]
)
def test_the_noam_schedule_is_inverse_sqrt_with_its_peak(d_model, factor, warmup, annotated, tmp_path):
    """The rates that Trainer sets, update by update; it counts from 0, the tutorial from 1."""
    settings = arguments(
        tmp_path,
        learning_rate=noam_peak(d_model, warmup, factor),
        lr_scheduler_type="inverse_sqrt",
        warmup_steps=warmup,
    )
    trainer = Trainer(VanillaTransformerForSequenceClassification(tiny_config()), settings)
    trainer.create_optimizer_and_scheduler(num_training_steps=100_000)
    rate = trainer.lr_scheduler.lr_lambdas[0]
    rates = [settings.learning_rate * rate(step) for step in annotated["input.steps"].tolist()]
    np.testing.assert_allclose(rates, annotated[f"output.noam.{d_model}_{factor}_{warmup}"], rtol=0, atol=1e-9)


def test_label_smoothing_equals_the_tutorials(annotated):
    log_probs = annotated["input.log_probs"].clone().requires_grad_()
    targets = annotated["input.targets"]
    smoothed = smoothed_targets(targets, log_probs.shape[1], smoothing=0.1, pad_token_id=0)
    assert torch.equal(smoothed, annotated["output.smoothed_targets"])

    # Log-probabilities are their own log-softmax.
    loss = LabelSmoothingLoss(0.1, pad_token_id=0)
    labels = targets.masked_fill(targets == 0, -100).unsqueeze(0)
    value = loss(Seq2SeqLMOutput(logits=log_probs.unsqueeze(0)), labels, num_items_in_batch=1)
    torch.testing.assert_close(value, annotated["output.loss_sum"].squeeze(), rtol=0, atol=1e-5)
    # The reference's gradient is that of the log-probabilities, which the softmax passes on less its mean.
    value.backward()
    expected = annotated["output.grad_log_probs"]
    expected = expected - expected.sum(dim=1, keepdim=True) * log_probs.exp()
    torch.testing.assert_close(log_probs.grad, expected, rtol=0, atol=1e-6)


def test_label_smoothing_takes_no_notice_of_pads():
    logits = torch.randn(2, 5, 11)
    labels = torch.randint(1, 11, (2, 5))
    labels[1, 3:] = -100
    loss = LabelSmoothingLoss(0.1, pad_token_id=0)
    rows = [
        loss(Seq2SeqLMOutput(logits=logits[:1]), labels[:1], 8),
        loss(Seq2SeqLMOutput(logits=logits[1:, :3]), labels[1:, :3], 8),
    ]
    torch.testing.assert_close(loss(Seq2SeqLMOutput(logits=logits), labels), sum(rows))
    torch.testing.assert_close(
        LabelSmoothingLoss(0.0, 0)(Seq2SeqLMOutput(logits=logits), labels),
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()),
    )


def test_smoothing_that_would_go_wrong_is_refused():
    loss, logits = LabelSmoothingLoss(0.1, pad_token_id=0), torch.randn(1, 3, 11)
    with pytest.raises(ValueError, match="the collator must make `decoder_input_ids`"):
        loss(Seq2SeqLMOutput(logits=logits[:, :1]), torch.tensor([[4, 5, 6]]))
    with pytest.raises(ValueError, match="a label is the pad, 0"):
        loss(Seq2SeqLMOutput(logits=logits), torch.tensor([[4, 5, 0]]))
    assert loss(Seq2SeqLMOutput(logits=logits), torch.full((1, 3), -100)) == 0
    for arguments in [(11, 1.5, 0), (11, -0.1, 0), (11, 0.1, 11), (11, 0.1, -1), (2, 0.1, 0)]:
        with pytest.raises(ValueError, match="smoothing|pad_token_id"):
            smoothed_targets(torch.tensor([1]), *arguments)
    for arguments in [(512, 0), (512, -5), (0, 100), (512, 100, 0.0)]:
        with pytest.raises(ValueError, match="above 0"):
            noam_peak(*arguments)


LENGTHS = np.random.default_rng(0).integers(1, 40, size=500).tolist()


def test_batches_hold_as_many_tokens_as_fit():
    batches = list(TokenBudgetBatchSampler(LENGTHS, max_tokens=100, seed=7))
    assert sorted(place for batch in batches for place in batch) == list(range(500))
    sizes = [len(batch) * max(LENGTHS[place] for place in batch) for batch in batches]
    assert max(sizes) <= 100
    assert sum(LENGTHS) / sum(sizes) > 0.9  # few pads
    assert np.mean(sizes) > 80  # and few small batches


def test_batches_come_in_random_order():
    lengths = [max(LENGTHS[place] for place in batch) for batch in TokenBudgetBatchSampler(LENGTHS, 100, seed=7)]
    assert sorted(lengths) != lengths != sorted(lengths, reverse=True)


def test_batches_hold_no_more_rows_than_allowed():
    batches = list(TokenBudgetBatchSampler(LENGTHS, max_tokens=100, seed=7, max_rows=4))
    assert sorted(place for batch in batches for place in batch) == list(range(len(LENGTHS)))
    assert max(map(len, batches)) == 4
    assert all(len(batch) * max(LENGTHS[place] for place in batch) <= 100 for batch in batches)


def test_batches_depend_on_seed_and_epoch_alone():
    def batches(seed, epoch):
        sampler = TokenBudgetBatchSampler(LENGTHS, max_tokens=100, seed=seed)
        sampler.sampler.set_epoch(epoch)
        return list(sampler)

    assert batches(7, 1) == batches(7, 1)
    assert batches(7, 1) != batches(7, 2)
    assert batches(7, 1) != batches(8, 1)
    in_turn = TokenBudgetBatchSampler(LENGTHS, max_tokens=100, seed=7)
    assert [list(in_turn), list(in_turn)] == [batches(7, 0), batches(7, 1)]
    assert len(in_turn) == len(batches(7, 0)) == len(batches(7, 1))


def test_a_sequence_that_fits_in_no_batch_is_refused():
    with pytest.raises(ValueError, match="41 tokens does not fit in a batch of 40"):
        TokenBudgetBatchSampler([3, 41], max_tokens=40, seed=0)
    with pytest.raises(ValueError, match="max_rows must be at least 1, not 0"):
        TokenBudgetBatchSampler([3, 4], max_tokens=40, seed=0, max_rows=0)


def pairs(number: int) -> Dataset:
    """Sequences and themselves; the first token is the row's number."""
    generator = np.random.default_rng(0)
    ids = [[7 + row % 22, *generator.integers(7, 29, size=generator.integers(1, 9)).tolist()] for row in range(number)]
    return Dataset.from_dict({"input_ids": ids, "labels": ids, "length": [len(row) for row in ids]})


def train_seq2seq(folder, tokenizer, resume=None, **overrides) -> TokenBudgetTrainer:
    torch.manual_seed(0)
    model = VanillaTransformerForConditionalGeneration(tiny_config())
    settings = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "logging_steps": 1, "learning_rate": 1e-3}
    trainer = TokenBudgetTrainer(
        max_tokens=40,
        model=model,
        args=Seq2SeqTrainingArguments(str(folder), **{**settings, **overrides}),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        train_dataset=pairs(60),
        processing_class=tokenizer,
        compute_loss_func=LabelSmoothingLoss(0.1, pad_token_id=0),
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def test_a_run_with_a_token_budget_resumes_in_the_middle_of_an_epoch(tmp_path, tokenizer):
    settings = {"num_train_epochs": 3, "save_steps": 1}
    whole = train_seq2seq(tmp_path / "whole", tokenizer, **settings)
    batches_an_epoch = len(whole.get_train_dataloader())
    checkpoint = tmp_path / "whole" / f"checkpoint-{batches_an_epoch + 3}"
    resumed = train_seq2seq(tmp_path / "resumed", tokenizer, resume=str(checkpoint), **settings)
    assert whole.state.global_step == resumed.state.global_step == 3 * batches_an_epoch
    for (name, expected), value in zip(whole.model.named_parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(value, expected), name


@pytest.mark.parametrize(("data_seed", "seed"), [(None, 42), (7, 7)])
def test_batches_of_a_token_budget_are_as_asked_for(tmp_path, tokenizer, data_seed, seed):
    model = VanillaTransformerForConditionalGeneration(tiny_config())
    dataset = pairs(60)
    trainer = TokenBudgetTrainer(
        max_tokens=40,
        max_rows=6,
        model=model,
        args=Seq2SeqTrainingArguments(str(tmp_path), use_cpu=True, report_to="none", seed=42, data_seed=data_seed),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        train_dataset=dataset,
    )
    loaded = [batch["input_ids"][:, 0].tolist() for batch in trainer.get_train_dataloader()]
    batches = TokenBudgetBatchSampler(dataset["length"][:], max_tokens=40, seed=seed, max_rows=6)
    assert loaded == [[dataset[place]["input_ids"][0] for place in batch] for batch in batches]


@pytest.mark.slow
def test_two_processes_share_the_batches_out(tmp_path):
    """Each trains on every other batch of those that one process would have."""
    program = tmp_path / "share.py"
    program.write_text(SHARE)
    # `--standalone` takes a port that is free.
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}
    result = subprocess.run([*launch, program, tmp_path], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    shares = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)]

    sampler = TokenBudgetBatchSampler(pairs(60)["length"][:], max_tokens=40, seed=42)
    numbers = pairs(60)["input_ids"][:]
    batches = [sorted(numbers[place] for place in batch) for batch in sampler]
    batches += batches[: len(batches) % 2]  # accelerate evens the shares out
    for rank, share in enumerate(shares):
        assert [sorted(batch) for batch in share] == batches[rank::2]


SHARE = """
import json, sys
from test_training import pairs, tiny_config
import torch
from transformers import Seq2SeqTrainingArguments
from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.training import TokenBudgetTrainer

seen = []

def collate(rows):
    seen.append([row["input_ids"] for row in rows])
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row["input_ids"]) for row in rows], batch_first=True)
    return {"input_ids": ids, "attention_mask": ids.ne(0), "labels": ids.masked_fill(ids == 0, -100)}

folder = sys.argv[1]
arguments = Seq2SeqTrainingArguments(
    folder + "/run", use_cpu=True, report_to="none", num_train_epochs=1, save_strategy="no", seed=42
)
trainer = TokenBudgetTrainer(
    max_tokens=40,
    model=VanillaTransformerForConditionalGeneration(tiny_config()),
    args=arguments,
    data_collator=collate,
    train_dataset=pairs(60),
)
trainer.train()
with open(f"{folder}/{arguments.process_index}.json", "w") as file:
    json.dump(seen, file)
"""


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
        ("seed: 1.5\n", [], "seed"),
        ("seed: null\n", [], "--seed: the recipe gives no value"),
        ("include_for_metrics:\n", [], "--include_for_metrics: the recipe gives no value"),
        ("gradient_accumulation_steps: 0\n", [], "--gradient_accumulation_steps: at least 1, not 0"),
        ("per_device_eval_batch_size: 0\n", [], "--per_device_eval_batch_size: at least 1, not 0"),
        ("seed: 1\n", ["--prediction_loss_only", "true"], "--prediction_loss_only: cannot be changed here"),
        ("seed: 1\n", ["--eval_do_concat_batches", "false"], "--eval_do_concat_batches: cannot be changed here"),
        ("batch_eval_metrics: true\n", [], "--batch_eval_metrics: cannot be changed here"),
        ("dataloader_drop_last: true\n", [], "--dataloader_drop_last: cannot be changed here"),
        ("dataloader_num_workers: 1\n", ["--dataloader_persistent_workers", "true"], "other random numbers"),
        ("remove_unused_columns: false\n", [], "--remove_unused_columns: cannot be changed here"),
        ("label_names: text\n", [], "--label_names: cannot be changed here"),
        ("num_train_epochs: [3]\n", [], "num_train_epochs"),
    ],
)
def test_arguments_that_make_no_sense_end_with_status_2_and_one_line(recipe, flags, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        read_recipe(tmp_path, recipe, *flags)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_recipe_may_leave_out_the_brackets_of_a_list(tmp_path):
    parsed = read_recipe(tmp_path, "report_to: none\ninclude_for_metrics: loss\n")
    assert parsed.include_for_metrics == ["loss"]


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
    model = VanillaTransformerModel(tiny_config())
    save_record(tmp_path, model, metrics={}, settings=given, seed=1, data={}, resumed_from=None)
    again = parse_arguments([TrainingArguments], "test", [str(tmp_path / "recipe.yaml")])[0]
    assert again.to_dict() == {**parsed.to_dict(), "num_train_epochs": 5}


def test_a_recipe_holds_nothing_of_one_call():
    flags = ["--output_dir", "runs/x", "--seed", "3"]
    once = ["--resume_from_checkpoint", "--run_name", "x", "--hub_token", "hf_x", "--push_to_hub", "true"]
    assert given_settings([TrainingArguments], [*flags, *once]) == {"seed": 3}


# --- Metrics and record ---


def test_perplexity_is_that_of_all_tokens():
    logits, labels = torch.randn(3, 5, 11), torch.randint(11, (3, 5))
    labels[0, 2:] = -100
    parts = [token_losses(logits[:2], labels[:2]), token_losses(logits[2:], labels[2:])]
    measured = compute_perplexity(EvalPrediction(predictions=torch.cat(parts).numpy(), label_ids=None))
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    assert measured["token_loss"] == pytest.approx(expected.item(), rel=1e-5)
    assert measured["perplexity"] == pytest.approx(expected.exp().item(), rel=1e-5)


def test_perplexity_is_measured_in_full_precision():
    logits, labels = 4 * torch.randn(4, 50, 11).bfloat16(), torch.randint(11, (4, 50))
    expected = torch.nn.functional.cross_entropy(logits.double().flatten(0, 1), labels.flatten())
    losses = token_losses(logits, labels)
    assert losses.dtype == torch.float32
    assert (losses[:, 0].double().sum() / 200).item() == pytest.approx(expected.item(), rel=1e-5)
    # More tokens than float32 counts one by one.
    many = np.array([[2.0**24, 2.0**24], *[[3.0, 1.0]] * 9], dtype=np.float32)
    measured = compute_perplexity(EvalPrediction(predictions=many, label_ids=None))
    assert measured["token_loss"] == (2**24 + 27) / (2**24 + 9)


def test_the_report_counts_right_and_wrong():
    logits = np.array([[2.0, 1.0], [0.0, 1.0], [0.0, 3.0], [1.0, 0.0]])
    report = classification_report(logits, np.array([0, 1, 0, 1]))
    assert report["accuracy"] == 0.5
    assert report["confusion_matrix"] == [[1, 1], [1, 1]]  # rows are true, columns predicted
    assert report["f1"] == 0.5
    # By hand: precision 2/3 and recall 1 of label 1; of three labels the mean of 1, 2/3 and 0.
    assert classification_report(np.eye(2)[[1, 1, 1, 0]], np.array([1, 0, 1, 0]))["f1"] == pytest.approx(0.8)
    report = classification_report(np.eye(3)[[0, 0, 1, 1]], np.array([0, 0, 1, 2]))
    assert report["f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert classification_report(logits, np.array([0, 0, 0, 0]))["confusion_matrix"] == [[2, 2], [0, 0]]


def test_calibration_compares_confidence_with_accuracy():
    """Eight answers, all as sure as 0.75, six of them right; two that are sure, one of them right."""
    probabilities = np.array([[0.75, 0.25]] * 8 + [[0.0, 1.0]] * 2)
    labels = np.array([0] * 6 + [1] * 2 + [1, 0])
    report = calibration_report(probabilities, labels)
    assert report["bins"] == [
        {"rows": 8, "confidence": 0.75, "accuracy": 0.75},
        {"rows": 2, "confidence": 1.0, "accuracy": 0.5},
    ]
    assert report["expected_calibration_error"] == pytest.approx(0.2 * 0.5)


def test_an_evaluations_training_loss_is_the_mean_over_its_steps():
    """The last logging before an evaluation may be of fewer steps than the others."""
    log = [
        {"loss": 4.0, "epoch": 0.5, "step": 10},
        {"loss": 1.0, "epoch": 0.6, "step": 12},
        {"eval_loss": 3.0, "epoch": 0.6, "step": 12},
        {"loss": 2.0, "epoch": 0.8, "step": 16},
        {"eval_loss": 2.5, "epoch": 0.8, "step": 16},
    ]
    assert [row["train_loss"] for row in epochs(log)] == [(10 * 4.0 + 2 * 1.0) / 12, 2.0]


def test_the_checksum_depends_on_rows_and_their_order():
    features = Features({"text": Value("string"), "label": ClassLabel(names=["a", "b"])})
    data = Dataset.from_dict({"text": ["x", "y"], "label": [0, 1]}, features=features)
    assert checksum(data) == checksum(data.select([0, 1]))
    assert checksum(data) != checksum(data.select([1, 0]))


def test_the_checksum_is_that_of_the_rows_as_json_lines():
    """What published records and `NSMC_TEST_SHA256` were made with."""
    data = Dataset.from_dict({"text": ["영화", "a"], "label": [0, 1]})
    assert checksum(data) == hashlib.sha256('["영화", 0]\n["a", 1]\n'.encode()).hexdigest()


def test_a_files_checksum_is_that_of_all_of_it(tmp_path):
    """It is what the cache goes by."""
    content = bytes(3_000_000)
    for tail in (b"a", b"b"):
        (tmp_path / "texts").write_bytes(content + tail)
        assert file_checksum(tmp_path / "texts") == hashlib.sha256(content + tail).hexdigest()


def test_the_curves_are_a_picture(tmp_path):
    from matplotlib.image import imread

    history = [
        {"epoch": e, "train_loss": 1 / e, "eval_loss": 1.1 / e, "eval_accuracy": 1 - 0.5 / e} for e in range(1, 4)
    ]
    plot_training_curves(history, tmp_path / "curves.png")
    picture = imread(tmp_path / "curves.png")
    assert picture.shape[0] > 300 and picture.std() > 0.05
