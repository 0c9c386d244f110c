"""Model cards: every figure is the record's, the metadata are the Hub's, the examples run."""

import ast
import importlib
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard
from shared import QUIET, ROOT, RUN_FILES, TINY, read_json, train_translator
from transformers import AutoConfig, AutoTokenizer

from hf_vanilla_transformer.commands import pretrain, train_translation
from hf_vanilla_transformer.commands.arguments import parse_arguments
from hf_vanilla_transformer.hub.model_card import load_model_card, make_model_card, rename_model_card, save_model_card
from hf_vanilla_transformer.inference.engine import TARGET_TOKENIZER
from hf_vanilla_transformer.inference.folder import load_model
from hub.repository import edit


CHECKPOINTS = shutil.ignore_patterns("checkpoint-*")
HEADINGS = ["Result", "How to use it", "All figures", "The model", "Training", "Limits and risks", "Licence"]


@pytest.fixture
def classifier(trained, tmp_path) -> Path:
    """A copy of the run's folder, which the test may edit."""
    return shutil.copytree(trained, tmp_path / "runs" / "sample", ignore=CHECKPOINTS)


@pytest.fixture(scope="module", params=["joint", "separate"])
def translator_run(request, corpus, tmp_path_factory) -> Path:
    def run(_, *arguments):
        train_translation.main([str(argument) for argument in arguments])

    folder = tmp_path_factory.mktemp("runs") / "translator"
    train_translator(
        *(run, corpus, folder, "--vocabularies", request.param, "--test_prefix", "test"),
        *("--generation_num_beams", "3", "--attn_implementation", "eager", "--preset", "transformer-evolution"),
    )
    return folder


@pytest.fixture
def translator(translator_run, tmp_path) -> Path:
    """A copy of the run's folder, which the test may edit."""
    return shutil.copytree(translator_run, tmp_path / "runs" / "translator", ignore=CHECKPOINTS)


REPOSITORIES = sorted((ROOT / "model_cards").iterdir())
PUBLISHED = [*REPOSITORIES, *sorted((ROOT / "docs" / "records").iterdir())]
every_card = pytest.mark.parametrize("folder", REPOSITORIES, ids=lambda folder: folder.name)


@pytest.fixture
def nsmc(tmp_path) -> Path:
    """A copy of a published run's record."""
    return shutil.copytree(ROOT / "docs" / "records" / "nsmc-half", tmp_path / "nsmc-half")


@every_card
def test_a_published_card_is_what_its_record_gives(folder):
    """It names the file that makes the model, and no command that would need a folder of its authors."""
    text = (folder / "README.md").read_text()
    assert text == str(make_model_card(folder)) and load_model_card(folder).text in text
    (file,) = re.findall(r"`(scripts/experiments/\S+)` in the package's repository makes the model", text)
    assert (ROOT / file).is_file() and "```sh" not in text


def test_the_command_of_a_card_takes_its_recipe(nsmc, monkeypatch):
    (command,) = re.findall(r"```sh\n(.*)\n```", str(make_model_card(nsmc)))
    program, subcommand, *flags = shlex.split(command)
    assert program == "vanilla-transformer"
    module = importlib.import_module(f"hf_vanilla_transformer.commands.{subcommand.replace('-', '_')}")
    monkeypatch.chdir(nsmc)
    monkeypatch.setattr(sys, "argv", [subcommand])
    _, settings = parse_arguments(getattr(module, "GROUPS", None) or module.ARGUMENTS, "", flags)
    recipe = yaml.safe_load((nsmc / "recipe.yaml").read_text())
    assert {**settings, "data": None} == {**recipe, "data": None}
    # A folder that only its authors have is not what the card tells others to train on.
    assert settings["data"] in ("nsmc", "multi30k")


@pytest.mark.parametrize(
    "name", ["nsmc-half", "multi30k-de-en-pairs", "multi30k-en-de-pairs", "multi30k-de-en-tutorial"]
)
def test_a_recipe_of_the_package_is_that_of_the_published_run(name):
    """All but the data's place; `precision: auto` was bfloat16 on the machine of the published run."""
    (folder,) = (folder for folder in PUBLISHED if folder.name == name)
    published = yaml.safe_load((folder / "recipe.yaml").read_text())
    recipe = ROOT / "hf_vanilla_transformer" / "recipes" / f"{re.sub('-half$|-pairs$', '', name)}.yaml"
    ours = yaml.safe_load(recipe.read_text())
    assert ours.pop("precision") == "auto"
    assert {**ours, "data": published["data"], "bf16": True} == published


