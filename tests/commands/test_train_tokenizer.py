"""`vanilla-transformer train-tokenizer`."""

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.nsmc import SAMPLES
from hf_vanilla_transformer.tokenizer import has_capitals, train_tokenizer


SAMPLE = SAMPLES / "ratings_train.txt"


def test_a_tokenizer_of_a_file_is_a_folder(succeed, tmp_path):
    texts = [
        text
        for text in load_labelled_text("sample")["train"]["text"]
        if text.encode("cp949", "ignore").decode("cp949") == text
    ]
    (tmp_path / "corpus.txt").write_text("\n".join(texts), encoding="cp949")
    flags = ["--texts", tmp_path / "corpus.txt", "--encoding", "cp949", "--vocab_size", 900]
    flags += ["--output_dir", tmp_path / "tokenizer"]
    succeed("train-tokenizer", *flags)
    expected = train_tokenizer(texts, vocab_size=900)
    assert AutoTokenizer.from_pretrained(tmp_path / "tokenizer")(texts).input_ids == expected(texts).input_ids


def test_settings_are_the_functions(succeed, tmp_path):
    texts = load_labelled_text("sample")["train"]["text"][:]
    (tmp_path / "corpus.txt").write_text("\n".join(texts), encoding="utf-8")
    flags = ["--texts", tmp_path / "corpus.txt", "--output_dir", tmp_path / "trained", "--vocab_size", 1000]
    succeed("train-tokenizer", *flags, "--model", "unigram", "--lowercase", "true", "--max_length", 9)
    expected = train_tokenizer(texts, vocab_size=1000, model="unigram", lowercase=True, max_length=9)
    made = AutoTokenizer.from_pretrained(tmp_path / "trained")
    assert made.get_vocab() == expected.get_vocab()
    assert made.model_max_length == 9 and not has_capitals(made)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--texts", "missing.txt"],
        ["--texts", SAMPLE, "--vocab_size", "20"],
        ["--texts", "latin1.txt"],
        ["--texts", SAMPLE, "--output_dir", "latin1.txt"],
    ],
)
def test_wrong_settings_are_refused_with_one_line(refused, arguments, here):

    Path("latin1.txt").write_bytes("caf\xe9".encode("latin-1"))
    assert refused("train-tokenizer", "--output_dir", "out", *arguments)
    assert not any(Path("out").glob("*")) and Path("latin1.txt").read_bytes() == b"caf\xe9"
