"""Texts in, probabilities and translations out."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from shared import tiny_config
from tokenizers.processors import TemplateProcessing

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.engines import load_engine
from hf_vanilla_transformer.inference import (
    WINDOW,
    classify,
    iterate_probabilities,
    iterate_translations,
    translate,
)
from hf_vanilla_transformer.inference.answers import token_ids
from hf_vanilla_transformer.loading import load_tokenizer
from hf_vanilla_transformer.tokenizer import train_tokenizer


TEXTS = ["가 나 다", "", "나", "다 가 나 나 가", "가 가"]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A classifier's folder, with random weights."""
    folder = tmp_path_factory.mktemp("classifier")
    train_tokenizer(["가 나 다"], vocab_size=29, max_length=1000).save_pretrained(folder)
    model = VanillaTransformerForSequenceClassification(tiny_config(max_position_embeddings=4, num_labels=3))
    model.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """A translator's folder, with random weights and two vocabularies."""
    folder = tmp_path_factory.mktemp("translator")
    tokenizer = train_tokenizer(["가 나 다 라 마 바 사 아 자 차 카 타 파 하"], vocab_size=40, add_eos=True)
    tokenizer.save_pretrained(folder)
    tokenizer.save_pretrained(folder / "target_tokenizer")
    torch.manual_seed(1)
    config = tiny_config(vocab_size=len(tokenizer), decoder_vocab_size=len(tokenizer))
    VanillaTransformerForConditionalGeneration(config).save_pretrained(folder)
    return str(folder)


def test_a_classifier_is_a_folder_an_engine_or_a_model(classifier):
    probabilities, labels = classify(TEXTS, classifier)
    assert probabilities.shape == (5, 3) and probabilities.dtype == np.float32
    assert labels == ["LABEL_0", "LABEL_1", "LABEL_2"]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    engine, tokenizer = load_engine(classifier), load_tokenizer(classifier)
    for model in (engine, engine.model):
        again, _ = classify(TEXTS, model, tokenizer, batch_size=2)
        np.testing.assert_allclose(again, probabilities, atol=1e-6)
    batch = tokenizer(TEXTS[2:3], return_tensors="pt").to(engine.model.device)
    torch.testing.assert_close(engine.model(**batch).logits.softmax(-1).cpu(), torch.from_numpy(probabilities[2:3]))
    assert classify([], classifier)[0].shape == (0, 3)


def test_a_text_is_cut_to_what_tokenizer_and_model_read(classifier):
    engine, tokenizer = load_engine(classifier), load_tokenizer(classifier)
    texts = ["가 나 다 가 나 다"]
    probabilities, _ = classify(texts, engine, tokenizer)
    tokenizer.model_max_length = 4
    np.testing.assert_array_equal(classify(texts, engine, tokenizer)[0], probabilities)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("template", ["$A", "$A [EOS]", "[CLS] [BOS] $A [SEP]"])
@pytest.mark.parametrize("limit", [3, 4, 7, 50])
def test_a_text_is_cut_as_the_tokenizer_cuts_it(side, template, limit):
    tokenizer = train_tokenizer(["가 나 다"], vocab_size=29)
    ids = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("[CLS]", "[BOS]", "[SEP]", "[EOS]")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=template, special_tokens=ids)
    tokenizer.truncation_side = side
    texts = ["", "가", "가 나 다 가 나 다", "다 [SEP] 나 [EOS] 가 가 [CLS]"]
    whole = tokenizer(texts)["input_ids"]
    expected = tokenizer(texts, truncation=True, max_length=limit)["input_ids"]
    tokenizer(texts, padding=True, truncation=True, max_length=2)  # which a fast tokenizer remembers
    assert token_ids(texts, tokenizer, limit) == (expected, [*map(len, whole)])


def test_threads_with_other_settings_share_a_tokenizer(classifier, translator):
    """Long texts are cut, refused, and classified at once."""
    long = ["가 " * 60]
    engine, tokenizer = load_engine(translator), load_tokenizer(translator)
    scorer, shared = load_engine(classifier), load_tokenizer(classifier)
    expected = translate(long, engine, tokenizer, tokenizer, max_new_tokens=2), classify(long, scorer, shared)[0]

    def ask(number: int) -> bool:
        if number % 3 == 0:
            return translate(long, engine, tokenizer, tokenizer, max_new_tokens=2) == expected[0]
        if number % 3 == 1:
            return np.array_equal(classify(long, scorer, shared)[0], expected[1])
        with pytest.raises(ValueError, match="text 1 has 121 tokens"):
            translate(long, engine, tokenizer, tokenizer, truncation=False)
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(240)))


def test_a_translator_is_a_folder_an_engine_or_a_model(translator):
    translations = translate(TEXTS, translator, num_beams=2, max_new_tokens=5)
    assert translations[1] == "" and len(set(translations)) > 2
    engine, tokenizer = load_engine(translator), load_tokenizer(translator)
    for model in (engine, engine.model):
        options = {"num_beams": 2, "max_new_tokens": 5, "batch_size": 2}
        assert translate(TEXTS, model, tokenizer, tokenizer, **options) == translations
    with pytest.raises(ValueError, match="needs its target_tokenizer"):
        translate(TEXTS, engine, tokenizer)


def test_texts_are_read_a_window_at_a_time(classifier, translator):
    read = 0

    def endless():
        nonlocal read
        while True:
            yield TEXTS[read % len(TEXTS)]
            read += 1

    expected, _ = classify(TEXTS, classifier)
    rows = iterate_probabilities(endless(), classifier, batch_size=1)
    for number in range(2 * WINDOW):
        np.testing.assert_allclose(next(rows), expected[number % len(TEXTS)], atol=1e-6)
        assert read == (WINDOW - 1 if number < WINDOW else 2 * WINDOW - 1)
    read = 0
    translations = iterate_translations(endless(), translator, batch_size=2, max_new_tokens=3)
    expected = translate(TEXTS, translator, max_new_tokens=3)
    for number in range(4 * WINDOW):
        assert next(translations) == expected[number % len(TEXTS)]
    assert read == 4 * WINDOW - 1


def test_what_cannot_be_answered_is_refused(classifier, translator):
    with pytest.raises(ValueError, match="not a translator but a VanillaTransformerForSequenceClassification"):
        translate(TEXTS, classifier)
    with pytest.raises(ValueError, match="not a classifier but a VanillaTransformerForConditionalGeneration"):
        classify(TEXTS, load_engine(translator), load_tokenizer(translator))
    with pytest.raises(ValueError, match="a loaded model needs its tokenizer"):
        classify(TEXTS, load_engine(classifier))
    with pytest.raises(TypeError, match="not one string"):
        classify("가 나 다", classifier)
    for answer, model in ((classify, classifier), (translate, translator)):
        with pytest.raises(ValueError, match=r"^text 2: '\\ud800' is half of a character$"):
            answer(["가", "나\ud800"], model)
