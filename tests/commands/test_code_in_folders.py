"""No command and no function runs the code of a folder that it loads, whatever standard input says.

transformers asks by `input()`, which would read the texts: a first text of `y` would be consent.
"""

import importlib.util
import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from shared import LINES, QUIET, tiny_config

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.exports import export
from hf_vanilla_transformer.exports.browser_page import make_page
from hf_vanilla_transformer.hub import push, repository_files, upload
from hf_vanilla_transformer.inference import Classifier, Translator, load_engine
from hf_vanilla_transformer.inference.folder import load_config, load_model, load_tokenizer, load_tokenizer_to_train
from hf_vanilla_transformer.training.checkpoints import average_checkpoints, prepare_output_dir


CONSENT = "y\nyes\n1\n" * 9
CODE = """
import pathlib
pathlib.Path({marker!r}).touch()
from transformers import PreTrainedConfig, PreTrainedTokenizerFast
class Evil(PreTrainedTokenizerFast): pass
class EvilConfig(PreTrainedConfig): model_type = "evil"
class EvilModel: pass
def generate(*arguments, **options): pass
"""
CONFIGURATION = {"AutoConfig": "evil.EvilConfig"} | dict.fromkeys(
    ("AutoModel", "AutoModelForSequenceClassification", "AutoModelForSeq2SeqLM"), "evil.EvilModel"
)


def tokenizer_config(auto_map) -> dict:
    return {"tokenizer_config.json": {"tokenizer_class": "Evil", "auto_map": auto_map}}


def model_config(auto_map) -> dict:
    return {"config.json": {"model_type": "evil", "auto_map": auto_map}}


# What a folder may say in order to have its code run, by file.
TOKENIZERS = {
    "slow": tokenizer_config({"AutoTokenizer": ["evil.Evil", None]}),
    "fast": tokenizer_config({"AutoTokenizer": [None, "evil.Evil"]}),
    "as of old": tokenizer_config(["evil.Evil", None]),
    "of another repository": tokenizer_config({"AutoTokenizer": ["kim/evil--evil.Evil", None]}),
    "of another model": tokenizer_config({"AutoTokenizer": ["evil.Evil", None]}) | model_config(CONFIGURATION),
}
MODELS = {
    "here": model_config(CONFIGURATION),
    "of another repository": model_config({"AutoConfig": "kim/evil--evil.EvilConfig"}),
}
# The folder can be read without its code.
HAS_CODE = {
    "config.json": {"auto_map": CONFIGURATION},
    "tokenizer_config.json": {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}},
}


@pytest.fixture(autouse=True)
def consent(monkeypatch):
    """Standard input stays open, and says yes; commands of the fixture `run` get it by `stdin`."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONSENT.encode())))


@pytest.fixture(scope="module")
def folders(tmp_path_factory, trained, tiny_models) -> dict[str, Path]:
    """A classifier's run, a translator and exports, by name."""
    folder = tmp_path_factory.mktemp("exports")
    for task, format in (("classification", "onnx"), ("translation", "ctranslate2")):
        if importlib.util.find_spec({"onnx": "onnxruntime"}.get(format, format)):
            export(str(tiny_models[task]), output_dir=str(folder / format), format=format)
    exports = {place.name: place for place in folder.iterdir()}
    return {**tiny_models, **exports, "run": trained, "checkpoint": next(trained.glob("checkpoint-*"))}


@pytest.fixture
def plant(folders, tmp_path):
    """Makes a copy of a folder, with code, and with what its files say; no code may run until the test is over."""
    marker = tmp_path / "was_here"

    def plant(kind: str, says: dict) -> Path:
        if kind not in folders:
            pytest.skip(f"the extra [{kind}] is not installed")
        folder = shutil.copytree(
            folders[kind], tmp_path / "checkpoint-7", ignore=shutil.ignore_patterns("checkpoint-*")
        )
        (folder / "custom_generate").mkdir()
        for file in ("evil.py", "custom_generate/generate.py"):
            (folder / file).write_text(CODE.format(marker=str(marker)))
        for name, content in says.items():
            file = folder / name
            file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **content}))
        return folder

    yield plant
    assert not marker.exists()


