"""Training by transformers' Trainer: what must hold of our model in it, and batches of a number of tokens."""

import numpy as np
import pytest
import torch
from accelerate.data_loader import SeedableRandomSampler
from datasets import Dataset
from shared import read_json, tiny_config
from transformers import (
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
    Seq2SeqTrainingArguments,
    Trainer,
)

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.evaluation.metrics import compute_metrics
from hf_vanilla_transformer.training.batches import TokenBudgetBatchSampler
from hf_vanilla_transformer.training.trainer import ResumableTrainer, TokenBudgetTrainer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["가 나 다 라", "가나다라 마바사"], vocab_size=29, max_length=16)


def rows(number: int, task: str = "classification") -> Dataset:
    """Sequences of unequal length; the label says whether token 7 or token 8 comes first, or is the sequence."""
    generator = np.random.default_rng(0)
    data = {"input_ids": [], "labels": [], "length": []}
    for _ in range(number):
        label = int(generator.integers(2))
        ids = [7 + label, *generator.integers(9, 29, size=generator.integers(1, 9)).tolist()]
        data["input_ids"].append(ids)
        data["labels"].append(label if task == "classification" else [*ids, 3])
        data["length"].append(len(ids))
    return Dataset.from_dict(data)


def arguments(folder, **overrides) -> Seq2SeqTrainingArguments:
    defaults = {
        **{"use_cpu": True, "report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1},
        **{"learning_rate": 3e-3, "per_device_train_batch_size": 8, "train_sampling_strategy": "group_by_length"},
    }
    return Seq2SeqTrainingArguments(str(folder), **{**defaults, **overrides})


def train_classifier(folder, tokenizer, resume=None, **overrides) -> Trainer:
    torch.manual_seed(0)
    trainer = ResumableTrainer(
        VanillaTransformerForSequenceClassification(tiny_config()),
        arguments(folder, **overrides),
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=rows(64),
        eval_dataset=rows(40),
        processing_class=tokenizer,
        compute_metrics=compute_metrics,
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


@pytest.mark.parametrize("task", ["classification", "generation"])
def test_accumulated_gradients_equal_one_large_batch(task, tmp_path, tokenizer):
    """Targets of unequal length: a mean of means would weigh their tokens unequally."""
    data = rows(16, task).remove_columns("length")
    config = tiny_config(dropout=0.0, attention_dropout=0.0)

    def train(batch_size, accumulation):
        torch.manual_seed(0)
        if task == "generation":
            model = VanillaTransformerForConditionalGeneration(config)
            collator = DataCollatorForSeq2Seq(tokenizer, model)
        else:
            model = VanillaTransformerForSequenceClassification(config)
            collator = DataCollatorWithPadding(tokenizer)
        settings = {
            **{"train_sampling_strategy": "sequential", "optim": "sgd", "max_grad_norm": 0.0, "learning_rate": 0.1},
            **{"num_train_epochs": 2, "lr_scheduler_type": "constant"},
        }
        sizes = {"per_device_train_batch_size": batch_size, "gradient_accumulation_steps": accumulation}
        trainer = Trainer(model, arguments(tmp_path, **settings, **sizes), data_collator=collator, train_dataset=data)
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        return losses, dict(model.named_parameters())

    losses, weights = train(16, 1)
    accumulated_losses, accumulated_weights = train(4, 4)
    np.testing.assert_allclose(accumulated_losses, losses, rtol=0, atol=1e-4)
    torch.testing.assert_close(accumulated_weights, weights, rtol=0, atol=1e-5)


def test_a_finished_run_takes_no_further_step(tmp_path, tokenizer):
    """Trainer alone would take one more."""
    settings = {"max_steps": 3, "save_strategy": "steps", "save_steps": 1}
    whole = train_classifier(tmp_path / "run", tokenizer, **settings)
    assert whole.state.global_step == 3
    # A checkpoint is a model's folder that needs no package.
    files = {"modeling_vanilla_transformer.py", "configuration_vanilla_transformer.py", "tokenizer.json"}
    assert files <= {file.name for file in (tmp_path / "run" / "checkpoint-3").iterdir()}
    assert "auto_map" in read_json(tmp_path / "run" / "checkpoint-3" / "config.json")
    resumed = train_classifier(tmp_path / "run", tokenizer, resume=True, **settings)
    assert resumed.state.global_step == 3
    for (name, expected), value in zip(whole.model.named_parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(value, expected), name


@pytest.mark.parametrize("data_seed", [None, 7])
def test_batches_have_the_tokens_and_the_order_of_the_sampler(tmp_path, tokenizer, data_seed):
    model, dataset = VanillaTransformerForConditionalGeneration(tiny_config()), rows(60, "generation")
    trainer = TokenBudgetTrainer(
        max_tokens=40,
        max_rows=6,
        model=model,
        args=arguments(tmp_path, seed=42, data_seed=data_seed),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        train_dataset=dataset,
    )
    loaded = [[ids[ids != 0].tolist() for ids in batch["input_ids"]] for batch in trainer.get_train_dataloader()]
    batches = TokenBudgetBatchSampler(dataset["length"][:], max_tokens=40, seed=data_seed or 42, max_rows=6)
    assert loaded == [dataset[batch]["input_ids"] for batch in batches]


def test_a_token_budget_refuses_accelerates_other_batches(tmp_path):
    """With two processes, they end in raw errors, or in processes that wait for one another."""
    model = VanillaTransformerForConditionalGeneration(tiny_config())
    for setting in ({"split_batches": True}, {"dispatch_batches": True}, {"even_batches": False}):
        with pytest.raises(DataError, match="--max_tokens"):
            TokenBudgetTrainer(max_tokens=40, model=model, args=arguments(tmp_path, accelerator_config=setting))


@pytest.mark.parametrize(("number", "accumulation"), [(-100.0, 1), (-100.0, 2), (-99.0, 2)])
def test_a_number_to_predict_may_be_minus_100(number, accumulation, tmp_path, tokenizer):
    """The loss of a step is the mean over its rows; -100 marks what is not predicted only among ids."""
    model = VanillaTransformerForSequenceClassification(tiny_config(num_labels=1, problem_type="regression"))
    model.classifier.weight.data.zero_()
    data = Dataset.from_dict({"input_ids": [[7, 8]] * 8, "labels": [number, 1.0, number, 2.0] * 2})
    sizes = {"per_device_train_batch_size": 8 // accumulation, "gradient_accumulation_steps": accumulation}
    settings = arguments(tmp_path, max_steps=1, train_sampling_strategy="sequential", **sizes)
    collator = DataCollatorWithPadding(tokenizer)
    trainer = ResumableTrainer(model, settings, data_collator=collator, train_dataset=data)
    trainer.train()
    (logged,) = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert logged == pytest.approx((2 * number**2 + 1 + 4) / 4, rel=1e-5)


LENGTHS = np.random.default_rng(0).integers(1, 40, size=500).tolist()


@pytest.mark.parametrize("max_rows", [None, 4])
def test_batches_hold_as_many_tokens_as_fit(max_rows):
    batches = list(TokenBudgetBatchSampler(LENGTHS, max_tokens=100, seed=7, max_rows=max_rows))
    assert sorted(place for batch in batches for place in batch) == list(range(500))
    longest = [max(LENGTHS[place] for place in batch) for batch in batches]
    sizes = [len(batch) * length for batch, length in zip(batches, longest, strict=True)]
    assert max(sizes) <= 100
    assert sum(LENGTHS) / sum(sizes) > 0.9  # few pads
    if max_rows is None:
        assert np.mean(sizes) > 80  # and few small batches
    else:
        assert max(map(len, batches)) == max_rows
    assert sorted(longest) != longest != sorted(longest, reverse=True)  # in random order


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


def test_epochs_are_those_of_accelerates_sampler():
    """The order before it is sorted by length."""
    same_length = TokenBudgetBatchSampler([1] * 50, max_tokens=50, seed=7)
    assert [list(same_length) for _ in range(2)] == [
        [list(SeedableRandomSampler(range(50), data_seed=7 + epoch))] for epoch in range(2)
    ]


def test_a_sequence_that_fits_in_no_batch_is_refused():
    with pytest.raises(ValueError, match="41 tokens does not fit in a batch of 40"):
        TokenBudgetBatchSampler([3, 41], max_tokens=40, seed=0)
