# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Load models and tokenizers from a folder or the Hub; an error names the folder."""

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeVar

import torch
from transformers import (
    AutoConfig,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    dynamic_module_utils,
)
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.auto.tokenization_auto import get_tokenizer_config, tokenizer_class_from_name
from transformers.utils import logging

from ..data.errors import DataError, named_errors
from ..settings.tasks import TASKS, Task
from .engine import TARGET_TOKENIZER, read_export
from .registration import MODELS, VanillaTransformerConfig, VanillaTransformerPreTrainedModel


Model = TypeVar("Model", bound=PreTrainedModel)
# Of source and target; the same one twice where there is one vocabulary.
Tokenizers = tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]
MODEL_INPUTS = ["input_ids", "attention_mask"]
# `from_pretrained` changes functions and torch's default dtype for the whole process while it runs: of two threads
# that load at once, one gets a model with untied weights.
ONE_AT_A_TIME = threading.Lock()


def load_from(loader: Any, folder: str, what: str, **options: Any) -> Any:
    """Load by `from_pretrained` of a class of transformers or ours; nothing else here calls it.

    Code in the folder or repository does not run, even where transformers itself forgets `trust_remote_code`.

    Raises:
        DataError: the "model" or "tokenizer", `what`, cannot be read, or needs code.
    """
    what = what if os.path.isdir(folder) else f"such folder here, and no {what} of the Hub"
    faults = (TypeError, AttributeError, LookupError) if loader in MODELS.values() else ()  # of the model's code
    with named_errors(folder, what, *faults), ONE_AT_A_TIME:
        seconds, dynamic_module_utils.TIME_OUT_REMOTE_CODE = dynamic_module_utils.TIME_OUT_REMOTE_CODE, 0
        try:  # without time for an answer, transformers raises where it would ask on standard input
            return loader.from_pretrained(folder, trust_remote_code=False, **options)
        finally:
            dynamic_module_utils.TIME_OUT_REMOTE_CODE = seconds


def load_config(folder: str) -> VanillaTransformerConfig:
    """Load the configuration of a model from a path or the Hub."""
    name = os.fspath(folder)
    if not os.path.isdir(name) and (name.count("/") != 1 or name[0] in "./~"):  # the Hub is asked for half a minute
        raise DataError(f"{folder}: no such folder, and no name of a model on the Hub, USER/NAME")
    config = load_from(AutoConfig, folder, "model")
    if not isinstance(config, VanillaTransformerConfig):
        raise DataError(f"{folder}: a checkpoint of type {config.model_type!r}, not 'vanilla_transformer'")
    # transformers takes any other name for a repository of kernels, whose code it fetches and runs.
    if config._attn_implementation not in (None, "eager", *ALL_ATTENTION_FUNCTIONS.valid_keys()):
        raise DataError(f"{folder}: attn_implementation is {config._attn_implementation!r}, none of transformers' own")
    return config


def task_of_folder(folder: str, use: str | None = None) -> Task:
    """Return what the model of a folder or Hub name was trained for, if the command `use` takes such models."""
    export = read_export(folder)
    name = (load_config(folder).architectures or ["None"])[0] if export is None else export.task
    task = next((task for task in TASKS.values() if name in (task.name, task.model_class)), None)
    if task is None:
        raise DataError(f"{folder}: neither {' nor '.join(task.noun for task in TASKS.values())} but a {name}")
    if use is not None and use not in task.uses:
        raise DataError(f"{folder}: {use} takes no {task.noun}")
    return task


def load_model(folder: str, **options) -> VanillaTransformerPreTrainedModel:
    """Load a model of the class that its configuration names; `options` are those of `from_pretrained`."""
    config = load_config(folder)
    class_name = (config.architectures or ["None"])[0]
    if class_name not in MODELS:
        raise DataError(f"{folder}: a model of class {class_name}, which is none of this package's")
    model, loading = load_from(MODELS[class_name], folder, "model", config=config, output_loading_info=True, **options)
    if loading["missing_keys"]:
        raise DataError(f"{folder}: {class_name} lacks {', '.join(sorted(loading['missing_keys']))}")
    if not all(weight.isfinite().all() for weight in model.parameters()):
        raise DataError(f"{folder}: weights of the model are NaN or infinite")
    return model


