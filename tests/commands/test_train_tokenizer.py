"""`vanilla-transformer train-tokenizer`."""

from transformers import AutoTokenizer

from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.tokenizer import has_capitals, train_tokenizer


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
