# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The private parts of other libraries that the package uses: all of them, each with its reason."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import hf_vanilla_transformer


PACKAGE = Path(hf_vanilla_transformer.__file__).parent

# Names read, called or passed. Behind each: whose it is, why no public name does, and the tests that would tell.
USED = {
    "_action_groups": "argparse: the sections of a help. commands/test_arguments.py",
    "_actions": "argparse: help and defaults of the flags that HfArgumentParser makes. commands/test_arguments.py",
    "_attn_implementation": "transformers: its own models read it so; only writing it is public. test_modeling.py",
    "_auto_class": "transformers: whether code is saved with a model; only registering is public. test_saving.py",
    "_backward_hooks": "torch: as `_forward_hooks`",
    "_backward_pre_hooks": "torch: as `_forward_hooks`",
    "_fingerprint": "datasets: names what is derived from a data set in its cache. data/test_rows.py",
    "_forward_hooks": "torch: the folded projections pass hooks over; nothing public lists them. test_modeling.py",
    "_forward_pre_hooks": "torch: as `_forward_hooks`",
    "_from_config": "transformers: a new model in a dtype, as after loading; the public `from_config` is that of Auto "
    "classes alone. test_conversion.py",
    "_get_resized_embeddings": "transformers: for `_resize_token_embeddings`",
    "_group_actions": "argparse: the flags of a section. commands/test_arguments.py",
    "_internal_call": "transformers: saves without a push, which follows with the record. hub/test_upload.py",
    "_raise_exceptions_for_missing_entries": "transformers: a file that may be missing, while a network that fails is "
    "an error. commands/test_evaluate.py",
}
# Names that a class of ours defines in place of its base's. Those of PreTrainedModel without a reason here are how
# transformers has every model describe itself.
OVERRIDDEN = {
    "_auto_class": "set by `register_for_auto_class`",
    "_can_compile_fullgraph": "PreTrainedModel",
    "_can_record_outputs": "PreTrainedModel",
    "_get_num_items_in_batch": "Trainer: the divisor, where -100 is a number to predict. training/test_trainer.py",
    "_init_training_state": "Trainer: one more step where a run resumes after its last. training/test_trainer.py",
    "_init_weights": "PreTrainedModel",
    "_keys_to_ignore_on_load_unexpected": "PreTrainedModel",
    "_no_split_modules": "PreTrainedModel",
    "_resize_token_embeddings": "PreTrainedModel: `resize_token_embeddings` knows one vocabulary. test_saving.py",
    "_skip_keys_device_placement": "PreTrainedModel",
    "_supports_flash_attn": "PreTrainedModel",
    "_supports_flex_attn": "PreTrainedModel",
    "_supports_sdpa": "PreTrainedModel",
    "_tied_weights_keys": "PreTrainedModel",
}


def names_of_the_package(trees: list[ast.AST]) -> set[str]:
    """All names that the package defines: functions, classes, variables, attributes, arguments."""
    names = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return names


def names_in_use(tree: ast.AST) -> Iterator[str]:
    """All names of attributes, keyword arguments and absolute imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (alias.name for alias in node.names)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_the_list_of_private_names_in_use_is_complete():
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in PACKAGE.rglob("*.py")]
    own = names_of_the_package(trees)
    assert {name for tree in trees for name in names_in_use(tree) if is_private(name) and name not in own} == set(USED)


def test_the_list_of_private_names_overridden_is_complete():
    found = set()
    for info in pkgutil.walk_packages(hf_vanilla_transformer.__path__, "hf_vanilla_transformer."):
        if info.name.endswith("__main__"):
            continue
        for one in vars(importlib.import_module(info.name)).values():
            if inspect.isclass(one) and one.__module__ == info.name:
                bases = [base for base in one.__mro__ if not base.__module__.startswith("hf_vanilla_transformer")]
                found |= {name for name in vars(one) if is_private(name) and any(name in vars(base) for base in bases)}
    assert found - {"_abc_impl", "_is_protocol"} == set(OVERRIDDEN)