def load_to_train(model_class: type[Model], folder: str, config: VanillaTransformerConfig, **options: Any) -> Model:
    """Load a model to train it further, in float32 whatever its saved precision; `options` as in `load_model`."""
    options |= {"config": config, "dtype": torch.float32, "output_loading_info": True}
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # no table of a new head's weights
    try:
        model, loading = load_from(model_class, folder, "model", **options)
    finally:
        logging.set_verbosity(verbosity)
    new = {*loading["missing_keys"], *(name for name, *_ in loading["mismatched_keys"])}
    if missing := sorted(name for name in new if name.startswith(f"{model.base_model_prefix}.")):
        raise DataError(f"{folder}: the model lacks {', '.join(missing)}")
    return model


def load_tokenizer(folder: str, subfolder: str = "", vocab_size: int | None = None) -> PreTrainedTokenizerBase:
    """Load a tokenizer from a path or the Hub."""
    with named_errors(folder, "tokenizer"):
        check_tokenizer_class(folder, subfolder)
    options = {"subfolder": subfolder, "model_input_names": MODEL_INPUTS}  # a BERT's gives `token_type_ids`, too
    tokenizer = load_from(AutoTokenizer, folder, "tokenizer", **options)
    if vocab_size is not None and (needed := size_needed(tokenizer)) > vocab_size:
        raise DataError(f"{folder}: the tokenizer has the id {needed - 1}, the model's vocabulary {vocab_size} tokens")
    return tokenizer


def check_tokenizer_class(folder: str, subfolder: str) -> None:
    """Raise a `DataError` if a folder names a class that is no tokenizer: `AutoTokenizer` loads any class by name."""
    settings = [get_tokenizer_config(folder, subfolder=subfolder)]
    with suppress(OSError):  # a tokenizer's folder may have no config.json
        settings.append(PreTrainedConfig.get_config_dict(folder, subfolder=subfolder)[0])
    for name in filter(None, (one.get("tokenizer_class") for one in settings)):
        names = {name, name.removesuffix("Fast")} if isinstance(name, str) else ()
        named = [found for one in names if (found := tokenizer_class_from_name(one)) is not None] if names else [name]
        if not all(isinstance(one, type) and issubclass(one, PreTrainedTokenizerBase) for one in named):
            raise DataError(f"{folder}: tokenizer_class: {name} is no tokenizer, or its library is not installed")


def size_needed(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the smallest vocabulary that has all ids of a tokenizer, with those of added tokens and templates."""
    # Do not call a fast one: `save_pretrained` writes how it cut its last text.
    added = tokenizer.backend_tokenizer.encode("").ids if tokenizer.is_fast else tokenizer("")["input_ids"]
    return 1 + max([*tokenizer.get_vocab().values(), *added], default=0)


def load_tokenizer_to_train(
    folder: str | None, model: str | None, needed: Iterable[str], max_length: int
) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder, or else of the model that is trained further; it truncates to `max_length`."""
    tokenizer = load_tokenizer(folder or model)
    for name in needed:
        if getattr(tokenizer, name) is None:
            raise DataError(f"{folder or model}: the tokenizer has no {name}")
    if folder and model:
        try:
            learned = load_tokenizer(model).get_vocab()
        except ValueError:
            learned = {}  # a model that was saved without its tokenizer
        if not learned.items() <= tokenizer.get_vocab().items():
            raise DataError(f"tokenizer: {folder} gives other ids than those that {model} was trained with")
    tokenizer.model_max_length = max_length
    return tokenizer


def load_tokenizers(folder: str, config: VanillaTransformerConfig) -> Tokenizers:
    """Load the source and the target tokenizer of the model with this configuration."""
    tokenizer, size = load_tokenizer(folder, vocab_size=config.vocab_size), config.decoder_vocab_size
    return tokenizer, tokenizer if size is None else load_tokenizer(folder, TARGET_TOKENIZER, size)
