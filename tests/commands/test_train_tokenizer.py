"""`vanilla-transformer train-tokenizer`."""

from transformers import AutoTokenizer

from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.tokenizer import has_capitals, train_tokenizer


def test_a_tokenizer_of_a_file_is_that_of_the_function(succeed, tmp_path):
    texts = [text.encode("cp949", "ignore").decode("cp949") for text in load_labelled_text("sample")["train"]["text"]]
    (tmp_path / "corpus.txt").write_text("\n".join(texts), encoding="cp949")
    flags = ["--texts", tmp_path / "corpus.txt", "--encoding", "cp949", "--output_dir", tmp_path / "trained"]
    flags += ["--vocab_size", 1000, "--model", "unigram", "--lowercase", "true", "--max_length", 9]
    succeed("train-tokenizer", *flags)
    expected = train_tokenizer(texts, vocab_size=1000, model="unigram", lowercase=True, max_length=9)
    made = AutoTokenizer.from_pretrained(tmp_path / "trained")
    assert made.get_vocab() == expected.get_vocab() and made(texts).input_ids == expected(texts).input_ids
    assert made.model_max_length == 9 and not has_capitals(made)
