"""`vanilla-transformer evaluate`: the run's own figures, any engine's, the split of its recipe, and refusals."""

import csv
from pathlib import Path

import numpy as np
import pytest
import yaml
from exports.models import TIED
from shared import TINY, TWO_STEPS, read_json, tiny_config

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.data.changes import CHANGES, change_texts
from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.problem_types import METRICS, SINGLE
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.evaluation.evaluate import evaluate
from hf_vanilla_transformer.evaluation.metrics import translation_report
from hf_vanilla_transformer.exports import export
from hf_vanilla_transformer.inference import Classifier, Translator


def read_tsv(file: Path) -> list[dict[str, str]]:
    with open(file, encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened, delimiter="\t"))


def agree(report, expected) -> None:
    """An evaluation has a run's figures: those of the answers exactly, those of the probabilities nearly."""
    scores = ("expected_calibration_error", "log_loss", "brier")
    exact = {*expected} - {"loss", "uncalibrated", "selective", *scores}
    assert {name: report[name] for name in exact} == {name: expected[name] for name in exact} and len(exact) > 5
    assert [report[name] for name in scores] == pytest.approx([expected[name] for name in scores], abs=1e-5)
    assert expected["log_loss"] == pytest.approx(expected["loss"], abs=1e-5)


def test_the_evaluation_is_the_runs_own(succeed, trained, tmp_path):
    flags = ["--split", "validation", "--batch_size", "32"]
    out = succeed("evaluate", "--model", trained, "--output_dir", tmp_path / "run", *flags)
    assert out.startswith("Measuring validation of sample: 90 rows\n")
    summary = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert f"validation of sample: {out.splitlines()[-2].removeprefix('validation: ')}\n" in summary
    report = read_json(tmp_path / "run" / "evaluation.json")
    expected = read_json(trained / "metrics.json")["validation"]
    agree(report, expected)
    assert f"accuracy {expected['accuracy']:.4f}" in out
    predictions = read_tsv(tmp_path / "run" / "predictions.tsv")
    texts = load_labelled_text("sample", validation_fraction=0.15)["validation"]["text"][:]
    assert [row["text"] for row in predictions] == texts
    right = [row["label"] == row["predicted"] for row in predictions]
    assert sum(right) / 90 == pytest.approx(expected["accuracy"])
    assert all(0.5 <= float(row["probability"]) <= 1 for row in predictions)


@pytest.mark.parametrize(
    ("labels", "flags"),
    [
        (["좋음", "나쁨", "보통"], []),
        (["a|b", "b", "", "a"], ["--problem_type", "multi_label_classification"]),
        (["0.3", "-100", "2.75", "41"], ["--problem_type", "regression"]),
    ],
)
def test_a_run_in_bfloat16_publishes_the_figures_of_evaluate(succeed, tmp_path, labels, flags):
    rows = [f"{number} 번째 영화 {number % 7},{labels[number % len(labels)]}\n" for number in range(80)]
    (tmp_path / "rows.csv").write_text("document,label\n" + "".join(rows))
    settings = ["--data", tmp_path / "rows.csv", "--vocab_size", "60", *TINY, *TWO_STEPS, "--bf16", "true", *flags]
    succeed("train-classifier", *settings, "--validation_fraction", "0.3", "--output_dir", tmp_path / "run")
    published = read_json(tmp_path / "run" / "metrics.json")["test"]
    report = evaluate(tmp_path / "run", data=str(tmp_path / "rows.csv"), split="test")
    metrics = METRICS[flags[1] if flags else SINGLE]
    assert {name: report[name] for name in metrics} == {name: published[name] for name in metrics}
    assert published["precision"] == report["precision"] == "float32"


def test_an_evaluation_with_changed_texts(succeed, trained, tmp_path):
    flags = ["--robustness", "all", "--split", "validation"]
    out = succeed("evaluate", "--model", trained, "--output_dir", tmp_path / "run", *flags)
    report = read_json(tmp_path / "run" / "evaluation.json")
    robustness = report["robustness"]
    by_name = {one["change"]: one for one in robustness["changes"]}
    assert [*by_name] == ["as_written", *CHANGES]
    assert by_name["as_written"]["accuracy"] == report["accuracy"] and by_name["as_written"]["changed"] == 0
    assert by_name["decomposed"]["changed"] == 90 and by_name["decomposed"]["accuracy"] == report["accuracy"]
    four = [by_name[name]["accuracy"] for name in ("as_written", "no_spaces", "all_spaced", "random_spaces")]
    assert robustness["mean_of_spacings"] == pytest.approx(sum(four) / 4)
    assert f"mean of the spacings: {robustness['mean_of_spacings']:.4f}\n" in out
    # The same rows as a table of one's own: the changed texts are what is measured.
    texts = load_labelled_text("sample", validation_fraction=0.15)["validation"]
    spaced = change_texts(texts, "all_spaced", 42)
    probabilities = Classifier(str(trained)).probabilities(spaced["text"][:])
    right = probabilities.argmax(axis=1) == np.array(spaced["label"][:])
    assert by_name["all_spaced"]["accuracy"] == pytest.approx(right.mean())


