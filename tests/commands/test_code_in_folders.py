"""No command and no function runs the code of a folder that it loads, whatever standard input says.

transformers asks by `input()`, which would read the texts: a first text of `y` would be consent. One function loads
from folders (tests/test_structure.py); these are its doors.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
import transformers
from shared import LINES

from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.inference import Classifier, Translator
from hf_vanilla_transformer.inference.folder import load_from, load_tokenizer


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
AUTO_MAP = {"AutoConfig": "evil.EvilConfig"} | dict.fromkeys(
    ("AutoModel", "AutoModelForSequenceClassification", "AutoModelForSeq2SeqLM"), "evil.EvilModel"
)
# What a folder may say in order to have its code run.
MODEL = {"config.json": {"model_type": "evil", "auto_map": AUTO_MAP}}
TOKENIZER = {
    "tokenizer_config.json": {"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}
}
# The same, of a folder that can be read without its code.
NOT_NEEDED = {"config.json": {"auto_map": AUTO_MAP}}
NOT_NEEDED["tokenizer_config.json"] = {"auto_map": TOKENIZER["tokenizer_config.json"]["auto_map"]}


@pytest.fixture
def plant(tiny_models, tmp_path):
    """Make a copy of a model's folder, with code, and with what its files say; no code runs until the test is over."""
    marker = tmp_path / "was_here"

    def plant(task: str, says: dict) -> Path:
        folder = shutil.copytree(tiny_models[task], tmp_path / "planted")
        (folder / "custom_generate").mkdir()
        for file in ("evil.py", "custom_generate/generate.py"):
            (folder / file).write_text(CODE.format(marker=str(marker)))
        for name, content in says.items():
            file = folder / name
            file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **content}))
        return folder

    yield plant
    assert not marker.exists()


@pytest.fixture
def planted(plant, monkeypatch):
    """A folder in which every `auto_map` that transformers reads names the folder's code."""
    folder = plant("classification", {})
    names = [name for name in dir(transformers) if name.startswith("Auto")]
    code = json.dumps({"auto_map": dict.fromkeys(names, "evil.EvilModel"), "model_type": "evil"})
    for name in ("config", "preprocessor_config", "processor_config", "video_preprocessor_config"):
        (folder / f"{name}.json").write_text(code)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked"))
    return folder


@pytest.mark.parametrize(
    ("file", "name"),
    [
        *(("config.json", "BertConfig"), ("tokenizer_config.json", "BarkModel"), ("config.json", "AutoProcessorFast")),
        *(("tokenizer_config.json", ["AutoProcessor"]), ("config.json", 7)),
    ],
)
def test_a_tokenizer_of_another_class_is_refused(planted, file, name):
    (planted / "tokenizer_config.json").unlink()
    (planted / file).write_text(json.dumps({"tokenizer_class": name}))
    with pytest.raises(DataError, match=f"{re.escape(str(name))} is no tokenizer"):
        load_tokenizer(str(planted))


def test_nothing_asks_whether_code_may_run(planted):
    """Also where `trust_remote_code` is not handed on."""

    class Loader:
        @staticmethod
        def from_pretrained(folder, **options):
            return transformers.AutoProcessor.from_pretrained(folder)

    with pytest.raises(DataError, match="execute custom code"):
        load_from(Loader, str(planted), "tokenizer")


@pytest.mark.parametrize("says", [MODEL, TOKENIZER], ids=["model", "tokenizer"])
def test_a_command_refuses_a_folder_that_needs_code(refused, plant, says):
    folder = plant("classification", says)
    assert str(folder) in refused("predict", "--model", folder, stdin=CONSENT)


@pytest.mark.parametrize("value", ["evil/kernel", {"": "evil/kernel"}])
def test_attention_that_is_a_repositorys_code_is_refused(plant, value):
    """Before anything is fetched: transformers would say that `kernels` is not installed, or ask for it."""
    with pytest.raises(DataError, match="none of transformers' own"):
        Classifier(plant("classification", {"config.json": {"attn_implementation": value}}))


@pytest.mark.parametrize(("task", "load"), [("classification", Classifier), ("translation", Translator)])
def test_code_that_is_not_needed_does_not_run(plant, tiny_models, task, load):
    """The package's classes answer as without it."""
    assert load(plant(task, NOT_NEEDED))(LINES[:3]) == load(tiny_models[task])(LINES[:3])
