"""`vanilla-transformer import-sentencepiece`."""

import json

import pytest
from test_tokenizer import train_sentencepiece
from transformers import AutoTokenizer

from hf_vanilla_transformer.data.nsmc import SAMPLES


SAMPLE = SAMPLES / "ratings_train.txt"


def test_the_lines_that_differ_are_counted(succeed, tmp_path):
    train_sentencepiece(tmp_path / "bpe.model")
    rows = [{"document": None}, {"document": "좋은 영화"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    compare = ["--compare", SAMPLE, tmp_path / "rows.jsonl", "--text_column", "document"]
    flags = ["--sentencepiece_model", tmp_path / "bpe.model", "--output_dir", tmp_path / "tokenizer"]
    out = succeed("import-sentencepiece", *flags, *compare)
    number = len(SAMPLE.read_text(encoding="utf-8").splitlines()) - 1
    assert f"0 of {number + 1} lines differ" in out
    assert (tmp_path / "tokenizer" / "tokenizer.json").exists()


def test_settings_are_the_functions(succeed, tmp_path):
    train_sentencepiece(tmp_path / "unigram.model", "unigram", vocab_size=1200)
    flags = ["--sentencepiece_model", tmp_path / "unigram.model"]
    flags += ["--backend", "tokenizers", "--max_length", 9, "--output_dir", tmp_path / "imported"]
    succeed("import-sentencepiece", *flags)
    made = AutoTokenizer.from_pretrained(tmp_path / "imported")
    assert made.is_fast and made.model_max_length == 9


@pytest.mark.parametrize("file", ["missing.model", SAMPLE])
def test_another_file_is_refused_with_one_line(refused, file, tmp_path):
    assert refused("import-sentencepiece", "--sentencepiece_model", file, "--output_dir", tmp_path / "out")
    assert not any((tmp_path / "out").glob("*"))