def test_data_are_measured_whole_or_their_test_split(succeed, refused, trained, tmp_path):
    """With some labels alone, and line breaks; also the file that a run was trained on, whose recipe has the cut."""
    rows = [(f"정말 재미있는\n영화 {number}", ["negative", "positive"][number < 45]) for number in range(50)]
    for name, some in (("all.csv", rows), ("folder/train.csv", rows[:10]), ("folder/test.csv", rows[:40])):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with open(tmp_path / name, "w", encoding="utf-8", newline="") as opened:
            csv.writer(opened).writerows([("document", "label"), *some])
    for name, split, number in (("all.csv", "all rows", 50), ("folder", "test", 40)):
        out_dir = tmp_path / f"run-{name}"
        out = succeed("evaluate", "--model", trained, "--data", tmp_path / name, "--output_dir", out_dir)
        assert out.startswith(f"Measuring {split} of {tmp_path / name}: {number} rows\n")
        report = read_json(out_dir / "evaluation.json")
        assert report["rows"] == number and report["arguments"]["split"] == split
        assert [row["text"] for row in read_tsv(out_dir / "predictions.tsv")] == [text for text, _ in rows[:number]]
        wrong = report["confusion_matrix"][1][0]
        assert f"| positive | {wrong} | {min(45, number) - wrong} |" in (out_dir / "report.md").read_text()
    flags = ["--data", tmp_path / "all.csv", "--validation_fraction", "0.1"]
    succeed("train-classifier", *flags, "--vocab_size", "60", *TINY, *TWO_STEPS, "--output_dir", tmp_path / "run")
    assert "all rows" in succeed("evaluate", "--model", tmp_path / "run", *flags)
    assert ": 5 rows\n" in succeed("evaluate", "--model", tmp_path / "run", *flags, "--split", "test")
    # The recipe names all.csv, without the folder.
    assert "all.csv" in refused("evaluate", "--model", tmp_path / "run")


def test_a_translator_is_measured_by_its_translations(succeed, refused, corpus, tmp_path):
    """In torch and exported, on the data that the model's recipe names."""
    tokenizer = train_tokenizer((corpus / "train.num").read_text().splitlines(), vocab_size=60, add_eos=True)
    model = VanillaTransformerForConditionalGeneration(tiny_config(**TIED, vocab_size=len(tokenizer)))
    model.generation_config.update(num_beams=2, early_stopping=True)  # as CTranslate2 stops
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    said = refused("evaluate", "--model", folder, "--output_dir", tmp_path / "early", "--data", corpus)
    assert "are required: --source_column, --target_column" in said
    recipe = {"data": str(corpus), "source_column": "num", "target_column": "de", "validation_prefix": "val"}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    export(str(folder), output_dir=str(tmp_path / "exported"), format="ctranslate2")
    sources, references = ((corpus / f"test.{ending}").read_text().splitlines() for ending in ("num", "de"))
    translations = Translator(str(folder), num_beams=2)(sources)
    expected = translation_report(translations, references)
    for name in ("model", "exported"):
        out_dir = tmp_path / f"{name}-run"
        out = succeed("evaluate", "--model", tmp_path / name, "--output_dir", out_dir, "--num_beams", "2")
        report = read_json(out_dir / "evaluation.json")
        assert report.items() >= expected.items() and report["precision"] == "float32"
        assert f"test: BLEU {expected['bleu']:.2f} (95 %: 0.00 to 0.00), lower-cased " in out and "2 beams" in out
        for measure in ("bleu", "bleu_lowercased", "chrf"):
            line = f"{measure}: {expected[f'{measure}_signature']}"
            assert line in out and line in (out_dir / "report.md").read_text()
        rows = [tuple(row.values()) for row in read_tsv(out_dir / "predictions.tsv")]
        assert rows == list(zip(sources, references, translations, strict=True))
    said = refused("evaluate", "--model", folder, "--output_dir", tmp_path / "no", "--robustness", "all")
    assert "--robustness" in said
    (tmp_path / "pairs.csv").write_text("num,de\n1,eins\n2,zwei\n3,drei\n")
    flags = ["--model", folder, "--data", tmp_path / "pairs.csv"]
    assert "Measuring all rows" in succeed("evaluate", *flags)
    assert "--test_prefix" in refused("evaluate", *flags, "--test_prefix", "test")  # a table has no prefixes
