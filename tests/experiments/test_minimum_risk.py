"""Minimum risk training: the loss is the paper's, and the candidates are those of the file."""

import math

import pytest
import sacrebleu
import torch
from conftest import tiny_config
from datasets import Dataset
from minimum_risk import CandidateCollator, add_candidates, describe_candidates, with_minimum_risk
from shared import QUIET, TINY_TRANSLATOR, read_json
from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainingArguments

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training.trainer import TokenBudgetTrainer


REFERENCES = ["Zwei Hunde spielen im Schnee .", "Ein Kind lacht ."]
CANDIDATES = [
    ["Zwei Hunde spielen im Schnee .", "Hunde im Schnee .", "Zwei Hunde spielen ."],
    ["Ein Hund lacht .", "Kind ."],
]


@pytest.fixture(scope="module")
def tokenizer():
    lines = [*REFERENCES, *(text for texts in CANDIDATES for text in texts)]
    return train_tokenizer(lines, vocab_size=60, add_eos=True, max_length=40)


@pytest.fixture
def rows(tokenizer, tmp_path) -> Dataset:
    """Two pairs with their candidates, one of them twice."""
    file = tmp_path / "candidates"
    file.write_text("".join("\t".join([*texts, texts[0]]) + "\n" for texts in CANDIDATES), encoding="utf-8")
    ids = tokenizer(REFERENCES)["input_ids"]
    pairs = {"input_ids": [row[::-1] for row in ids], "labels": ids, "length": [len(row) for row in ids]}
    return add_candidates(Dataset.from_dict(pairs), file, tokenizer)


def test_candidates_have_the_error_of_their_sentence(rows, tokenizer):
    assert tokenizer.batch_decode(rows[1]["candidates"], skip_special_tokens=True) == CANDIDATES[1]
    for reference, texts, errors in zip(REFERENCES, CANDIDATES, rows["errors"], strict=True):
        expected = [1 - sacrebleu.sentence_bleu(text, [reference]).score / 100 for text in texts]
        assert errors == pytest.approx(expected)
    assert rows[0]["errors"][0] == pytest.approx(0) and 0 < min(rows[0]["errors"][1:]) < 1


def test_the_candidates_are_described():
    errors = Dataset.from_dict({"errors": [[0.5, 0.2, 1.0], [0.3]]})
    expected = "candidates: 2.0 of each text; mean sentence BLEU of the first 60.0, of the best 75.0"
    assert describe_candidates(errors) == expected


@pytest.mark.parametrize(("text", "message"), [("a\n", "1 lines, for 2"), ("a\n \t\n", "line 2: no translation")])
def test_other_files_are_refused(rows, tokenizer, tmp_path, text, message):
    (tmp_path / "other").write_text(text)
    with pytest.raises(ValueError, match=message):
        add_candidates(rows.remove_columns(["candidates", "errors"]), tmp_path / "other", tokenizer)


def test_the_loss_is_the_expected_error_and_the_cross_entropy(rows, tokenizer, tmp_path, monkeypatch):
    """Each translation scored by itself, without padding."""
    config = tiny_config(vocab_size=len(tokenizer), max_position_embeddings=40)
    torch.manual_seed(0)
    model = VanillaTransformerForConditionalGeneration(config).eval()
    collate = DataCollatorForSeq2Seq(tokenizer, model=model)
    settings = Seq2SeqTrainingArguments(tmp_path, label_smoothing_factor=0.1, use_cpu=True, report_to="none")
    trainer_class = with_minimum_risk(TokenBudgetTrainer, 0.7)
    trainer = trainer_class(max_tokens=40, model=model, args=settings, data_collator=collate)
    features = list(rows.remove_columns("length"))
    batch = trainer.data_collator(features)
    number = (batch["labels"] != -100).sum()
    loss = trainer.compute_loss(model, batch, num_items_in_batch=number)

    risks = []
    for row in features:
        ids = torch.tensor([row["input_ids"]])
        scores = [-model(ids, labels=torch.tensor([one])).loss.item() for one in row["candidates"]]
        weights = [math.exp(8 * score) for score in scores]
        risks.append(sum(map(float.__mul__, weights, row["errors"])) / sum(weights))
    plain = collate([{name: row[name] for name in ("input_ids", "labels")} for row in features])
    cross_entropy = TokenBudgetTrainer.compute_loss(trainer, model, dict(plain), num_items_in_batch=number)
    torch.testing.assert_close(loss, 0.3 * cross_entropy + 0.7 * torch.tensor(sum(risks) / 2))
    with monkeypatch.context() as two:
        # Each of several processes has its share of the items, and their mean is taken.
        two.setattr(type(trainer.accelerator), "num_processes", 2)
        torch.testing.assert_close(trainer.compute_loss(model, batch, num_items_in_batch=2 * number), loss)
    # Validation has no candidates.
    without = CandidateCollator(collate)([{name: row[name] for name in ("input_ids", "labels")} for row in features])
    torch.testing.assert_close(trainer.compute_loss(model, without, num_items_in_batch=number), cross_entropy)


