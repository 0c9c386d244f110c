"""`vanilla-transformer evaluate`: the run's own figures, any engine's, the split of its recipe, and refusals."""

import csv
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from exports.models import TWIN, random_model, save
from shared import ROOT, TINY, TWO_STEPS, read_json, tiny_config

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.data.changes import CHANGES, change_texts
from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.nsmc import SAMPLES
from hf_vanilla_transformer.evaluation import accuracy_by_length
from hf_vanilla_transformer.exports import export
from hf_vanilla_transformer.inference import Classifier, Translator
from hf_vanilla_transformer.metrics import threshold_for, translation_report
from hf_vanilla_transformer.tokenizer import train_tokenizer


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
    whose = "sample, the data of the model's recipe"  # named before it is read
    assert out.startswith(f"Reading {whose}\nMeasuring validation of {whose}\n")
    summary = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert f"validation of sample: {out.splitlines()[-2].removeprefix('validation: ')}\n" in summary
    report = read_json(tmp_path / "run" / "evaluation.json")
    expected = read_json(trained / "metrics.json")["validation"]
    agree(report, expected)
    assert f"accuracy {expected['accuracy']:.4f}" in out
    for groups in (report["by_length"], report["bins"]):
        assert sum(group["rows"] for group in groups) == 90
        assert sum(group["rows"] * group["accuracy"] for group in groups) == pytest.approx(90 * expected["accuracy"])
    errors = read_tsv(tmp_path / "run" / "errors.tsv")
    assert len(errors) == round(90 * (1 - expected["accuracy"]))
    lines = (SAMPLES / "ratings_train.txt").read_text(encoding="utf-8").split("\n")
    for error in errors:
        assert error["label"] != error["predicted"]
        assert lines[int(error["line"]) - 1].split("\t")[1].strip('"') == error["text"].strip('"')
    surest = [float(error["probability"]) for error in errors]
    assert surest == sorted(surest, reverse=True)


def test_an_evaluation_with_changed_texts(succeed, trained, tmp_path):
    flags = ["--robustness", "all", "--split", "validation"]
    out = succeed("evaluate", "--model", trained, "--output_dir", tmp_path / "run", *flags)
    report = read_json(tmp_path / "run" / "evaluation.json")
    robustness = report["robustness"]
    names = [one["change"] for one in robustness["changes"]]
    assert names == ["as_written", *CHANGES]
    by_name = {one["change"]: one for one in robustness["changes"]}
    assert by_name["as_written"]["accuracy"] == report["accuracy"] and by_name["as_written"]["changed"] == 0
    assert by_name["decomposed"]["changed"] == 90 and by_name["decomposed"]["accuracy"] == report["accuracy"]
    four = [by_name[name]["accuracy"] for name in ("as_written", "no_spaces", "all_spaced", "random_spaces")]
    assert robustness["mean_of_spacings"] == pytest.approx(sum(four) / 4)
    assert re.search(rf"^mean of the spacings +{robustness['mean_of_spacings']:.4f}$", out, re.MULTILINE)
    # The same rows as a table of one's own: the changed texts are what is measured.
    texts = load_labelled_text("sample", validation_fraction=0.15)["validation"]
    spaced = change_texts(texts, "all_spaced", 42)
    probabilities = Classifier(str(trained)).probabilities(spaced["text"][:])
    right = probabilities.argmax(axis=1) == np.array(spaced["label"][:])
    assert by_name["all_spaced"]["accuracy"] == pytest.approx(right.mean())


@pytest.mark.slow
def test_the_ready_made_classifier_does_not_mind_spacing(succeed, tmp_path):
    """The published table of NSMC, on the 120 embedded test reviews."""
    folder = ROOT / "model_cards" / "nsmc-small"
    published = read_json(folder / "metrics.json")["test"]["robustness"]["changes"]
    flags = ["--data", "sample", "--robustness", "all"]
    succeed("evaluate", "--model", folder, "--output_dir", tmp_path / "run", *flags)
    measured = read_json(tmp_path / "run" / "evaluation.json")["robustness"]["changes"]
    assert [one["change"] for one in measured] == [one["change"] for one in published]
    for ours, theirs in zip(measured, published, strict=True):
        # Three standard errors of an accuracy of 120 reviews; with all characters spaced, the model before had 0.66.
        assert ours["accuracy"] > theirs["accuracy"] - 3 * (0.13 * 0.87 / 120) ** 0.5, ours["change"]


