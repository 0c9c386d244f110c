"""The programs of scripts/examples."""

import re

import numpy as np
import pytest
from shared import ROOT

from hf_vanilla_transformer import Classifier, Translator
from hf_vanilla_transformer.evaluation.evaluate import save_predictions


NSMC_SMALL, DE_EN = (ROOT / "model_cards" / name for name in ("nsmc-small", "multi30k-de-en"))


@pytest.mark.parametrize("file", sorted((ROOT / "scripts" / "examples").glob("*.py")), ids=lambda file: file.stem)
def test_an_example_has_at_most_forty_lines(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 40


def test_two_models_are_compared_by_what_evaluate_wrote(succeed, tmp_path):
    for name, right in (("before", 5), ("after", 14)):  # nine of twenty answers get right: (1 / 2) ** 8
        (tmp_path / name).mkdir()
        columns = {"label": "a" * 20, "predicted": "a" * right + "b" * (20 - right), "text": "abcdefghijklmnopqrst"}
        save_predictions(tmp_path / name, {column: list(values) for column, values in columns.items()})
    said = succeed("examples/compare_models.py", tmp_path / "before", tmp_path / "after")
    assert said == "accuracy 0.2500 -> 0.7000, 9 gained, 0 lost, p 0.00391\n"


def test_two_translators_are_compared_by_paired_bootstrap(succeed, run, tmp_path):
    sources = [str(row) for row in range(50)]
    pairs = {"source": sources, "reference": [f"a man sees {source} dogs in the snow" for source in sources]}
    for name, words in (("before", "a man {} dogs in snow"), ("after", "a man sees {} dogs in the snow")):
        (tmp_path / name).mkdir()
        save_predictions(tmp_path / name, pairs | {"translation": [words.format(source) for source in sources]})
    said = succeed("examples/compare_models.py", tmp_path / "before", tmp_path / "after")
    assert re.fullmatch(r"BLEU \d\d\.\d\d -> 100\.00, p 0\.00\d\n", said)
    (tmp_path / "other").mkdir()
    save_predictions(tmp_path / "other", {"source": ["x"], "reference": ["y"], "translation": ["z"]})
    status, _, _ = run("examples/compare_models.py", tmp_path / "before", tmp_path / "other")
    assert status == "the folders are of different rows"


def test_a_long_text_is_answered_by_the_mean_of_windows(succeed):
    classify = Classifier(NSMC_SMALL)
    texts = ["정말 재미있다", "지루했다 " * 100 + "정말 재미있고 감동적인 영화 " * 100]
    (ids,), _ = classify.tokenizer.encode(texts[1:], 10_000)
    windows = [ids[start : start + 128] for start in (*range(0, len(ids) - 128, 64), len(ids) - 128)]
    logits = classify.engine.logits(windows, 1).mean(axis=0)
    expected = [classify(texts[0])[0]["score"], float(np.exp(logits.max()) / np.exp(logits).sum())]
    out = succeed("examples/long_texts.py", NSMC_SMALL, stdin="\n".join(texts)).splitlines()
    assert [float(line.split("\t")[1]) for line in out] == pytest.approx(expected, abs=1e-4)


def test_words_are_aligned_by_cross_attention(succeed):
    text = "Zwei Hunde spielen im Schnee.\n\nEin Mann in einem roten Hemd schläft.\n"
    first, second = succeed("examples/alignments.py", DE_EN, stdin=text).splitlines()
    assert first == "Two dogs play in the snow.\t0-0 1-1 2-2 4-3 4-4 4-5"
    translation, pairs = second.split("\t")
    words = dict(pair.split("-")[::-1] for pair in pairs.split())
    assert [words[str(translation.split().index(word))] for word in ("man", "red", "shirt")] == ["1", "4", "5"]


def test_a_text_is_translated_sentence_by_sentence(succeed):
    sentences = ["Zwei Hunde spielen im Schnee.", "Am 3. Mai z. B. schläft er!", "Eine Frau lacht ... und geht."]
    out = succeed("examples/split_sentences.py", DE_EN, stdin=f"{' '.join(sentences)}\n\n{sentences[0]}\n")
    first, *others = Translator(DE_EN)(sentences)
    assert out.split("\n") == [" ".join([first, *others]), "", first, ""]
