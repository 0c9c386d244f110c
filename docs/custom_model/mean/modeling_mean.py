"""A classifier by the mean of its tokens' vectors."""

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, SequenceClassifierOutput
from transformers.utils import can_return_tuple

from .configuration_mean import MeanConfig


class MeanPreTrainedModel(PreTrainedModel):
    config: MeanConfig
    base_model_prefix = "model"  # in a class with a head, the attribute that holds the model without one


class MeanModel(MeanPreTrainedModel):
    _keys_to_ignore_on_load_unexpected = [r"^classifier\."]

    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.post_init()

    @can_return_tuple
    def forward(self, input_ids, **kwargs):
        return BaseModelOutput(last_hidden_state=self.embed_tokens(input_ids))


class MeanForSequenceClassification(MeanPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = MeanModel(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(self, input_ids, attention_mask=None, labels=None, **kwargs):
        states = self.model(input_ids, return_dict=True).last_hidden_state
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        mean = (states * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)
        logits = self.classifier(mean)
        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config, **kwargs)
        return SequenceClassifierOutput(loss=loss, logits=logits)