def test_an_evaluation_in_half_precision_is_nearly_the_same(succeed, trained, tmp_path):
    succeed("evaluate", "--model", trained, "--output_dir", tmp_path / "run", "--dtype", "bfloat16")
    report = read_json(tmp_path / "run" / "evaluation.json")
    assert report["precision"] == "bfloat16"
    assert report["accuracy"] == pytest.approx(read_json(trained / "metrics.json")["test"]["accuracy"], abs=0.05)


def test_a_file_that_the_run_has_not_seen_is_measured_as_a_whole(succeed, trained, tmp_path):
    """With some labels alone, line breaks and an id; and a folder that has the split test alone."""
    rows = [(f"id-{number}", f"정말 재미있는\n영화 {number}", "positive") for number in range(40)]
    (tmp_path / "folder").mkdir()
    for file in (tmp_path / "mine.csv", tmp_path / "folder" / "test.csv"):
        with open(file, "w", encoding="utf-8", newline="") as opened:
            csv.writer(opened).writerows([("number", "document", "label"), *rows])
    for data in ("mine.csv", "folder"):
        out_dir = tmp_path / f"run-{data}"
        arguments = ["--data", tmp_path / data, "--output_dir", out_dir, "--drop_unlabelled", "--id_column", "number"]
        out = succeed("evaluate", "--model", trained, *arguments)
        assert out.startswith(f"Measuring all 40 rows of {tmp_path / data}\n")
        report = read_json(out_dir / "evaluation.json")
        assert report["rows"] == 40 and [one["rows"] for one in report["per_label"]] == [0, 40]
        wrong = report["confusion_matrix"][1][0]
        errors = read_tsv(out_dir / "errors.tsv")
        assert len(errors) == wrong
        for error in errors:
            number = int(error["id"].removeprefix("id-"))
            assert int(error["line"]) == 2 * number + 2 and error["text"] == rows[number][1]
        summary = (out_dir / "report.md").read_text(encoding="utf-8")
        assert f"| positive | {wrong} | {40 - wrong} |" in summary.replace("\\", "")
    for flags in (["--data", tmp_path / "folder"], ["--data", tmp_path / "mine.csv", "--validation_fraction", "0.5"]):
        folder = tmp_path / f"x{len(flags)}"
        out = succeed("evaluate", "--model", trained, *flags, "--output_dir", folder, "--split", "test")
        assert out.startswith("Measuring test of")
        assert read_json(folder / "evaluation.json")["rows"] == (40 if len(flags) == 2 else 20)


def test_of_the_file_that_the_run_was_trained_on_the_test_split_is_measured(succeed, tmp_path):
    rows = "".join(f"재미있다 {number},good\n지루하다 {number},bad\n" for number in range(50))
    (tmp_path / "mine.csv").write_text(f"document,label\n{rows}", encoding="utf-8")
    data = ["--data", tmp_path / "mine.csv", "--validation_fraction", "0.1", "--vocab_size", "60"]
    succeed("train-classifier", *data, *TINY, *TWO_STEPS, "--output_dir", tmp_path / "run")
    (tmp_path / "moved.csv").write_bytes((tmp_path / "mine.csv").read_bytes())
    for name in ("mine.csv", "moved.csv"):
        arguments = ["--model", tmp_path / "run", "--data", tmp_path / name, "--output_dir", tmp_path / f"{name}-out"]
        assert succeed("evaluate", *arguments).startswith("Measuring test of")
        assert read_json(tmp_path / f"{name}-out" / "evaluation.json")["rows"] == 10


