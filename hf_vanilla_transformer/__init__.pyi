# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
# The public names. data/imports.py reads this file at run time, too: it has only `from .module import name as name`.
from .data.errors import DataError as DataError
from .evaluation.evaluate import evaluate as evaluate
from .exports import export as export
from .exports.conversion import convert_checkpoint as convert_checkpoint
from .exports.conversion import load_source_state_dict as load_source_state_dict
from .exports.conversion import to_source_state_dict as to_source_state_dict
from .inference import Classifier as Classifier
from .inference import Translator as Translator
from .inference.registration import VanillaTransformerConfig as VanillaTransformerConfig
from .inference.registration import VanillaTransformerEncoderModel as VanillaTransformerEncoderModel
from .inference.registration import (
    VanillaTransformerForConditionalGeneration as VanillaTransformerForConditionalGeneration,
)
from .inference.registration import (
    VanillaTransformerForSequenceClassification as VanillaTransformerForSequenceClassification,
)
from .inference.registration import VanillaTransformerModel as VanillaTransformerModel
from .inference.registration import VanillaTransformerPreTrainedModel as VanillaTransformerPreTrainedModel
from .training.classifier import train_classifier as train_classifier
from .training.pretraining import pretrain as pretrain
from .training.run import Run as Run
from .training.translator import train_translator as train_translator

__version__: str