@every_card
def test_a_published_folder_is_a_complete_repository(folder):
    config = AutoConfig.from_pretrained(folder)
    sizes = {"": config.vocab_size, TARGET_TOKENIZER: config.decoder_vocab_size}
    sizes = {place: size for place, size in sizes.items() if size is not None}
    names = {file.split("/")[0] for file in RUN_FILES}
    assert {file.name for file in folder.iterdir()} == names | (sizes.keys() - {""})
    for place, size in sizes.items():
        assert len(AutoTokenizer.from_pretrained(folder, subfolder=place)) == size
    for file in ("configuration_vanilla_transformer.py", "modeling_vanilla_transformer.py"):
        assert (folder / file).read_bytes() == (ROOT / "hf_vanilla_transformer" / file).read_bytes(), "make cards"
    assert load_model(str(folder)).num_parameters() == read_json(folder / "run.json")["parameters"]
    assert (folder / "model.safetensors").stat().st_size <= (9 if "multi30k" in folder.name else 10) * 10**6


def test_a_pretrained_models_card_is_its_record(tmp_path, text_file, run_example):
    folder = tmp_path / "runs" / "pretrained"
    flags = ["--texts", str(text_file), "--validation", "7", "--vocab_size", "29", "--max_length", "24", *TINY, *QUIET]
    pretrain.main([*flags, "--output_dir", str(folder), "--max_steps", "2", "--save_strategy", "no"])
    card = card_of_run(folder, digits=2)
    (checksum,) = read_json(folder / "run.json")["data"]["source"].values()
    assert f"corpus.txt.gz (SHA-256 {checksum})" in card.text and "| train | 53 |" in card.text
    assert not any(str(tmp_path) in (folder / file).read_text() for file in ("recipe.yaml", "run.json"))
    assert "vanilla-transformer pretrain recipe.yaml" in card.text
    (result,) = card.data.eval_results
    assert (result.dataset_split, result.metric_type, result.metric_name) == ("validation", "perplexity", "Perplexity")
    assert result.metric_value == round(read_json(folder / "metrics.json")["validation"]["perplexity"], 2)
    assert len(run_example(card, folder)) == 1


def test_a_lower_case_translator_is_measured_by_lower_cased_bleu(translator):
    edit(translator / "run.json", data={"validation": {"examples": ["개 두 마리"]}})
    report = read_json(translator / "metrics.json")["test"]["beams_3"]
    for lowercase, name, title in ((False, "bleu", "BLEU"), (True, "bleu_lowercased", "BLEU, lower-cased")):
        edit(translator / "recipe.yaml", lowercase=lowercase)
        card = make_model_card(translator)
        first = card.data.eval_results[0]
        assert (first.metric_name, first.metric_value) == (f"{title}, 3 beams", round(report[name], 2))
        assert first.metric_args == {"signature": report[f"{name}_signature"]}
        summary = card.text.split("## ")[0]
        assert f"{title}, 3 beams {report[name]:.2f}" in summary


def card_of_run(folder: Path, digits: int, is_korean: bool = True) -> ModelCard:
    """Return a run's card; check its headings, and that its table of results equals the metadata."""
    card = load_model_card(folder)
    assert re.findall(r"^## (.*)", card.text, re.MULTILINE) == HEADINGS
    assert ("한국어 요약" in card.text.split("## ")[0]) == is_korean
    rows = [f"| {r.dataset_split} | {r.metric_name} | {r.metric_value:.{digits}f} |" for r in card.data.eval_results]
    assert "\n".join(["| split | measure | value |", "|---|---|---|", *rows, "\n"]) in card.text
    return card


def example(card: ModelCard) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", card.text, re.DOTALL)
    return code


@pytest.fixture
def run_example(monkeypatch, capsys):
    """Run a card's example beside the folder, and return what it prints."""

    def run_example(card: ModelCard, folder: Path) -> list[str]:
        monkeypatch.chdir(folder.parent)
        capsys.readouterr()
        exec(compile(example(card), "README.md", "exec"), {})
        return capsys.readouterr().out.splitlines()

    return run_example


