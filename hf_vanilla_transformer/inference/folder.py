# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Load models and tokenizers from a folder or the Hub; errors are one line that names the folder."""

import json
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import torch
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils import cached_file, logging

from .. import (
    modeling_vanilla_transformer,
    registration,  # noqa: F401  # the Auto classes know the package's
)
from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..data.network import hub_answers
from ..errors import DataError, named_errors
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel
from ..tasks import TASKS, Task, task_of
from .engine import EXPORT_FILE, TARGET_TOKENIZER, read_export
from .tokenization import check_growth, check_ids, check_lengths


# What `cached_file` takes for a file that may be missing.
OPTIONAL: dict[str, Any] = {"_raise_exceptions_for_missing_entries": False}
Model = TypeVar("Model", bound=PreTrainedModel)
# Of source and target; the same one twice where there is one vocabulary.
Tokenizers = tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]
# The configuration fields that can be changed when a model is trained further.
DROPOUT_FIELDS = {"dropout", "attention_dropout", "activation_dropout", "embedding_dropout"}
# While transformers loads a model, it changes functions and torch's default dtype for the whole process.
ONE_AT_A_TIME = threading.RLock()


def load_from(loader: Any, folder: str, what: str, **options: Any) -> Any:
    """Load by `from_pretrained` of a class of transformers or ours; nothing else here calls it.

    No code of a folder or repository runs, and transformers does not ask whether it may, which would read the answer
    from standard input.

    Raises:
        ValueError: there is no such thing that can be read, it needs code, or its weights lie outside of the folder.
    """
    for index in Path(folder).glob("*.index.json"):
        check_index(index)
    try:
        with named_errors(folder, what), ONE_AT_A_TIME:
            return loader.from_pretrained(folder, trust_remote_code=False, **options)
    except ValueError as error:
        if "trust_remote_code=True" in str(error):
            file = "tokenizer_config.json" if what == "tokenizer" else "config.json"
            code = code_named_in(cached_file(folder, file, subfolder=options.get("subfolder", "")))
            raise DataError(f"{folder}: the {what} needs code, which is not run: {', '.join(code)}") from error
        raise


def check_config(folder: str, config: Any) -> None:
    """Raise a DataError if a model, also of transformers' own classes, needs code."""
    classes = config.architectures or []
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise DataError(f"{folder}: architectures is {classes!r}, no list of names")
    if config.return_dict is False:
        raise DataError(f"{folder}: return_dict is false, and answers have no names")
    # The name of another one is a repository, whose code transformers fetches and runs.
    if (attention := config._attn_implementation) not in (None, "eager", *ALL_ATTENTION_FUNCTIONS.valid_keys()):
        raise DataError(f"{folder}: attn_implementation is {attention!r}, none of transformers' own")


def code_named_in(file: str) -> list[str]:
    """The files of Python that a configuration's file names, those of another repository as `USER/NAME--FILE.py`."""
    auto_map = json.loads(Path(file).read_text(encoding="utf-8")).get("auto_map")
    return sorted({f"{module}.py" for module in re.findall(r'"([^"]+)\.\w+"', json.dumps(auto_map))})


def check_index(file: Path) -> None:
    """Raise a DataError if a weights index names a file outside of its folder.

    In the Hub's cache, files are links to the `blobs` beside `snapshots`. Of a repository's name, huggingface_hub
    refuses such an index itself.
    """
    with named_errors(str(file), "weights index"):
        shards = sorted(set(json.loads(file.read_text(encoding="utf-8"))["weight_map"].values()))
        folder = file.parent.resolve()
        caches = [place.parents[1] for place in (folder, *folder.parents) if place.parent.name == "snapshots"]
        places = [folder, *(cache / "blobs" for cache in caches)]
        found = {shard: (folder / shard).resolve() for shard in shards}
    for shard, target in found.items():
        if not any(target.is_relative_to(place) for place in places):
            raise DataError(f"{file}: {shard} is outside of the folder ({target})")


def check_exists(folder: str) -> None:
    """Raise a ValueError if there is neither such a folder nor a way to look for it on the Hub."""
    if Path(folder).is_dir():
        return
    try:
        cached = [try_to_load_from_cache(folder, file) for file in ("config.json", "tokenizer.json")]
        if not any(isinstance(file, str) for file in cached) and not hub_answers(folder):
            raise DataError(f"no folder {folder} here, and no network to look for it on the Hub")
    except HFValidationError as error:
        raise DataError(f"no folder {folder!r} here") from error


def load_config(folder: str) -> VanillaTransformerConfig:
    """Load the configuration of a model from a path or the Hub.

    Raises:
        ValueError: there is no such folder or repository, it has no readable `config.json`, or the model is of
            another type, or an export.
    """
    check_exists(folder)
    if Path(folder, EXPORT_FILE).is_file():
        raise DataError(f"{folder}: an export, not a model of this package: give the model that it was made from")
    config = load_from(AutoConfig, folder, "model")
    if not isinstance(config, VanillaTransformerConfig):
        raise DataError(f"{folder}: a checkpoint of type {config.model_type!r}, not 'vanilla_transformer'")
    check_config(folder, config)
    return config


