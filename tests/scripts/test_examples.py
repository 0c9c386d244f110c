"""The programs of scripts/examples."""

import re

from shared import ROOT

from hf_vanilla_transformer.evaluation import save_predictions


def test_two_models_are_compared_by_what_evaluate_wrote(succeed, trained, tmp_path):
    names = ("one", "two", "before", "after")
    for name, model in zip(names, (trained, ROOT / "model_cards" / "nsmc-small"), strict=False):
        succeed("evaluate", "--model", model, "--data", "sample", "--output_dir", tmp_path / name)
    said = succeed("examples/compare_models.py", tmp_path / "one", tmp_path / "two")
    assert re.fullmatch(r"accuracy 0\.\d{4} -> 0\.\d{4}, \d+ gained, \d+ lost, p \S+\n", said)
    for name, right in (("before", 5), ("after", 14)):  # nine of twenty answers get right: (1 / 2) ** 8
        (tmp_path / name).mkdir()
        rows = [{"label": "a", "predicted": "ba"[row < right], "text": str(row)} for row in range(20)]
        save_predictions(tmp_path / name, rows)
    said = succeed("examples/compare_models.py", tmp_path / "before", tmp_path / "after")
    assert said == "accuracy 0.2500 -> 0.7000, 9 gained, 0 lost, p 0.00391\n"


def test_two_translators_are_compared_by_paired_bootstrap(succeed, run, tmp_path):
    pairs = [{"source": f"{row}", "reference": f"a man sees {row} dogs in the snow"} for row in range(50)]
    for name, words in (("before", "a man {} dogs in snow"), ("after", "a man sees {} dogs in the snow")):
        (tmp_path / name).mkdir()
        save_predictions(tmp_path / name, [pair | {"translation": words.format(pair["source"])} for pair in pairs])
    said = succeed("examples/compare_models.py", tmp_path / "before", tmp_path / "after")
    assert re.fullmatch(r"BLEU \d\d\.\d\d -> 100\.00, p 0\.00\d\n", said)
    (tmp_path / "other").mkdir()
    save_predictions(tmp_path / "other", [{"source": "x", "reference": "y", "translation": "z"}])
    status, _, _ = run("examples/compare_models.py", tmp_path / "before", tmp_path / "other")
    assert status == "the folders are of different rows"
