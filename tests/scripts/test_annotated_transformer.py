"""Label smoothing and the rates of the paper, as the Annotated Transformer computes them."""

from functools import partial

import numpy as np
import pytest
import torch
from label_smoothing import label_smoothing_loss, smoothed_targets
from safetensors.torch import load_file
from shared import ROOT, tiny_config
from transformers import Trainer, TrainingArguments
from transformers.modeling_outputs import Seq2SeqLMOutput

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.training.trainer import noam_peak


@pytest.fixture(scope="module")
def annotated() -> dict[str, torch.Tensor]:
    """What the Annotated Transformer's own code computes."""
    return load_file(ROOT / "tests/reference_outputs/annotated-transformer-training.safetensors")


@pytest.mark.parametrize(
    ("d_model", "factor", "warmup"), [(256, 1, 4000), (512, 1, 4000), (512, 1, 8000), (512, 2, 4000)]
)
def test_the_noam_schedule_is_inverse_sqrt_with_its_peak(d_model, factor, warmup, annotated, tmp_path):
    """The rates that Trainer sets, update by update; it counts from 0, the tutorial from 1."""
    schedule = {"lr_scheduler_type": "inverse_sqrt", "warmup_steps": warmup}
    peak = noam_peak(d_model, warmup, factor)
    settings = TrainingArguments(str(tmp_path), use_cpu=True, report_to="none", learning_rate=peak, **schedule)
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
    loss = partial(label_smoothing_loss, smoothing=0.1, pad_token_id=0)
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
    loss = partial(label_smoothing_loss, smoothing=0.1, pad_token_id=0)
    first = loss(Seq2SeqLMOutput(logits=logits[:1]), labels[:1], 8)
    second = loss(Seq2SeqLMOutput(logits=logits[1:, :3]), labels[1:, :3], 8)
    torch.testing.assert_close(loss(Seq2SeqLMOutput(logits=logits), labels), first + second)
    unsmoothed = label_smoothing_loss(Seq2SeqLMOutput(logits=logits), labels, smoothing=0.0, pad_token_id=0)
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    torch.testing.assert_close(unsmoothed, expected)
    nothing = torch.full_like(labels, -100)
    assert loss(Seq2SeqLMOutput(logits=logits), nothing) == 0
    with pytest.raises(ValueError, match="a label is the padding token, 0"):
        loss(Seq2SeqLMOutput(logits=logits), labels.clamp(min=0))
