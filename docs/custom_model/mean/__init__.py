"""A classifier by the mean of its tokens' vectors; importing this registers it with transformers' Auto classes."""

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from .configuration_mean import MeanConfig
from .modeling_mean import MeanForSequenceClassification, MeanModel


AutoConfig.register(MeanConfig.model_type, MeanConfig)
AutoModel.register(MeanConfig, MeanModel)
AutoModelForSequenceClassification.register(MeanConfig, MeanForSequenceClassification)
MeanConfig.register_for_auto_class()
MeanModel.register_for_auto_class("AutoModel")
MeanForSequenceClassification.register_for_auto_class("AutoModelForSequenceClassification")
