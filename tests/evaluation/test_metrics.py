"""Metrics: reports, perplexity, calibration, BLEU."""

import logging

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF
from transformers import EvalPrediction

from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.evaluation.metrics import (
    calibration_report,
    classification_report,
    compute_perplexity,
    markdown_table,
    multi_label_report,
    regression_report,
    token_losses,
    translation_report,
    word_report,
)


def test_perplexity_is_that_of_all_tokens():
    logits, labels = torch.randn(3, 5, 11), torch.randint(11, (3, 5))
    labels[0, 2:] = -100
    parts = [token_losses(logits[:2], labels[:2]), token_losses(logits[2:], labels[2:])]
    measured = compute_perplexity(EvalPrediction(predictions=torch.cat(parts).numpy(), label_ids=None))
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    assert measured["token_loss"] == pytest.approx(expected.item(), rel=1e-5)
    assert measured["perplexity"] == pytest.approx(expected.exp().item(), rel=1e-5)


def test_perplexity_is_measured_in_full_precision():
    logits, labels = 4 * torch.randn(4, 50, 11).bfloat16(), torch.randint(11, (4, 50))
    expected = torch.nn.functional.cross_entropy(logits.double().flatten(0, 1), labels.flatten())
    losses = token_losses(logits, labels)
    assert losses.dtype == torch.float32
    assert (losses[:, 0].double().sum() / 200).item() == pytest.approx(expected.item(), rel=1e-5)
    # More tokens than float32 counts one by one.
    many = np.array([[2.0**24, 2.0**24], *[[3.0, 1.0]] * 9], dtype=np.float32)
    measured = compute_perplexity(EvalPrediction(predictions=many, label_ids=None))
    assert measured["token_loss"] == (2**24 + 27) / (2**24 + 9)


def test_the_report_counts_right_and_wrong():
    logits = np.array([[2.0, 1.0], [0.0, 1.0], [0.0, 3.0], [1.0, 0.0]])
    report = classification_report(logits, np.array([0, 1, 0, 1]))
    assert report["accuracy"] == 0.5
    assert report["confusion_matrix"] == [[1, 1], [1, 1]]  # rows are true, columns predicted
    # A label that is neither true nor predicted has its row and column.
    assert classification_report(logits[:1], np.array([0]))["confusion_matrix"] == [[1, 0], [0, 0]]