def test_a_translators_own_file_is_measured_as_a_whole(succeed, corpus, tmp_path):
    tokenizer = train_tokenizer((corpus / "train.num").read_text().splitlines(), vocab_size=60, add_eos=True)
    save(random_model(tiny_config(**TWIN, vocab_size=len(tokenizer))), tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "files").mkdir()
    for ending in ("num", "de"):
        (tmp_path / "files" / f"test.{ending}").write_bytes((corpus / f"test.{ending}").read_bytes())
    table = zip(*((corpus / f"test.{ending}").read_text().splitlines() for ending in ("num", "de")), strict=True)
    with open(tmp_path / "pairs.tsv", "w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, delimiter="\t").writerows([("num", "de"), *table])
    columns = ["--source_column", "num", "--target_column", "de"]
    for data in ("files", "pairs.tsv"):
        flags = ["--data", tmp_path / data, *columns, "--output_dir", tmp_path / f"{data}-out"]
        assert "Measuring all 13 rows" in succeed("evaluate", "--model", tmp_path / "model", *flags)


def test_a_text_at_the_limit_of_a_group_is_in_it():
    groups = accuracy_by_length(["a" * 5, "a" * 6, "a" * 80, "a" * 81], np.array([True, False, True, True]))
    assert [(group["characters"], group["rows"], group["accuracy"]) for group in groups] == [
        *(("1 to 5", 1, 1.0), ("6 to 10", 1, 0.0), ("41 to 80", 1, 1.0), ("more than 80", 1, 1.0))
    ]


def test_a_translator_is_measured_by_its_translations(succeed, refused, corpus, tmp_path):
    """In torch and exported, on the data that the model's recipe names."""
    tokenizer = train_tokenizer((corpus / "train.num").read_text().splitlines(), vocab_size=60, add_eos=True)
    model = VanillaTransformerForConditionalGeneration(tiny_config(**TWIN, vocab_size=len(tokenizer)))
    model.generation_config.update(num_beams=2, early_stopping=True)  # as CTranslate2 stops
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    said = refused("evaluate", "--model", folder, "--output_dir", tmp_path / "early", "--data", corpus)
    assert "--source_column, --target_column: neither given nor in the model's recipe" in said
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
            assert line in out and f"{measure}: `{line.partition(' ')[2]}`" in (out_dir / "report.md").read_text()
        rows = [tuple(row.values()) for row in read_tsv(out_dir / "translations.tsv")]
        assert rows == list(zip(sources, translations, references, strict=True))
    said = refused("evaluate", "--model", folder, "--output_dir", tmp_path / "no", "--robustness", "all")
    assert "--robustness: is for classifiers" in said


@pytest.fixture
def translator(corpus, tmp_path):
    """A folder with a translator of the corpus, with random weights and no recipe."""
    tokenizer = train_tokenizer((corpus / "train.num").read_text().splitlines(), vocab_size=60, add_eos=True)
    model = VanillaTransformerForConditionalGeneration(tiny_config(vocab_size=len(tokenizer)))
    model.save_pretrained(folder := tmp_path / "model")
    tokenizer.save_pretrained(folder)
    return folder


def test_a_translator_is_measured_on_several_test_sets(succeed, refused, translator, corpus, tmp_path):
    """Each as if it were measured alone."""
    flags = ["--model", translator, "--data", corpus, "--source_column", "num", "--target_column", "de"]
    flags += ["--validation_prefix", "val"]
    alone = []
    for prefix in ("test", "val"):
        succeed("evaluate", *flags, "--test_prefix", prefix, "--output_dir", tmp_path / prefix)
        report = read_json(tmp_path / prefix / "evaluation.json")
        alone.append({name: report[name] for name in ("bleu", "bleu_lowercased", "chrf", "bleu_interval", "rows")})
    out = succeed("evaluate", *flags, "--test_prefixes", "test", "val", "--output_dir", tmp_path / "both")
    assert f"Measuring test of {corpus}\nMeasuring val of {corpus}\n" in out
    report = read_json(tmp_path / "both" / "evaluation.json")
    assert report["arguments"]["test_prefixes"] == ["test", "val"] and report["arguments"]["test_prefix"] is None
    for prefix, one, expected in zip(("test", "val"), report["tests"], alone, strict=True):
        assert one["test"] == prefix and one.items() >= expected.items()
        figures = f"{prefix} | {one['bleu']:.2f} | {one['bleu_lowercased']:.2f} | {one['chrf']:.2f} | {one['rows']}"
        assert figures in (tmp_path / "both" / "report.md").read_text()
        assert f"{prefix}: BLEU {one['bleu']:.2f}" in out
    tests = [row["test"] for row in read_tsv(tmp_path / "both" / "translations.tsv")]
    assert tests == ["test"] * alone[0]["rows"] + ["val"] * alone[1]["rows"]
    said = refused("evaluate", *flags, "--test_prefixes", "test", "--split", "train")
    assert "--test_prefixes: names the test sets" in said
    assert "stands there twice" in refused("evaluate", *flags, "--test_prefixes", "test", "test")


def test_other_rows_do_not_pass_for_a_test_set(refused, succeed, trained, translator, corpus, tmp_path):
    flags = ["--model", translator, "--source_column", "num", "--target_column", "de", "--data"]
    said = refused("evaluate", *flags, corpus, "--test_prefixes", "test", "nope")
    assert f"--test_prefix nope: nope.num and nope.de, plain or .gz, are not in {corpus}" in said
    (tmp_path / "pairs.csv").write_text("num,de\n1,eins\n2,zwei\n3,drei\n")
    for flag in ("--test_prefix", "--test_prefixes"):  # a table has no prefixes
        said = refused("evaluate", *flags, tmp_path / "pairs.csv", flag, "test")
        assert "--test_prefix test: test.num and test.de, plain or .gz, are not in" in said
    assert "Measuring all 3 rows" in succeed("evaluate", *flags, tmp_path / "pairs.csv")

    folder = tmp_path / "pairs"
    folder.mkdir()
    for name in ("train", "check"):
        for column in ("num", "de"):
            shutil.copy(corpus / f"test.{column}", folder / f"{name}.{column}")
    said = refused("evaluate", *flags, folder)
    assert f"{folder}: no test split; if it is in check.de, check.num, name it by --test_prefix" in said
    assert f"Measuring check of {folder}" in succeed("evaluate", *flags, folder, "--test_prefix", "check")
    for column in ("num", "de"):
        (folder / f"check.{column}").unlink()
    assert "Measuring all 13 rows" in succeed("evaluate", *flags, folder)

    tables = tmp_path / "tables"
    tables.mkdir()
    for name in ("train", "check"):
        (tables / f"{name}.csv").write_text("document,label\n좋다,positive\n나쁘다,negative\n")
    said = refused("evaluate", "--model", trained, "--data", tables)
    assert f"{tables}: no test split; if it is in check.csv, give it as --data" in said


def test_an_exported_classifier_is_measured_as_its_model(succeed, trained, tmp_path):
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    reports = {}
    for quantize in (None, "int8"):
        folder = tmp_path / f"{quantize}"
        export(str(trained), output_dir=str(folder), format="ctranslate2", quantize=quantize)
        succeed("evaluate", "--model", folder, "--output_dir", tmp_path / f"{quantize}-run")
        reports[quantize] = read_json(tmp_path / f"{quantize}-run" / "evaluation.json")
    expected = read_json(trained / "metrics.json")["test"]
    agree(reports[None], expected)
    assert reports["int8"]["precision"] == "int8" and reports["int8"]["rows"] == expected["rows"]
    assert reports["int8"]["accuracy"] == pytest.approx(expected["accuracy"], abs=0.05)


@pytest.mark.slow
def test_an_evaluation_is_of_the_cut_that_the_flags_tell(succeed, trained, tmp_path):
    flags = ["--split", "validation", "--validation_fraction", "0.3", "--split_seed", "8"]
    succeed("evaluate", "--model", trained, "--output_dir", tmp_path, *flags)
    texts = load_labelled_text("sample", validation_fraction=0.3, seed=8)["validation"]["text"][:]
    errors = read_tsv(tmp_path / "errors.tsv")
    assert errors and {error["text"] for error in errors} <= {*texts}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "tset"], "--split"),
        (["--dtype", "int8"], "--dtype"),
        (["--batch_size", "0"], "--batch_size"),
        (["--model", "nowhere"], "nowhere"),
        (["--data", "nowhere.csv"], "nowhere.csv"),
        (["--robustness", "upside_down"], "no such change: upside_down"),
        (["--data", "three.csv"], "the model's labels are negative, positive; those of the data are a, b, c"),
    ],
)
def test_an_evaluation_is_refused_with_one_line(refused, trained, here, arguments, message):
    Path("three.csv").write_text("document,label\n" + "x,a\ny,b\nz,c\n" * 40)
    assert message in refused("evaluate", "--model", trained, "--output_dir", here / "run", *arguments)


@pytest.mark.slow
def test_a_threshold_is_chosen_on_validation(succeed, refused, trained, tmp_path):
    """Of a file that is measured as a whole, on the validation split of the run's own data."""
    classify = Classifier(trained)
    data = load_labelled_text("sample", validation_fraction=0.15)
    probabilities, labels = (
        classify.probabilities(data["validation"]["text"][:]),
        np.array(data["validation"]["label"]),
    )
    wanted = float((probabilities.argmax(axis=1) == labels).mean()) + 0.01
    expected = threshold_for(probabilities, labels, wanted)
    file = tmp_path / "new.csv"
    pd.DataFrame({"document": data["test"]["text"][:], "label": ["negative", "positive"] * 60}).to_csv(
        file, index=False
    )
    for flags in ([], ["--data", file]):
        out = succeed("evaluate", "--model", trained, *flags, "--target_accuracy", wanted)
        surer = (probabilities.max(axis=1) >= expected).sum()
        line = f"--threshold {expected:.4f}, chosen on {surer} of {len(labels)} validation rows for {wanted:.1%}: "
        assert line in out
    for wrong in ("0", "1.5", "x"):
        assert "target_accuracy" in refused("evaluate", "--model", trained, "--target_accuracy", wrong)
