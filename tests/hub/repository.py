"""Helpers: the files of a repository, and programs that use it without the package."""

import json
from pathlib import Path

import torch
from accelerate.utils import merge_dicts
from hub_server import USER
from shared import QUIET, TINY, run_without_the_package
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_vanilla_transformer.hub.record import read_file, recipe_text, save_json
from hf_vanilla_transformer.hub.upload import repository_files


REPO = f"{USER}/tiny"
TEXTS = ["정말 재미있고 감동적인 영화", "지루하고 유치했다"]
QUICK = ["--data", "sample", "--max_steps", "2", "--eval_strategy", "epoch", "--save_strategy", "no"]
QUICK += ["--vocab_size", "1500", *QUIET, *TINY]
# Files in a run's folder that must not be uploaded.
UNLISTED = ["trainer_state.json", ".secret", "id_rsa", "my.csv"]
UNLISTED += ["checkpoint-2/config.json", "checkpoint-2/optimizer.pt"]
# The start of programs that do not have the package.
STRANGER = """
import importlib.util, json, sys, torch
assert importlib.util.find_spec("hf_vanilla_transformer") is None
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
def load(name, **options):
    tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=True, **options)
    model = AutoModelForSequenceClassification.from_pretrained(name, trust_remote_code=True, **options).eval()
    return tokenizer, model
@torch.no_grad()
def answer(tokenizer, model):
    return model(**tokenizer(json.loads(sys.argv[1]), padding=True, return_tensors="pt")).logits.tolist()
"""


def as_stranger(program: str, environment, home: Path, *arguments) -> str:
    """Run a program without the package, on the test's texts; returns what it prints."""
    return run_without_the_package(
        STRANGER + program, json.dumps(TEXTS), *arguments, home=home, environment=environment
    )


def logits(folder: Path) -> list:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits.tolist()


def contents(folder: Path) -> dict[str, bytes]:
    """What belongs to the folder's repository."""
    return {file.as_posix(): (folder / file).read_bytes() for file in repository_files(folder)}


def edit(file: Path, **changes) -> dict:
    """Change a record's file, keys of keys too where a change is a mapping; returns what the file has now."""
    content = merge_dicts(changes, read_file(file))
    if file.suffix == ".yaml":
        file.write_text(recipe_text(content), encoding="utf-8")
    else:
        save_json(file, content)
    return content


def in_repository(server, repo: str = REPO, revision: str = "main") -> dict[str, bytes]:
    files = dict(server.files(repo, revision))
    del files[".gitattributes"]
    return files
