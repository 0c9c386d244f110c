"""`vanilla-transformer import-sentencepiece`."""

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.nsmc import SAMPLES


SAMPLE = SAMPLES / "ratings_train.txt"


def sentencepiece_model(file: Path, model_type: str) -> Path:
    """A SentencePiece model of the sample's reviews."""
    sentencepiece = pytest.importorskip("sentencepiece")
    with open(file, "wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(load_labelled_text("sample")["train"]["text"][:]),
            model_writer=stream,
            model_type=model_type,
            vocab_size=1200,
            num_threads=1,
            minloglevel=2,
        )
    return file


def test_the_lines_that_differ_are_counted(succeed, tmp_path):
    file = sentencepiece_model(tmp_path / "bpe.model", "bpe")
    rows = [{"document": None}, {"document": "좋은 영화"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    compare = ["--compare", SAMPLE, tmp_path / "rows.jsonl", "--text_column", "document"]
    out = succeed(
        "import-sentencepiece", "--sentencepiece_model", file, "--output_dir", tmp_path / "tokenizer", *compare
    )
    number = len(SAMPLE.read_text(encoding="utf-8").splitlines()) - 1
    assert f"0 of {number + 1} lines differ" in out
    assert (tmp_path / "tokenizer" / "tokenizer.json").exists()


def test_settings_are_the_functions(succeed, tmp_path):
    flags = ["--sentencepiece_model", sentencepiece_model(tmp_path / "unigram.model", "unigram")]
    flags += ["--backend", "tokenizers", "--max_length", 9, "--output_dir", tmp_path / "imported"]
    succeed("import-sentencepiece", *flags)
    made = AutoTokenizer.from_pretrained(tmp_path / "imported")
    assert made.is_fast and made.model_max_length == 9


@pytest.mark.parametrize("file", ["missing.model", SAMPLE])
def test_another_file_is_refused_with_one_line(refused, file, tmp_path):
    assert refused("import-sentencepiece", "--sentencepiece_model", file, "--output_dir", tmp_path / "out")
    assert not any((tmp_path / "out").glob("*"))
