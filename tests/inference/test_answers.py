"""Texts in, probabilities and translations out."""

import numpy as np
import pytest
import torch
from shared import tiny_config

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