def test_a_classifiers_card_is_its_record(classifier, run_example):
    card = card_of_run(classifier, digits=4)
    metrics, run = (read_json(classifier / file) for file in ("metrics.json", "run.json"))
    for split in ("train", "validation", "test"):
        assert f"| {split} | {metrics[split]['rows']:,} | `{run['data'][split]['sha256']}` |" in card.text
    assert (classifier / "recipe.yaml").read_text().strip() in card.text
    for package, version in run["versions"].items():
        assert f"{package} {version}" in card.text
    assert (run["git_commit"] or "not from a checkout") in card.text
    data = card.data
    assert (data.license, data.language, data.library_name) == (None, ["ko"], "transformers")
    assert (data.pipeline_tag, data.model_name, data.datasets) == ("text-classification", "sample", None)
    assert [(r.task_type, r.dataset_split, r.metric_name, r.metric_value) for r in data.eval_results] == [
        ("text-classification", split, title, round(metrics[split][title.lower().replace(" ", "_")], 4))
        for split in ("test", "validation")
        for title in ("Accuracy", "F1", "Macro F1")
    ]
    (line,) = run_example(card, classifier)
    answers = ast.literal_eval(line)
    assert run["answers"] == [{**answer, "score": round(answer["score"], 4)} for answer in answers]
    assert len(answers) == 2 and f"\n# {run['answers']}\n" in example(card)


def test_a_card_has_the_records_measures_of_trust():
    """The measures of changed texts, calibration and thresholds, of the published classifier."""
    folder = ROOT / "model_cards" / "nsmc-small"
    test, text = read_json(folder / "metrics.json")["test"], make_model_card(folder).text
    for one in test["robustness"]["changes"]:
        assert f"| {one['change'].replace('_', ' ')} | {one['changed']:,} | {one['accuracy']:.4f} |" in text
    assert f"random spaces | | {test['robustness']['mean_of_spacings']:.4f} |" in text
    low, high = test["accuracy_interval"]
    assert f"confidence: {low:.3f} to {high:.3f}. Always answering positive: {test['majority']['share']:.3f}." in text
    for name, key in (("expected calibration error", "expected_calibration_error"), ("Brier score", "brier")):
        assert f"| {name} | {test['uncalibrated'][key]:.4f} | {test[key]:.4f} |" in text
    for one in test["selective"]:
        assert f"| {one['threshold']:g} | {one['answered']:.1%} | {one['accuracy']:.1%} |" in text


AGAIN = "recipe.yaml --output_dir runs/again"
OTHER_TEST = {"test": {"rows": 49997, "sha256": "0"}}
TRANSLATED = {"rows": 1234, "sha256": "abc", "recipe": {"seed": 3}}
CHANGES = [
    ("metrics.json", {"test": {"f1": 0.8642}}, "| test | F1 | 0.8642 |"),
    ("metrics.json", {"test": {"accuracy": 0.9753}}, "정확도 0.9753", "value: 0.9753\n"),
    ("metrics.json", {"training_seconds": 4321.0}, "72.0 minutes"),
    ("config.json", {"max_position_embeddings": 8}, "| longest text, in tokens | 8 |", "first 8 tokens"),
    ("run.json", {"seed": 1234567, "parameters": 7654321}, "seed 1234567", "| parameters | 7,654,321 |"),
    ("run.json", {"made_by": "a.sh"}, "`a.sh` in the package's repository makes"),
    ("run.json", {"rivals": {"about": "Others:", "rows": [{"who": "x", "BLEU": None}]}}, "| who | BLEU |", "| x |  |"),
    ("metrics.json", {"test": {"baseline": {"accuracy": 0.8788, "spaces": "kept"}}}, "spaces kept | 0.8788 |"),
    ("run.json", {"license": "cc-by-4.0"}, "\nlicense: cc-by-4.0\n", "Weights: cc-by-4.0."),
    ("run.json", {"base_model": "kim/parent"}, "\nbase_model: kim/parent\n", "Its parent is [kim/parent](https://hug"),
    ("run.json", {"data": {"source": "kim/movies", **OTHER_TEST}}, "\n- kim/movies\n", "type: kim/movies\n"),
    ("run.json", {"data": {"made": TRANSLATED}}, "`made`: 1,234 rows (SHA-256 `abc`); `run.json` has their recipe."),
    ("run.json", {"parent_model": {"name": "runs/a"}}, "is the model in `runs/a`, which", "the terms of its parent's"),
    ("run.json", {"resumed_from": "checkpoint-5"}, " from checkpoint-5 on, seed"),
    ("run.json", {"processes": 4, "device": "cuda"}, "\ntorchrun --nproc_per_node 4 -m hf_vanilla_transformer train-"),
    ("run.json", {"script": "b.py", "processes": 2}, f"\ntorchrun --nproc_per_node 2 b.py {AGAIN} --use_cpu true\n"),
]


@pytest.mark.parametrize(("file", "changes", "parts"), [(file, changes, parts) for file, changes, *parts in CHANGES])
def test_a_card_says_what_the_record_says(nsmc, file, changes, parts):
    before = str(make_model_card(nsmc))
    edit(nsmc / file, **changes)
    after = str(make_model_card(nsmc))
    for part in parts:
        assert part in after and part not in before


