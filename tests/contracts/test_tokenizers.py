"""transformers' tests of tokenizers, on those that this package trains."""

import tempfile
import unittest
from pathlib import Path

from transformers import PreTrainedTokenizerFast
from transformers_tests import test_tokenization_common
from transformers_tests.test_tokenization_common import TokenizerTesterMixin

from hf_vanilla_transformer.data.tokenizer import train_tokenizer


TEXT = Path(test_tokenization_common.__file__).with_name("fixtures").joinpath("sample_text.txt")


class Contract(TokenizerTesterMixin):
    tokenizer_class = rust_tokenizer_class = PreTrainedTokenizerFast
    model = "bpe"
    # Needs a tokenizer that can be made from vocabulary and merges alone.
    test_tokenizer_from_extractor = False

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            lines = TEXT.read_text(encoding="utf-8").splitlines()
            train_tokenizer(lines, 1000, cls.model, max_length=512).save_pretrained(folder)
            cls.from_pretrained_id = [folder]
            super().setUpClass()
        cls.from_pretrained_id = [cls.tmpdirname]
        cls.tokenizers_list = [(cls.tokenizer_class, cls.tmpdirname, {})]


class TestBpe(Contract, unittest.TestCase):
    pass


class TestUnigram(Contract, unittest.TestCase):
    model = "unigram"
