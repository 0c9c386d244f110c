"""Texts in, labels, probabilities and translations out."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from shared import LINES, tiny_config
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForSeq2SeqLM, pipeline

from hf_vanilla_transformer import (
    Classifier,
    Translator,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    export,
)
from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.data.problem_types import MULTI, REGRESSION, SINGLE
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.inference import load_engine
from hf_vanilla_transformer.inference.folder import load_tokenizer
from hf_vanilla_transformer.inference.loaded import WINDOW
from hf_vanilla_transformer.inference.tokenization import ExportedTokenizer, TransformersTokenizer


TEXTS = ["가 나 다", "\u200b", "나", "다 가 나 나 가", "가 가"]  # one without a token


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


def test_a_classifier_is_a_folder_or_a_model(classifier):
    classify = Classifier(classifier)
    probabilities = classify.probabilities(TEXTS)
    assert probabilities.shape == (5, 3) and probabilities.dtype == np.float32
    assert classify.labels == ["LABEL_0", "LABEL_1", "LABEL_2"]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    model, tokenizer = load_engine(classifier).model, load_tokenizer(classifier)
    again = Classifier(model, tokenizer, batch_size=2).probabilities(TEXTS)
    np.testing.assert_allclose(again, probabilities, atol=1e-6)
    batch = tokenizer(TEXTS[2:3], return_tensors="pt").to(model.device)
    torch.testing.assert_close(model(**batch).logits.softmax(-1).cpu(), torch.from_numpy(probabilities[2:3]))
    assert classify.probabilities([]).shape == (0, 3) and classify([]) == []


@pytest.mark.parametrize("kind", [None, MULTI, REGRESSION])
def test_answers_are_those_of_transformers_pipeline(kind, tmp_path):
    torch.manual_seed(2)
    labels = {"num_labels": 1} if kind == REGRESSION else {"id2label": {0: "나쁨", 1: "좋음"}}
    model = VanillaTransformerForSequenceClassification(tiny_config(problem_type=kind, **labels))
    model.classifier.weight.data *= 30
    model.save_pretrained(tmp_path)
    train_tokenizer(["가 나 다"], vocab_size=29, max_length=16).save_pretrained(tmp_path)
    expected = pipeline("text-classification", str(tmp_path), trust_remote_code=True)(
        TEXTS, top_k=None, truncation=True
    )
    answers = Classifier(tmp_path)(iter(TEXTS))
    for answer, every in zip(answers, expected, strict=True):
        every = [one for one in every if one["score"] > 0.5] if kind == MULTI else every[:1]
        answer = sorted(answer, key=lambda one: -one["score"]) if kind == MULTI else [answer]
        assert [one["label"] for one in answer] == [one["label"] for one in every]
        assert [one["score"] for one in answer] == pytest.approx([one["score"] for one in every], rel=1e-6)
    assert len({str(answer) for answer in answers}) > 2


def test_a_label_needs_the_threshold_at_least(classifier):
    """Whether a text has one label or several; without a threshold, of several labels those above 1/2."""
    row, classify = np.float32([0.25, 0.5, 0.75]), Classifier(classifier, threshold=0.75)
    for threshold, single, several in (
        *((0.75, "LABEL_2", ["LABEL_2"]), (0.7501, "", []), (0.25, "LABEL_2", classify.labels)),
        *((None, "LABEL_2", ["LABEL_2"]), (0.5, "LABEL_2", ["LABEL_1", "LABEL_2"])),
    ):
        classify.threshold, classify.problem_type = threshold, SINGLE
        assert classify.answer(row) == {"label": single, "score": 0.75}
        classify.problem_type = MULTI
        assert [one["label"] for one in classify.answer(row)] == several
        assert [one["score"] for one in classify.answer(row, top_k=2)] == [0.75, 0.5]
    with pytest.raises(DataError, match="top_k: a whole number, at least 0, not -1"):
        classify("가", top_k=-1)


def test_a_blank_text_has_no_answer(classifier, translator):
    missing = ["", " \n", None, np.nan, *pd.array(["가", None], dtype="string")[1:]]
    texts = [*missing, "가 나", *missing, "다"]
    classify, translate = Classifier(classifier, batch_size=1), Translator(translator, max_new_tokens=3)
    for ask in (classify, translate, partial(translate, num_return_sequences=1, return_scores=True)):
        one, other = ask(["가 나", "다"])
        assert ask(texts) == [*[None] * 5, one, *[None] * 5, other]
    probabilities = classify.probabilities(texts)
    np.testing.assert_array_equal(probabilities[[5, 11]], classify.probabilities(["가 나", "다"]))
    assert np.isnan(np.delete(probabilities, [5, 11], axis=0)).all() and probabilities.shape == (12, 3)


def test_weights_that_are_not_finite_are_one_line(classifier, translator, tmp_path):
    for folder, load in ((classifier, Classifier), (translator, Translator)):
        damaged, tokenizer = load_engine(folder).model, load_tokenizer(folder)
        next(damaged.parameters()).data.fill_(np.nan)
        options = {"return_scores": True} if load is Translator else {}
        model = load(damaged, tokenizer, *[tokenizer] * (load is Translator))
        with pytest.raises(DataError, match="^the model computes NaN or infinity: "):
            model("가 나 다", **options)
        damaged.save_pretrained(tmp_path / load.task)
        with pytest.raises(DataError, match=f"{load.task}: weights of the model are NaN or infinite"):
            load(tmp_path / load.task)


def test_settings_of_the_outputs_change_no_answer(classifier, translator):
    """And a search that needs more than ids, or a tokenizer that leaves none, is one line."""
    for folder, load in ((classifier, Classifier), (translator, Translator)):
        model, tokenizer = load_engine(folder).model, load_tokenizer(folder)
        tokenizers, options = (
            [tokenizer] * (1 + (load is Translator)),
            {"return_scores": True} if load is Translator else {},
        )
        expected = load(model, *tokenizers)(TEXTS, **options)
        model.config.return_dict = False
        if load is Translator:
            model.generation_config.return_dict_in_generate = True
        assert load(model, *tokenizers)(TEXTS, **options) == expected
    model.generation_config.stop_strings = ["가"]
    with pytest.raises(DataError, match="could not locate a tokenizer"):
        load(model, *tokenizers)(TEXTS)
    tokenizer.model_max_length = -5
    with pytest.raises(DataError, match="model_max_length: a whole number, at least 1, not -5"):
        Classifier(load_engine(classifier).model, tokenizer)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("template", ["$A", "$A [EOS]", "[CLS] [BOS] $A [SEP]"])
@pytest.mark.parametrize("limit", [3, 7, 50])
def test_a_text_is_cut_as_the_tokenizer_cuts_it(side, template, limit, tmp_path):
    tokenizer = train_tokenizer(["가 나 다"], vocab_size=29)
    ids = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("[CLS]", "[BOS]", "[SEP]", "[EOS]")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=template, special_tokens=ids)
    tokenizer.truncation_side = side
    tokenizer.save_pretrained(tmp_path)
    texts = ["", "가", "가 나 다 가 나 다", "다 [SEP] 나 [EOS] 가 가 [CLS]"]
    uncut = tokenizer(texts)["input_ids"]
    expected = tokenizer(texts, truncation=True, max_length=limit)["input_ids"]
    tokenizer(texts, padding=True, truncation=True, max_length=2)  # which a fast tokenizer remembers
    for one in (TransformersTokenizer(tokenizer), ExportedTokenizer(str(tmp_path))):
        assert one.encode(texts, limit) == (expected, [*map(len, uncut)])
        assert one.decode(uncut) == tokenizer.batch_decode(uncut, skip_special_tokens=True)
        assert one.added_tokens == tokenizer.num_special_tokens_to_add()


def test_threads_share_a_tokenizer_with_other_settings(classifier, translator):
    """Long texts are cut to two lengths at once."""
    long = ["가 " * 60]
    tokenizer = load_tokenizer(classifier)
    translate = Translator(load_engine(translator).model, tokenizer, tokenizer, max_new_tokens=2)
    classify = Classifier(load_engine(classifier).model, tokenizer)
    expected = translate(long), classify.probabilities(long)

    def ask(number: int) -> bool:
        if number % 2:
            return translate(long) == expected[0]
        return np.array_equal(classify.probabilities(long), expected[1])

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(240)))


def test_threads_load_at_once(tiny_models):
    """transformers' loader changes functions of the whole process while it runs."""
    functions = [
        lambda: Classifier(tiny_models["classification"]).probabilities(LINES[:3])[0],
        lambda: Translator(tiny_models["translation"])(LINES[:3]),
    ]
    expected = [function() for function in functions] * 8
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads change often
    try:
        with ThreadPoolExecutor(8) as threads:
            answers = [*threads.map(lambda function: function(), functions * 8)]
    finally:
        sys.setswitchinterval(interval)
    assert all(map(np.array_equal, answers, expected))


