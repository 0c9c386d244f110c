"""R-Drop: the loss is the paper's."""

import pytest
import torch
from conftest import tiny_config
from rdrop import with_rdrop
from transformers import TrainingArguments

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.training.trainer import ResumableTrainer


def test_rdrop_needs_classes(tmp_path):
    model = VanillaTransformerForSequenceClassification(tiny_config(problem_type="multi_label_classification")).train()
    settings = TrainingArguments(tmp_path, use_cpu=True, report_to="none")
    inputs = {"input_ids": torch.tensor([[7, 8]]), "labels": torch.tensor([[1.0, 0.0]])}
    with pytest.raises(ValueError, match="R-Drop needs one label"):
        with_rdrop(ResumableTrainer, 1.0)(model, settings).compute_loss(model, inputs, num_items_in_batch=2)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    "model_class", [VanillaTransformerForConditionalGeneration, VanillaTransformerForSequenceClassification]
)
def test_rdrop_adds_the_divergence_of_two_passes(model_class, smoothing, tmp_path, monkeypatch):
    """Liang et al. 2021, Eq. 4, halved: the mean of both losses, and alpha / 2 of the mean of both divergences."""
    is_classifier = model_class is VanillaTransformerForSequenceClassification
    model = model_class(tiny_config(dropout=0.3)).train()
    ids = torch.randint(7, 29, (3, 5))
    labels = torch.tensor([0, 1, 1]) if is_classifier else ids.flip(1).index_fill(1, torch.tensor([4]), -100)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}
    if not is_classifier:
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
    settings = TrainingArguments(tmp_path, label_smoothing_factor=smoothing, use_cpu=True, report_to="none")
    trainer = with_rdrop(ResumableTrainer, 0.7)(model, settings)
    number = (labels != -100).sum()
    torch.manual_seed(0)
    loss = trainer.compute_loss(model, dict(inputs), num_items_in_batch=number)

    torch.manual_seed(0)
    logits = model(**{name: torch.cat([tensor, tensor]) for name, tensor in inputs.items()}).logits.detach()
    passes = [part.flatten(0, -2) for part in logits.chunk(2)]
    cross_entropies = [
        torch.nn.functional.cross_entropy(part, labels.flatten(), label_smoothing=smoothing) for part in passes
    ]
    one, other = (torch.distributions.Categorical(logits=part[(labels != -100).flatten()]) for part in passes)
    divergences = [torch.distributions.kl_divergence(*pair).mean() for pair in ((one, other), (other, one))]
    assert min(divergences) > 1e-4
    expected = sum(cross_entropies) / 2 + 0.7 / 2 * sum(divergences) / 2
    torch.testing.assert_close(loss, expected)
    with monkeypatch.context() as two:
        # Each of several processes has its share of the items, and their mean is taken.
        two.setattr(type(trainer.accelerator), "num_processes", 2)
        torch.manual_seed(0)
        share = trainer.compute_loss(model, dict(inputs), num_items_in_batch=2 * number)
    torch.testing.assert_close(share, expected)

    model.eval()
    single = trainer.compute_loss(model, dict(inputs), num_items_in_batch=number)
    logits = model(**inputs).logits.detach().flatten(0, -2)
    torch.testing.assert_close(
        single, torch.nn.functional.cross_entropy(logits, labels.flatten(), label_smoothing=smoothing)
    )
