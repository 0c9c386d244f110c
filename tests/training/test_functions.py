"""What a command does, a function does: in one process, more than once, without exits."""

import signal
from pathlib import Path

import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, DatasetDict
from shared import TINY_RUN, read_json
from transformers import AutoModelForSeq2SeqLM, Trainer

import hf_vanilla_transformer as vt
from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.hub import make_model_card, repository_files
from hf_vanilla_transformer.inference import load_engine


TEXTS, LABELS = ["가 나", "다 라", "마 바", "사 아"] * 15, ["좋음", "나쁨"] * 30


def data_in(kind: str):
    columns = {"review": TEXTS, "label": LABELS, "when": pd.Timestamp("2026-01-01")}
    if kind == "DataFrame":
        return pd.DataFrame(columns, index=[*range(7, 67)])
    rows = Dataset.from_dict({"review": TEXTS, "label": LABELS})
    if kind == "Dataset":
        return rows.cast_column("label", ClassLabel(names=["나쁨", "좋음"]))
    return DatasetDict(train=rows, test=rows.select(range(20)))


@pytest.mark.parametrize("kind", ["DataFrame", "Dataset", "DatasetDict"])
def test_data_can_be_an_object(kind, tmp_path):
    data = data_in(kind)
    run = vt.train_classifier("few-rows", data=data, text_column="review", output_dir=tmp_path / "run", **TINY_RUN)
    assert run.model.config.id2label == {0: "나쁨", 1: "좋음"} and len(run.tokenizer) == run.model.config.vocab_size
    assert read_json(tmp_path / "run" / "tokenizer.json")["truncation"]["max_length"] == 128
    assert run.folder == str(tmp_path / "run") and run.metrics == read_json(tmp_path / "run" / "metrics.json")
    record = read_json(tmp_path / "run" / "run.json")["data"]
    assert record["source"].startswith(f"{kind} ") and record["source"].endswith(" rows)")
    assert sum(record[split]["rows"] for split in ("train", "validation")) + record["test"]["rows"] in (60, 80)
    assert f"Data: {kind} " in (tmp_path / "run" / "README.md").read_text()
    # The columns are the recipe's, and so is the split that it was trained on.
    report = vt.evaluate(run.folder, data=data)
    assert report["accuracy"] == run.metrics["test"]["accuracy"]
    # A run has its data; its folder has their name alone.
    for split in ("validation", "test"):
        assert vt.evaluate(run, split=split)["confusion_matrix"] == run.metrics[split]["confusion_matrix"]
    assert vt.evaluate(run)["rows"] == read_json(tmp_path / "run" / "run.json")["data"]["test"]["rows"]
    with pytest.raises(DataError, match=f"{kind} .*: give `data`"):
        vt.evaluate(run.folder)


def test_pairs_can_be_an_object_too(tmp_path):
    """And whatever takes a folder takes the run."""
    pairs = pd.DataFrame({"de": TEXTS, "en": TEXTS[::-1]})
    settings = {"source_column": "de", "target_column": "en", "vocabularies": "separate"}
    settings |= {"max_length": 16, "save_strategy": "no"}
    run = vt.train_translator(data=pairs, **settings, **TINY_RUN, output_dir=tmp_path / "run")
    expected = run.metrics["test"]["beams_1"]
    assert vt.evaluate(run)["chrf"] == vt.evaluate(run, split="test")["chrf"] == expected["chrf"]
    assert vt.evaluate(run, data=pairs)["rows"] == 60 > vt.evaluate(run)["rows"]
    assert vt.Translator(run)(TEXTS[:2]) == vt.Translator(run.folder)(TEXTS[:2])
    settings = {"source_column": "de", "target_column": "en", "max_steps": 1, "report_to": "none", "use_cpu": True}
    further = vt.train_translator(model=run, data=pairs, output_dir=tmp_path / "further", **settings)
    assert read_json(tmp_path / "further" / "run.json")["parent_model"]["name"] == "run"
    assert load_engine(further).facts.target_vocab_size == len(further.target_tokenizer)
    assert AutoModelForSeq2SeqLM.from_pretrained(run).num_parameters() == run.model.num_parameters()
    assert Path("config.json") in repository_files(run) and "translation" in str(make_model_card(run))
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    vt.export(run, format="ctranslate2", output_dir=tmp_path / "export")
    assert vt.evaluate(tmp_path / "export", data=pairs)["rows"] == 60


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rat": 1e-3}, "--learning_rat"),
        ({"problem_type": "regression", "label_smoothing_factor": 0.1}, "--label_smoothing_factor: only"),
        ({"data": pd.DataFrame({"a": [1]}), "text_column": "text"}, "no column 'text'"),
        ({"data": data_in("Dataset").with_transform(dict)}, "transform"),
    ],
)
def test_a_wrong_setting_is_an_exception_and_holds_nothing(settings, message, tmp_path):
    given = {"recipe": "few-rows", "data": data_in("Dataset"), "output_dir": tmp_path / "run", **settings}
    with pytest.raises(DataError, match=message):
        vt.train_classifier(**given)
    assert not (tmp_path / "run").exists()


def test_of_a_wrong_recipe_those_of_the_command_are_named():
    for name in ("few-row", "multi30k-de-en"):
        with pytest.raises(DataError, match=f"{name}: neither a file nor a recipe of train-classifier; .* few-rows, "):
            vt.train_classifier(name)
    with pytest.raises(DataError, match="--source_column, --target_column, --data"):
        vt.train_translator()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_run_that_fails_leaves_no_lock_and_nothing_changed(error, tmp_path, monkeypatch):
    """As in a notebook, whose next cell begins it again."""
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    settings = {"data": data_in("Dataset"), "text_column": "review", "output_dir": tmp_path / "run", **TINY_RUN}

    def fail(*args, **kwargs):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "training_step", fail)
        with pytest.raises(error) as failed:
            vt.train_classifier("few-rows", **settings)
    if error is KeyboardInterrupt:
        assert failed.value.__notes__ == ["no checkpoint was saved"]
    assert not (tmp_path / "run").exists()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == handlers
    assert vt.train_classifier("few-rows", **settings).metrics["best_step"] == 2


def test_the_package_imports_nothing_until_a_name_is_used():
    assert set(vt.__all__) <= set(dir(vt))
    with pytest.raises(AttributeError, match="has no attribute 'train_clasifier'"):
        _ = vt.train_clasifier
    for name in vt.__all__:
        assert callable(getattr(vt, name)) and getattr(vt, name).__doc__, name