def test_each_label_is_measured_by_itself():
    """F1 is that of label 1 where there are two, else the mean."""
    report = classification_report(np.eye(3)[[0, 0, 1, 1]], np.array([0, 1, 1, 2]), ["a", "b", "c"])
    assert report["per_label"] == [
        {"label": "a", "precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "rows": 1},
        {"label": "b", "precision": 0.5, "recall": 0.5, "f1": 0.5, "rows": 2},
        {"label": "c", "precision": 0.0, "recall": 0.0, "f1": 0.0, "rows": 1},
    ]
    assert report["macro_f1"] == report["f1"] == pytest.approx((2 / 3 + 0.5) / 3)
    assert markdown_table(report["per_label"])[2] == "| a | 0.5000 | 1.0000 | 0.6667 | 1 |"
    two = classification_report(np.eye(2)[[1, 1, 1, 0]], np.array([1, 0, 1, 0]))
    assert two["f1"] == pytest.approx(0.8) and two["macro_f1"] == pytest.approx((0.8 + 2 / 3) / 2)


def test_sets_of_labels_are_measured_as_sets():
    logits = np.array([[1.0, -1.0], [1.0, 2.0], [-1.0, -2.0]])
    report = multi_label_report(logits, np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    assert report["exact_match"] == pytest.approx(1 / 3)
    assert report["micro_f1"] == pytest.approx(2 * 2 / (3 + 3))
    assert report["macro_f1"] == pytest.approx((0.5 + 1.0) / 2)
    assert multi_label_report(logits - 9, np.zeros((3, 2)))["micro_f1"] == 0


def test_numbers_are_measured_by_their_differences():
    values, labels = np.array([[1.0], [2.5], [2.0]]), np.array([1.0, 2.0, 4.0])
    expected = {"mae": 2.5 / 3, "rmse": (4.25 / 3) ** 0.5, "r2": 1 - 4.25 / (42 / 9), "rows": 3}
    expected["pearson"] = np.corrcoef(labels, values[:, 0])[0, 1]
    assert regression_report(values, labels) == pytest.approx(expected)
    assert regression_report(values, np.ones(3))["r2"] == regression_report(values * 0, labels)["pearson"] == 0


def test_calibration_compares_confidence_with_accuracy():
    """Eight answers, all as sure as 0.75, six of them right; two that are sure, one of them right."""
    probabilities = np.array([[0.75, 0.25]] * 8 + [[0.0, 1.0]] * 2)
    labels = np.array([0] * 6 + [1] * 2 + [1, 0])
    report = calibration_report(probabilities, labels)
    assert report["bins"] == [
        {"rows": 8, "confidence": 0.75, "accuracy": 0.75},
        {"rows": 2, "confidence": 1.0, "accuracy": 0.5},
    ]
    assert report["expected_calibration_error"] == pytest.approx(0.2 * 0.5)


def test_words_are_measured_as_the_tutorials_do():
    """Lower-cased, `T-shirt` three words and `man's` two; a word that the vocabulary lacks is never right."""
    references = ["The man's T-shirt is red.", "A red shirt, here"]
    known = [text.replace("man", "shirt") for text in references]
    tokenizer = train_tokenizer(known * 2, vocab_size=60, model="word", lowercase=True)
    beyond = len(tokenizer)  # a model may have ids for which the tokenizer has no token
    ids = [[*tokenizer(text)["input_ids"], beyond] for text in references]
    outside = {tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id}
    report = word_report(ids, references, tokenizer.backend_tokenizer, outside)
    written = ["the ? 's t - shirt is red .", "a red shirt , here"]
    expected = ["the man 's t - shirt is red .", written[1]]
    score = BLEU(tokenize="none", force=True).corpus_score(written, [expected]).score
    assert 50 < score < 100
    assert report["bleu_words"] == score and "tok:none" in report["bleu_words_signature"]


def test_bleu_is_that_of_wmts_tokens_and_needs_a_reference_each():
    report = translation_report(["a man's shirt, red"], ["a man's shirt: red"])
    assert "tok:13a" in report["bleu_signature"] and "tok:13a" in report["bleu_lowercased_signature"]
    assert report["chrf"] == CHRF().corpus_score(["a man's shirt, red"], [["a man's shirt: red"]]).score
    assert "nc:6|nw:0" in report["chrf_signature"]
    with pytest.raises(ValueError, match="1 translations, 2 references"):
        translation_report(["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("references", "tokens"),
    [
        (["我用 PyTorch 和 Transformers 训练了一个翻译模型"], "zh"),
        (["강아지 두 마리가 눈밭에서 논다.", "漢字도 조금 쓴다"], "13a"),
        (["Two dogs play in the snow.", "He says 你好 and สวัสดี to everybody."], "13a"),
        (["", "  ", "123 !?"], "13a"),
    ],
)
def test_bleu_counts_the_words_of_the_references_script(references, tokens, caplog):
    report = translation_report(references, references)
    assert all(f"tok:{tokens}" in report[f"{name}_signature"] for name in ("bleu", "bleu_lowercased"))
    assert report["bleu"] == pytest.approx(100) or tokens == "13a"  # of texts of a few words, it is 0
    assert not caplog.records


@pytest.mark.parametrize("references", [["สุนัขสองตัวเล่นในหิมะ"], ["二匹の犬が雪の中で遊んでいる。", "カメラ"]])
def test_where_bleu_finds_no_words_a_line_says_so(references, caplog):
    logging.Logger.warning_once.cache_clear()
    for _ in range(2):
        assert "tok:13a" in translation_report(references, references)["bleu_signature"]
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == ["chrF is the figure to read"]