def test_they_are_pickled_by_their_folder(classifier, translator, monkeypatch):
    """As a pool of processes, Ray and Spark send them."""
    translate = Translator(translator, num_beams=2, max_new_tokens=3)
    again = pickle.loads(pickle.dumps(translate))
    assert (again.num_beams, again.max_new_tokens) == (2, 3) and again(TEXTS) == translate(TEXTS)
    monkeypatch.chdir(Path(classifier).parent)
    classify = Classifier(Path(classifier).name, threshold=0.9)
    relative = pickle.dumps(classify)
    monkeypatch.chdir("/")
    assert pickle.loads(relative)(TEXTS) == classify(TEXTS) and len(relative) < 1000
    with pytest.raises(TypeError, match="pickled by its folder"):
        pickle.dumps(Classifier(load_engine(classifier).model, load_tokenizer(classifier)))


def test_a_translator_is_a_folder_or_a_model(translator):
    options = {"num_beams": 2, "max_new_tokens": 5}
    translations = Translator(translator, **options)(TEXTS)
    assert translations[1] == "" and len(set(translations)) > 2
    model, tokenizer = load_engine(translator).model, load_tokenizer(translator)
    assert Translator(model, tokenizer, tokenizer, batch_size=2, **options)(TEXTS) == translations
    with pytest.raises(ValueError, match="needs its target_tokenizer"):
        Translator(model, tokenizer)
    assert Translator(translator, **options)(TEXTS[0]) == translations[:1]