def test_the_likelier_translation_becomes_the_one_with_less_error(rows, tokenizer, tmp_path):
    config = tiny_config(vocab_size=len(tokenizer), max_position_embeddings=40)
    torch.manual_seed(0)
    model = VanillaTransformerForConditionalGeneration(config)
    settings = Seq2SeqTrainingArguments(
        tmp_path, max_steps=30, learning_rate=1e-2, use_cpu=True, report_to="none", save_strategy="no", seed=1
    )
    collate = DataCollatorForSeq2Seq(tokenizer, model=model)
    trainer_class = with_minimum_risk(TokenBudgetTrainer, 1.0)
    trainer_class(max_tokens=80, model=model, args=settings, data_collator=collate, train_dataset=rows).train()
    model.eval()
    for row in rows:
        ids = torch.tensor([row["input_ids"]])
        losses = [model(ids, labels=torch.tensor([one])).loss.item() for one in row["candidates"]]
        by_loss, by_error = (sorted(range(len(losses)), key=one.__getitem__) for one in (losses, row["errors"]))
        assert by_loss[0] == by_error[0]


@pytest.fixture
def translate(corpus) -> list:
    words = ["experiments/train_translation.py", "--data", corpus, "--source_column", "num", "--target_column", "de"]
    words += ["--validation_prefix", "val", "--max_length", "12", "--vocab_size", "60", "--max_tokens", "50"]
    return [*words, *TINY_TRANSLATOR, "--max_steps", "2", "--logging_steps", "1", *QUIET]


def test_the_script_trains_on_the_candidates(succeed, refused, translate, corpus, tmp_path):
    lines = (corpus / "train.de").read_text().splitlines()
    (tmp_path / "candidates").write_text("".join(f"{line}\tEins.\n" for line in lines))
    given = [*translate, "--candidates", tmp_path / "candidates", "--output_dir"]
    out = succeed(*given, tmp_path / "risk", "--risk_weight", "1")
    assert "candidates: 2.0 of each text; mean sentence BLEU of the first 100.0, of the best 100.0\n" in out
    succeed(*given, tmp_path / "none", "--risk_weight", "0")
    risk, none = (read_json(tmp_path / name / "metrics.json")["epochs"][0]["train_loss"] for name in ("risk", "none"))
    assert 0 < risk < 1 < none
    assert "\nrisk_weight: 1.0\n" in (tmp_path / "risk" / "recipe.yaml").read_text()
    (tmp_path / "candidates").write_text("Eins.\n")
    assert "1 lines, for 100 training pairs" in refused(*given, tmp_path / "refused")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--risk_weight", "0.5"], "--risk_weight: needs --candidates"),
        (["--candidates", "x", "--risk_weight", "1.5"], "--risk_weight: from 0 to 1"),
        (["--candidates", "x", "--rdrop_alpha", "1"], "--candidates"),
        (["--candidates", "x", "--bpe_dropout", "0.1"], "--candidates"),
        (["--candidates", "x", "--max_tokens", "null"], "--max_tokens"),
        (["--candidates", "x"], "x"),
    ],
)
def test_training_is_refused_with_one_line(refused, translate, tmp_path, arguments, message):
    assert message in refused(*translate, *arguments, "--output_dir", tmp_path / "run")