def task_of_folder(folder: str) -> Task:
    """What the model of a folder or Hub name was trained for; a DataError if it neither classifies nor translates."""
    export = read_export(folder)
    name = (load_config(folder).architectures or ["None"])[0] if export is None else export["task"]
    task = task_of(name) or TASKS.get(name)
    if task is None:
        raise DataError(f"{folder}: neither {' nor '.join(task.noun for task in TASKS.values())} but a {name}")
    return task


def load_model(folder: str, **options) -> VanillaTransformerPreTrainedModel:
    """Load a model of the class that its configuration names; `options` are those of `from_pretrained`.

    Raises:
        ValueError: as in `load_config`, or weights are missing, or the class is not of this package.
    """
    config = load_config(folder)
    class_name = (config.architectures or ["None"])[0]
    if class_name not in modeling_vanilla_transformer.__all__:
        raise DataError(f"{folder}: a model of class {class_name}, which is none of this package's")
    model_class = getattr(modeling_vanilla_transformer, class_name)
    model, loading = load_weights(model_class, folder, config=config, **options)
    if loading["missing_keys"]:
        raise DataError(f"{folder}: {class_name} lacks {', '.join(sorted(loading['missing_keys']))}")
    return model


def load_weights(model_class: Any, folder: str, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Load a model by `load_from`; return it, and what `output_loading_info` tells."""
    if "config" not in options:
        options["config"] = load_from(AutoConfig, folder, "model")
        check_config(folder, options["config"])
    return load_from(model_class, folder, "model", output_loading_info=True, **options)


def on_accelerator(model: Model) -> Model:
    """The model in evaluation mode, on the accelerator if there is one."""
    if torch.accelerator.is_available():
        model.to(torch.accelerator.current_accelerator())  # type: ignore[arg-type]  # transformers wraps `to`
    return model.eval()


def load_to_train(model_class: type[Model], folder: str, config: VanillaTransformerConfig, **options: Any) -> Model:
    """Load a model to train it further, in float32 whatever precision it was saved in; `options` as in `load_model`.

    Raises:
        ValueError: as in `load_config`, or weights other than the head's are missing or have another shape.
    """
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # a table of what is new, where a head is
    try:
        model, loading = load_weights(model_class, folder, config=config, dtype=torch.float32, **options)
    finally:
        logging.set_verbosity(verbosity)
    new = {*loading["missing_keys"], *(name for name, *_ in loading["mismatched_keys"])}
    if lacking := sorted(name for name in new if name.startswith(f"{model.base_model_prefix}.")):
        raise DataError(f"{folder}: the model lacks {', '.join(lacking)}")
    return model


def load_tokenizer(folder: str, subfolder: str = "", vocab_size: int | None = None) -> PreTrainedTokenizerBase:
    """Load a tokenizer from a path or the Hub.

    Raises:
        ValueError: there is no such folder or repository, or no tokenizer in it, or one with ids from `vocab_size` on.
    """
    check_exists(folder)
    with named_errors(folder, "tokenizer"):
        file = cached_file(folder, "tokenizer.json", subfolder=subfolder, **OPTIONAL)
        content = json.loads(Path(file).read_bytes()) if file else {}
    check_growth(folder, content)
    tokenizer = load_from(AutoTokenizer, folder, "tokenizer", subfolder=subfolder)
    check_lengths(folder, tokenizer.model_max_length, tokenizer.num_special_tokens_to_add())
    check_ids(folder, size_needed(tokenizer), vocab_size)
    return tokenizer


def size_needed(tokenizer: PreTrainedTokenizerBase) -> int:
    """The smallest vocabulary of a model that has all ids of a tokenizer, those of added tokens and templates, too."""
    # Not by a call of a fast one: `save_pretrained` writes how it cut its last text.
    added = tokenizer.backend_tokenizer.encode("").ids if tokenizer.is_fast else tokenizer("")["input_ids"]
    return 1 + max([*tokenizer.get_vocab().values(), *added], default=0)


def load_tokenizer_to_train(
    folder: str | None, model: str | None, needed: Iterable[str], max_length: int
) -> PreTrainedTokenizerBase:
    """Load the tokenizer for a model that is trained.

    Args:
        folder: As in `load_tokenizer`; None for the model's own.
        model: The folder or Hub name of the model; None where it is new.
        needed: Names of the special tokens that it must have, such as `pad_token`.
        max_length: The number of tokens that it truncates texts to.

    Raises:
        ValueError: as in `load_tokenizer`, or a special token is missing, or the model was trained with other ids.
    """
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
    """The tokenizers of the model with this configuration."""
    tokenizer, size = load_tokenizer(folder, vocab_size=config.vocab_size), config.decoder_vocab_size
    return tokenizer, tokenizer if size is None else load_tokenizer(folder, TARGET_TOKENIZER, size)