@pytest.mark.parametrize("max_new_tokens", [None, 3])
def test_each_text_has_its_best_translations_and_their_log_probabilities(translator, max_new_tokens):
    """The sum of the chosen tokens' log-probabilities, as `generate` of transformers has them."""
    translate = Translator(translator, num_beams=3, max_new_tokens=max_new_tokens, batch_size=2)
    answers = translate(TEXTS, num_return_sequences=3, return_scores=True)
    assert translate(TEXTS, num_return_sequences=2) == [[one["translation"] for one in each[:2]] for each in answers]
    assert translate(TEXTS, return_scores=True) == [pytest.approx(each[0], abs=1e-6) for each in answers]
    assert answers[1] == [{"translation": "", "score": 0.0, "score_per_token": 0.0}] * 3
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(translator), load_tokenizer(translator)
    for text, each in zip(TEXTS, answers, strict=True):
        if text == TEXTS[1]:
            continue
        limit = {"max_length": model.config.max_target_positions if max_new_tokens is None else 4}
        settings = {"num_beams": 3, "num_return_sequences": 3, "return_dict_in_generate": True, "output_scores": True}
        written = model.generate(**tokenizer(text, return_tensors="pt"), **settings, **limit)
        ids, beams = written.sequences, written.beam_indices
        steps = model.compute_transition_scores(ids, written.scores, beams, normalize_logits=False)
        expected = [float(row[mask].sum()) for row, mask in zip(steps, beams >= 0, strict=True)]
        assert [one["score"] for one in each] == pytest.approx(expected, abs=1e-4)
        tokens = (beams >= 0).sum(dim=1).tolist()
        assert [one["score_per_token"] * n for one, n in zip(each, tokens, strict=True)] == pytest.approx(
            expected, abs=1e-4
        )
    with pytest.raises(DataError, match="num_return_sequences: 4, and the search has 3 beams"):
        translate(TEXTS, num_return_sequences=4)


def test_an_export_answers_without_an_import_of_torch(tiny_models, tmp_path):
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    export(tiny_models["classification"], format="ctranslate2", output_dir=tmp_path / "export")
    program = """
import re, sys
sys.modules["torch"] = sys.modules["transformers"] = None  # an import fails
from hf_vanilla_transformer import Classifier
(answer,) = Classifier(sys.argv[1])("가 나 다")
print(answer["label"], re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""
    command = [sys.executable, "-c", program, str(tmp_path / "export")]
    label, kilobytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert label.startswith("LABEL_") and int(kilobytes) < 150 * 1024


def test_texts_are_read_a_window_at_a_time(classifier, translator):
    read = 0

    def endless():
        nonlocal read
        while True:
            yield TEXTS[read % len(TEXTS)]
            read += 1

    expected = Classifier(classifier)(TEXTS)
    answers = Classifier(classifier, batch_size=1).stream(endless())
    for number in range(2 * WINDOW):
        assert next(answers) == pytest.approx(expected[number % len(TEXTS)], abs=1e-6)
        assert read == (WINDOW - 1 if number < WINDOW else 2 * WINDOW - 1)
    read = 0
    translate = Translator(translator, batch_size=2, max_new_tokens=3)
    translations, expected = translate.stream(endless()), translate(TEXTS)
    for number in range(4 * WINDOW):
        assert next(translations) == expected[number % len(TEXTS)]
    assert read == 4 * WINDOW - 1


def test_what_cannot_be_answered_is_refused(classifier, translator):
    with pytest.raises(ValueError, match="not a translator but a VanillaTransformerForSequenceClassification"):
        Translator(classifier)
    with pytest.raises(ValueError, match="not a classifier but a VanillaTransformerForConditionalGeneration"):
        Classifier(load_engine(translator).model, load_tokenizer(translator))
    with pytest.raises(ValueError, match="a loaded classifier needs its tokenizer"):
        Classifier(load_engine(classifier).model)
    for name, value in (("batch_size", 0), ("num_beams", 2.5), ("max_new_tokens", "4")):
        with pytest.raises(DataError, match=f"^{name}: a whole number"):
            Translator(translator, **{name: value})
    for texts in ({"text": ["가"]}, pd.DataFrame({"text": ["가"]}), Dataset.from_dict({"text": ["가"]})):
        with pytest.raises(TypeError, match=f"^a {type(texts).__name__}: give a text, or the texts of one column$"):
            Classifier(classifier)(texts)
