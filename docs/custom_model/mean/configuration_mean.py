"""Configuration of a classifier by the mean of its tokens' vectors."""

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig


@strict
class MeanConfig(PreTrainedConfig):
    vocab_size: int = 8007
    hidden_size: int = 64

    model_type = "mean"
