# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Folders of models: where a run goes on, what is loaded from them, averaged, saved."""

import contextlib
import json
import logging
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch.optim.swa_utils import AveragedModel
from transformers import (
    AutoConfig,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from . import modeling_vanilla_transformer
from .arguments import LAST_CHECKPOINT
from .configuration_vanilla_transformer import VanillaTransformerConfig
from .record import TARGET_TOKENIZER, processes


logger = logging.getLogger(__name__)

# What may change in the configuration of a model that is trained further.
DROPOUT_FIELDS = {"dropout", "attention_dropout", "activation_dropout", "embedding_dropout"}
# And, of a model with `norm_first` that is pretrained further, what may become more (`load_to_train`).
LAYER_FIELDS = ("encoder_layers", "decoder_layers")
# What does not change what the weights mean, either: where the classes are, what was last done with them, how exact.
_PASSING_FIELDS = DROPOUT_FIELDS | {"architectures", "auto_map", "dtype", "problem_type", "use_cache"}


# --- Where a run goes on ---


def prepare_output_dir(output_dir: str, resume: str | bool | None = None) -> str | None:
    """See that a run may write to its folder, and find where it goes on.

    Args:
        output_dir: The run's folder; made if it is not there.
        resume: None or false for a new run; a checkpoint's folder; or `LAST_CHECKPOINT` or true for the last whole
            one in `output_dir`. One that is not whole is left as it is: Trainer writes it anew when it gets there.

    Returns:
        The folder of the checkpoint to go on from; None for a new run.

    Raises:
        ValueError: a new run would write into a folder that is not empty, or there is no checkpoint to go on from,
            or the one that was named is not whole, or of another model.
        OSError: the folder cannot be written.
    """
    folder = Path(output_dir)
    # Other switches are `true` or `false`, in a recipe and as flags, so that people write this one so, too.
    resume = {"true": LAST_CHECKPOINT, "false": None}.get(str(resume).lower(), resume)
    if resume is None:
        if folder.is_dir() and any(folder.iterdir()):
            raise ValueError(
                f"{output_dir} is not empty, and nothing is overwritten: choose another --output_dir "
                "(an interrupted run goes on with --resume_from_checkpoint)"
            )
        checkpoint = None
    elif resume == LAST_CHECKPOINT:
        checkpoint = _last_whole_checkpoint(output_dir)
        if checkpoint is None:
            raise ValueError(f"{output_dir}: no checkpoint to go on from")
    else:
        checkpoint = resume
        if not Path(checkpoint).is_dir():
            raise ValueError(f"{checkpoint}: no checkpoint to go on from")
        load_config(checkpoint)
        if damage := checkpoint_damage(checkpoint):
            raise ValueError(f"{checkpoint}: not a whole checkpoint ({damage})")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass  # the folder can be written
    return checkpoint


def checkpoint_damage(checkpoint: str) -> str | None:
    """Tell whether training can go on from a checkpoint, without reading all of it.

    Args:
        checkpoint: The checkpoint's folder.

    Returns:
        What is wrong with it: a file that is missing, or that is not there to its end. None for a whole checkpoint.
    """
    for patterns in _CHECKPOINT_FILES:
        files = sorted(file for pattern in patterns for file in Path(checkpoint).glob(pattern))
        if not files:
            return f"{patterns[0]} is missing"
        for file in files:
            try:
                if file.suffix == ".safetensors":
                    with safe_open(file, "pt"):
                        pass  # the header is at the beginning, and says how long the file is
                elif file.is_dir():
                    (file / ".metadata").stat()  # of a folder of parts, the list of them comes last
                elif file.suffix == ".json":
                    json.loads(file.read_text(encoding="utf-8"))
                else:
                    with zipfile.ZipFile(file):
                        pass  # the directory is at the end
            except (OSError, ValueError, SafetensorError, zipfile.BadZipFile):
                return f"{file.name} is broken off"
    # Of several processes, each writes its own; a single one's has no number.
    for rank in range(processes() if not Path(checkpoint, "rng_state.pth").is_file() else 0):
        if not Path(checkpoint, f"rng_state_{rank}.pth").is_file():
            return f"rng_state_{rank}.pth is missing"
    return None


# What Trainer reads when it goes on, in the order in which it writes, its own state last; FSDP's names come second.
_CHECKPOINT_FILES = (
    ("model*.safetensors", "pytorch_model_fsdp*"),
    ("optimizer.pt", "optimizer.bin", "optimizer_*"),
    ("scheduler.pt",),
    ("rng_state*.pth",),
    ("trainer_state.json",),
)


def _last_whole_checkpoint(output_dir: str) -> str | None:
    """The last checkpoint in a folder, but for those whose writing was interrupted."""
    for checkpoint in reversed(_checkpoints(output_dir)):
        damage = checkpoint_damage(checkpoint)
        if damage is None:
            return checkpoint
        logger.warning(f"{checkpoint}: not a whole checkpoint ({damage}), skipped")
    return None


def last_checkpoints(folder: str, number: int) -> list[str]:
    """The last checkpoints of a run, in the order of their steps.

    Args:
        folder: The run's folder.
        number: How many.

    Returns:
        The checkpoints' folders.

    Raises:
        ValueError: there are fewer, or none is asked for.
    """
    if number < 1:
        raise ValueError(f"the number of checkpoints must be at least 1, not {number}")
    checkpoints = _checkpoints(folder)
    if len(checkpoints) < number:
        raise ValueError(f"{folder}: {len(checkpoints)} checkpoints, fewer than {number}")
    return checkpoints[-number:]


def _checkpoints(folder: str) -> list[str]:
    """All checkpoints of a run, in the order of their steps."""
    prefix = f"{PREFIX_CHECKPOINT_DIR}-"
    steps = {path.name.removeprefix(prefix): path for path in Path(folder).glob(f"{prefix}*") if path.is_dir()}
    return [str(steps[step]) for step in sorted(filter(str.isdecimal, steps), key=int)]


# --- Loading ---


def load_config(folder: str) -> VanillaTransformerConfig:
    """Load the configuration of a model folder or Hub repository.

    Args:
        folder: A path, or the name of a repository.

    Returns:
        The configuration.

    Raises:
        ValueError: there is no such folder or repository, it has no readable `config.json`, or the model is of
            another type.
    """
    with named_errors(folder, "model"):
        config = AutoConfig.from_pretrained(folder)
    if not isinstance(config, VanillaTransformerConfig):
        raise ValueError(f"{folder}: a checkpoint of type {config.model_type!r}, not 'vanilla_transformer'")
    return config


def load_model(folder: str, **options) -> PreTrainedModel:
    """Load a model of any of this package's classes.

    Args:
        folder: A path, or the name of a repository.
        **options: What `from_pretrained` takes besides.

    Returns:
        The model, in the class that its configuration names.

    Raises:
        ValueError: there is no such folder or repository, or it holds no whole model of this package.
    """
    config = load_config(folder)
    class_name = (config.architectures or ["None"])[0]
    if class_name not in modeling_vanilla_transformer.__all__:
        raise ValueError(f"{folder}: a model of class {class_name}, which is none of this package's")
    model_class = getattr(modeling_vanilla_transformer, class_name)
    with named_errors(folder, "model"):
        model, loading = model_class.from_pretrained(folder, config=config, output_loading_info=True, **options)
    if loading["missing_keys"]:
        raise ValueError(f"{folder}: {class_name} lacks {', '.join(sorted(loading['missing_keys']))}")
    return model


def load_to_train(
    model_class: type[PreTrainedModel], folder: str, config: VanillaTransformerConfig, **options
) -> PreTrainedModel:
    """Load a model to train it further, in float32 whatever it was saved in.

    Where `config` has more layers than the folder's model, which must have `norm_first`, the new ones are on top of
    the others, and are the identity until they have learned: a sub-layer adds its output to what it reads, and begins
    with zeros in the output's projection alone (Wu et al. 2024, "LLaMA Pro", block expansion).

    Args:
        model_class: The class of the model; its head is new where the folder's model has none.
        folder: A path, or the name of a repository.
        config: The configuration of the model.
        **options: What `from_pretrained` takes besides.

    Returns:
        The model.

    Raises:
        ValueError: as in `load_config`, or other weights of the folder's model are missing or do not fit.
    """
    before = load_config(folder)
    with named_errors(folder, "model"):
        model, loading = model_class.from_pretrained(
            folder, config=config, dtype=torch.float32, output_loading_info=True, **options
        )
    new_layers = tuple(
        f"{model.base_model_prefix}.{stack}.layers.{index}."
        for stack in ("encoder", "decoder")
        for index in range(getattr(before, f"{stack}_layers"), getattr(config, f"{stack}_layers"))
    )
    new = {*loading["missing_keys"], *(name for name, *_ in loading["mismatched_keys"])}
    body = [name for name in new if name.startswith(f"{model.base_model_prefix}.")]
    if lacking := sorted(name for name in body if not name.startswith(new_layers)):
        raise ValueError(f"{folder}: the model lacks {', '.join(lacking)}")
    with torch.no_grad():
        for name in body:
            if name.split(".")[-2] in ("out_proj", "fc2"):
                model.get_parameter(name).zero_()
    return model


def load_translator(folder: str) -> modeling_vanilla_transformer.VanillaTransformerForConditionalGeneration:
    """Load a model that writes, as `load_model` does.

    Raises:
        ValueError: as in `load_model`, or it is a model of another class.
    """
    model = load_model(folder)
    if not isinstance(model, modeling_vanilla_transformer.VanillaTransformerForConditionalGeneration):
        raise ValueError(f"{folder}: not a translator but a {type(model).__name__}")
    return model


def load_tokenizer(folder: str, subfolder: str = "") -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder or Hub repository.

    Args:
        folder: A path, or the name of a repository.
        subfolder: A folder in it.

    Returns:
        The tokenizer.

    Raises:
        ValueError: there is no such folder or repository, or no tokenizer in it.
    """
    with named_errors(folder, "tokenizer"):
        return AutoTokenizer.from_pretrained(folder, subfolder=subfolder)


def load_tokenizer_to_train(
    folder: str | None, model: str | None, needed: Iterable[str], max_length: int
) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model that is trained further, or another one for a new model.

    Args:
        folder: As in `load_tokenizer`; None for the model's.
        model: The model's folder or Hub name; None where it is new.
        needed: Names of the special tokens that there must be, such as `pad_token`.
        max_length: The number of tokens that it cuts a text to from now on.

    Returns:
        The tokenizer.

    Raises:
        ValueError: as in `load_tokenizer`, or a special token is missing, or the model has learned other ids.
    """
    tokenizer = load_tokenizer(folder or model)
    for name in needed:
        if getattr(tokenizer, name) is None:
            raise ValueError(f"{folder or model}: the tokenizer has no {name}")
    if folder and model:
        try:
            learned = load_tokenizer(model).get_vocab()
        except ValueError:
            learned = {}  # a model that was saved without its tokenizer
        if not learned.items() <= tokenizer.get_vocab().items():
            raise ValueError(f"--tokenizer: {folder} gives other ids than those that {model} has learned")
    tokenizer.model_max_length = max_length
    return tokenizer


def load_target_tokenizer(
    folder: str, config: VanillaTransformerConfig, tokenizer: PreTrainedTokenizerBase
) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a translator's target side.

    Args:
        folder: As in `load_tokenizer`.
        config: The translator's configuration.
        tokenizer: The source side's tokenizer.

    Returns:
        The same one where there is one vocabulary, else the one in the folder `TARGET_TOKENIZER`.

    Raises:
        ValueError: as in `load_tokenizer`.
    """
    return tokenizer if config.decoder_vocab_size is None else load_tokenizer(folder, TARGET_TOKENIZER)


@contextlib.contextmanager
def named_errors(folder: str, what: str) -> Iterator[None]:
    """Have transformers' errors name the folder, which they do not always do.

    Args:
        folder: What is read.
        what: What it should hold.

    Raises:
        ValueError: in place of what was raised in the context: about files, JSON, missing keys, shapes of weights.
    """
    try:
        yield
    except Exception as error:
        # A tokenizer that tokenizers cannot read is an Exception of no class of its own.
        if type(error) is not Exception and not isinstance(error, (OSError, ValueError, KeyError, RuntimeError)):
            raise
        raise ValueError(f"{folder}: no {what} can be read here ({error})") from error


# --- Weights ---


def average_checkpoints(folders: list[str]) -> PreTrainedModel:
    """The mean of several checkpoints' weights (Vaswani et al. §6.1, the Annotated Transformer's "Model Averaging").

    Args:
        folders: Folders of one model at several steps.

    Returns:
        The model, in the class that its configuration names.

    Raises:
        ValueError: there is no folder, a folder holds no such model, or the models' shapes differ.
    """
    if not folders:
        raise ValueError("there are no checkpoints to average")
    model = load_model(folders[0])
    dtype = model.dtype
    model.float()  # a mean of half-precision numbers must not be rounded at every step
    average_with(model, load_alike(model, folders[1:]))
    return model.to(dtype)


def lasting_fields(config: PreTrainedConfig) -> dict[str, Any]:
    """What of a configuration the meaning of the weights depends on.

    Args:
        config: The configuration of a model.

    Returns:
        The fields that differ from their defaults; without the rates of dropout, and what else may differ.
    """
    return {name: value for name, value in config.to_diff_dict().items() if name not in _PASSING_FIELDS}


def load_alike(model: PreTrainedModel, folders: list[str]) -> Iterator[PreTrainedModel]:
    """Load models whose weights can be averaged with a model's.

    Args:
        model: Any model.
        folders: Folders or Hub names of models of the same class and configuration, rates of dropout excepted.

    Yields:
        The models, one after the other.

    Raises:
        ValueError: a folder holds no such model.
    """
    for folder in folders:
        other = load_model(folder)
        if type(other) is not type(model) or lasting_fields(other.config) != lasting_fields(model.config):
            raise ValueError(f"{folder}: another model than {model.name_or_path or 'the new one'}")
        yield other


def average_with(model: PreTrainedModel, others: Iterable[PreTrainedModel]) -> None:
    """Make a model's weights the mean of its own and those of others (Wortsman et al. 2022, "Model soups").

    Runs that went on from one model with other data, seeds or rates are often better together than each.

    Args:
        model: A model in float32, whose weights change.
        others: What `load_alike` loaded.
    """
    average = AveragedModel(model)
    average.update_parameters(model)
    for other in others:
        average.update_parameters(other.to(model.device).float())
    model.load_state_dict(average.module.state_dict())


def round_weights(model: PreTrainedModel, dtype: torch.dtype) -> None:
    """Round a model's weights to what they are in a lower precision; it goes on computing in its own.

    Args:
        model: A model, whose weights change.
        dtype: The lower precision, such as float16.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(dtype))


def save_weights_in(model: PreTrainedModel, folder: str, dtype: torch.dtype) -> None:
    """Save a model with its weights in a lower precision, for a smaller file.

    `config.json` keeps the model's own precision, in which `from_pretrained` has it compute again.

    Args:
        model: A model whose weights `round_weights` rounded.
        folder: Where to.
        dtype: As in `round_weights`.
    """
    # A tensor with two names stays one.
    lowered = {}
    state = {name: lowered.setdefault(t.data_ptr(), t.to(dtype)) for name, t in model.state_dict().items()}
    model.save_pretrained(folder, state_dict=state)