def test_a_translators_card_is_its_record(translator, run_example):
    card = card_of_run(translator, digits=2, is_korean=False)
    metrics = read_json(translator / "metrics.json")
    assert [(r.dataset_split, r.metric_type, r.metric_name, r.metric_value) for r in card.data.eval_results] == [
        (split, "bleu", f"BLEU, {beams}", round(metrics[split][f"beams_{beams.split()[0]}"]["bleu"], 2))
        for split in ("test", "validation")
        for beams in ("3 beams", "1 beam")
    ]
    assert f"`{metrics['test']['beams_3']['bleu_signature']}`" in card.text
    assert card.data.language is None  # "num" is none
    assert (card.data.pipeline_tag, card.data.license) == ("translation", None)
    (text,) = read_json(translator / "run.json")["data"]["validation"]["examples"]
    assert f'text = "{text}"' in example(card)
    two_vocabularies = AutoConfig.from_pretrained(translator).decoder_vocab_size is not None
    assert ("target_tokenizer" in example(card)) == two_vocabularies
    (line,) = run_example(card, translator)
    assert read_json(translator / "run.json")["answers"] == [line] and f"# {line}\n" in example(card)


def test_nsmc_is_recognised_by_its_test_split(nsmc):
    before = str(make_model_card(nsmc))
    edit(nsmc / "run.json", data={"source": "somewhere"})
    assert str(make_model_card(nsmc)) == before


def test_a_card_claims_nothing_about_other_data(nsmc):
    """No place on the Hub, no licence; Markdown and HTML in their names are escaped."""
    source, texts = "my_<b>.csv", ['배송이 "빨라요"', "별로예요"]
    edit(nsmc / "run.json", license=None, data={"source": source, **OTHER_TEST, "validation": {"examples": texts}})
    edit(nsmc / "recipe.yaml", data=source, tokenizer="bpe", model="old")
    edit(nsmc / "config.json", id2label={"0": "a|b", "1": "<b>*c*\n# `d` e_f _g_"})
    (nsmc / "model.safetensors").touch()
    card = make_model_card(nsmc)
    assert (card.data.datasets, card.data.language, card.data.license) == (None, None, None)
    assert {result.dataset_name for result in card.data.eval_results} == {"my_<b>.csv"}
    assert not re.search("naver|film|CC0|영화", card.text, re.IGNORECASE)
    assert "under the licence of its source" in card.text and "has named no licence" in card.text
    assert r"| labels | a\|b, \<b\>\*c\* \# \`d\` e_f \_g\_ |" in card.text and r"Data: my\_\<b\>.csv" in card.text
    assert f"print(classify({json.dumps(texts, ensure_ascii=False)}, truncation=True)" in example(card)


def test_a_model_without_a_head_has_no_card(nsmc):
    edit(nsmc / "config.json", architectures=["VanillaTransformerModel"])
    with pytest.raises(ValueError, match="no model card can be made of a VanillaTransformerModel"):
        make_model_card(nsmc)


def test_a_card_is_renamed_and_keeps_what_was_added(nsmc):
    (nsmc / "model.safetensors").touch()
    save_model_card(nsmc)
    with open(nsmc / "README.md", "a") as file:
        file.write('\n"nsmc-half" by hand.\n')
    rename_model_card(nsmc, "kim/mine")
    card = load_model_card(nsmc)
    assert 'model="kim/mine"' in example(card) and card.text.endswith('"nsmc-half" by hand.\n')
    assert card.data.to_dict() == make_model_card(nsmc, "kim/mine").data.to_dict()


@pytest.mark.parametrize(
    ("kind", "metric", "title", "summary"),
    [
        ("multi_label_classification", "micro_f1", "Micro F1", "가운데 해당하는 것을 모두 붙이는"),
        ("regression", "mae", "Mean absolute error", "에 수치(negative / positive)를 매기는"),
    ],
)
def test_several_labels_and_numbers_have_their_own_headline(nsmc, kind, metric, title, summary):
    edit(nsmc / "config.json", problem_type=kind)
    edit(nsmc / "metrics.json", test={metric: 0.75}, validation={metric: 0.5})
    card = make_model_card(nsmc)
    first = card.data.eval_results[0]
    assert (first.metric_type, first.metric_value, first.dataset_split) == (metric, 0.75, "test")
    assert f"| test | {title} | 0.7500 |" in card.text and summary in card.text.split("## ")[0]