# The folder that is planted, and the command, in which FOLDER is that folder and CLEAN is it without code.
COMMANDS = {
    "predict": ("classification", "predict --model FOLDER"),
    "predict, onnx": ("onnx", "predict --model FOLDER"),
    "translate": ("translation", "translate --model FOLDER"),
    "translate, ctranslate2": ("ctranslate2", "translate --model FOLDER"),
    "evaluate": ("run", "evaluate --model FOLDER --data sample --output_dir OUT"),
    "figures": ("classification", "figures.py --figure attention --text a --model FOLDER --file OUT.png"),
    "page": ("classification", "page --model FOLDER --output_dir OUT"),
    "push-to-hub": ("run", "push-to-hub FOLDER --repo_id kim/x --dry_run"),
    "export ctranslate2": ("translation", "export --format ctranslate2 --model FOLDER --output_dir OUT"),
    "export onnx": ("classification", "export --format onnx --model FOLDER --output_dir OUT"),
    "convert": (
        "translation",
        "convert-checkpoint --source annotated-transformer --model FOLDER --checkpoint OUT.pt",
    ),
    "classifier": ("run", "train-classifier --data sample --model FOLDER --output_dir OUT"),
    "classifier, tokenizer": ("run", "train-classifier --data sample --tokenizer FOLDER --output_dir OUT"),
    "classifier, both": (
        "run",
        "train-classifier --data sample --model CLEAN --tokenizer FOLDER --output_dir OUT",
    ),
    "resumed": ("checkpoint", "train-classifier sample --resume_from_checkpoint FOLDER --output_dir OUT"),
    "translator": (
        "translation",
        "train-translation --data TEXTS PAIR --model FOLDER --output_dir OUT",
    ),
    "pretrain": ("translation", "pretrain --texts TEXTS --model FOLDER --output_dir OUT"),
    "pretrain, tokenizer": ("translation", "pretrain --texts TEXTS --tokenizer FOLDER --output_dir OUT"),
    "average": ("checkpoint", "average_checkpoints.py --run PARENT --last 1 --output_dir OUT"),
}
# Those that read another part alone: the tokenizer, or the model by the export's own record, or the model.
WITHOUT_MODEL = (
    "classifier, tokenizer",
    "classifier, both",
    "pretrain, tokenizer",
    "predict, onnx",
    "translate, ctranslate2",
)
# An export is read by `tokenizers` alone, which knows no code.
WITHOUT_TOKENIZER = {"convert", "predict, onnx", "translate, ctranslate2"}


@pytest.fixture
def words(tmp_path):
    """Makes the words of a command; it also has files that a command needs besides."""
    (tmp_path / "table.tsv").write_text("a\tb\n" * 20)

    def words(line: str, folder: Path, clean: Path) -> list:
        places = {"FOLDER": folder, "CLEAN": clean, "PARENT": tmp_path, "TEXTS": tmp_path / "table.tsv"}
        places |= {f"OUT{suffix}": tmp_path / f"out{suffix}" for suffix in ("", ".png", ".pt")}
        command, *flags = line.replace("PAIR", "--source_column a --target_column b").split()
        quiet = QUIET if command.startswith(("train", "pretrain")) else []
        return [command, *(places.get(flag, flag) for flag in flags), *quiet]

    return words


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_TOKENIZER])
def test_a_command_refuses_a_tokenizer_that_needs_code(refused, folders, plant, words, name):
    kind, line = COMMANDS[name]
    folder = plant(kind, TOKENIZERS["slow"])
    assert "evil.py" in refused(*words(line, folder, folders[kind]), stdin=CONSENT)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_MODEL])
def test_a_command_refuses_a_model_that_needs_code(refused, folders, plant, words, name):
    kind, line = COMMANDS[name]
    folder = plant(kind, MODELS["here"])
    assert "evil.py" in refused(*words(line, folder, folders[kind]), stdin=CONSENT)


@pytest.mark.parametrize("says", TOKENIZERS.values(), ids=TOKENIZERS)
def test_functions_refuse_a_tokenizer_that_needs_code(plant, says):
    folder = str(plant("translation", says))
    functions = [lambda: load_tokenizer(folder), lambda: load_tokenizer_to_train(folder, None, [], 8)]
    if "config.json" not in says:
        functions.append(lambda: Translator(folder))
    for function in functions:
        with pytest.raises(DataError, match="evil.py"):
            function()


@pytest.mark.parametrize("says", MODELS.values(), ids=MODELS)
def test_functions_refuse_a_model_that_needs_code(plant, says, tmp_path):
    folder, out = str(plant("run", says)), str(tmp_path / "out")
    model_class = VanillaTransformerForSequenceClassification
    for function in (
        lambda: load_config(folder),
        lambda: load_model(folder),
        lambda: load_engine(folder),
        lambda: Classifier(folder),
        lambda: export(folder, output_dir=out, format="ctranslate2"),
        lambda: make_page(folder, out, runtime=folder),
        lambda: repository_files(folder),
        lambda: upload(folder, "kim/x"),
        lambda: push(model_class(tiny_config(name_or_path=folder)), "kim/x"),
        lambda: prepare_output_dir(out, folder),
        lambda: average_checkpoints([folder]),
    ):
        with pytest.raises(DataError, match="evil.py"):
            function()


@pytest.mark.parametrize("line", ["predict", "classifier", "push-to-hub"])
@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize("value", ["evil/kernel", "flash|evil/kernel@main:attend", {"": "evil/kernel"}, ["evil"]])
def test_attention_that_is_a_repository_s_code_is_refused(refused, folders, plant, words, line, name, value):
    """Before anything is fetched: transformers would say that `kernels` is not installed, or ask for it."""
    kind, line = COMMANDS[line]
    folder = plant(kind, {"config.json": {name: value}})
    said = refused(*words(line, folder, folders[kind]), stdin=CONSENT)
    assert str(folder) in said and "none of transformers' own" in said and "evil" in said


@pytest.mark.parametrize("kind", ["classification", "translation", "ctranslate2"])
def test_code_that_is_not_needed_does_not_run(plant, folders, kind):
    """The package's classes answer as without it."""
    load = Classifier if kind == "classification" else Translator
    assert load(plant(kind, HAS_CODE))(LINES[:3]) == load(folders[kind])(LINES[:3])
