"""BPE-dropout: other pieces, the same texts, and the same for the same seed."""

from random import Random

import pytest
from bpe_dropout import BpeDropout, draw_segmentations
from datasets import Dataset
from shared import TINY, TWO_STEPS

from hf_vanilla_transformer.data.labelled_text import encode, load_labelled_text
from hf_vanilla_transformer.tokenizer import train_tokenizer


def test_words_are_cut_anew_by_the_seed():
    reviews = load_labelled_text("sample")["train"]["text"][:300]
    tokenizer = train_tokenizer(reviews, vocab_size=1500, add_eos=True)
    ids = encode([*reviews, "qqq ㋿ Æ\u0301 ▁▁ !?!? 10,000원"], tokenizer)
    assert [BpeDropout(tokenizer, 0)(text, Random(1)) for text in ids] == ids
    cut = [BpeDropout(tokenizer, 0.3)(text, Random(1)) for text in ids]
    assert cut != ids and tokenizer.batch_decode(cut) == tokenizer.batch_decode(ids)

    rows = Dataset.from_dict({"input_ids": ids, "length": list(map(len, ids))})
    drawn, again, other = (
        draw_segmentations(rows, {"input_ids": tokenizer}, 0.1, 2, 10_000, seed) for seed in (5, 5, 6)
    )
    assert drawn["input_ids"][:] == again["input_ids"][:] != other["input_ids"][:]
    assert drawn["input_ids"][: len(ids)] != drawn["input_ids"][len(ids) :]
    assert drawn["length"][:] == list(map(len, drawn["input_ids"]))

    with pytest.raises(ValueError, match="BPE vocabulary"):
        BpeDropout(train_tokenizer(reviews, vocab_size=1500, model="unigram"), 0.1)


def test_the_script_trains_on_the_segmentations(succeed, tmp_path):
    words = ["experiments/train_classifier.py", "--data", "sample", "--vocab_size", "1500", *TINY, *TWO_STEPS]
    succeed(*words, "--bpe_dropout", "0.1", "--output_dir", tmp_path / "run")
    assert "\nbpe_dropout: 0.1\n" in (tmp_path / "run" / "recipe.yaml").read_text()
