"""`vanilla-transformer translate`: each text on its own, in order, cut or refused."""

import shutil

import pytest
import torch
from shared import tiny_config
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, GenerationConfig

from hf_vanilla_transformer import (
    Translator,
    VanillaTransformerForConditionalGeneration,
)
from hf_vanilla_transformer.data.tokenizer import train_tokenizer


TEXTS = ["1 2 3", "", "4 0 1 2 3 4 0 1", "  ", "2", "3 3 3 3"]


@pytest.fixture(scope="module")
def translator(corpus, tmp_path_factory):
    """A translator's folder with two vocabularies, and random weights that end translations at various lengths."""
    folder = tmp_path_factory.mktemp("translator")
    sources, targets = ((corpus / f"train.{ending}").read_text().splitlines() for ending in ("num", "de"))
    options = {"vocab_size": 60, "add_eos": True, "max_length": 10}
    torch.manual_seed(0)
    tokenizer, target_tokenizer = (
        train_tokenizer(sources, model="word", **options),
        train_tokenizer(targets, **options),
    )
    target_tokenizer.save_pretrained(folder / "target_tokenizer")
    sizes = {"vocab_size": len(tokenizer), "decoder_vocab_size": len(target_tokenizer)}
    config = tiny_config(**sizes, max_position_embeddings=10)
    model = VanillaTransformerForConditionalGeneration(config)
    model.lm_head.weight.data *= 4
    model.lm_head.bias.data[config.eos_token_id] += 1
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def expected_translations(folder, texts, num_beams):
    """Each text on its own, by transformers alone."""
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    target = AutoTokenizer.from_pretrained(folder, subfolder="target_tokenizer")
    limit = {"max_length": model.config.max_target_positions}
    for text in texts:
        if not text.strip():
            yield ""
            continue
        batch = tokenizer([text], truncation=True, return_tensors="pt")
        (ids,) = model.generate(**batch, num_beams=num_beams, do_sample=False, **limit)
        yield target.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_translations_come_in_the_order_of_the_texts(succeed, translator, tmp_path, batch_size, num_beams):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    flags = ["--file", tmp_path / "texts.txt", "--batch_size", batch_size, "--num_beams", num_beams]
    translations = succeed("translate", "--model", translator, *flags).split("\n")[:-1]
    assert translations == list(expected_translations(translator, TEXTS, num_beams))
    assert len(set(translations)) > 2
    assert translations[1] == translations[3] == ""


def test_what_has_no_token_has_no_translation(succeed, translator):
    for empty, answers in (("", ""), (" \n\n", "\n\n"), ("\u200b\n\x01\x02\n", "\n\n")):
        assert succeed("translate", "--model", translator, stdin=empty) == answers


def test_beams_are_those_of_the_models_own_generate_and_a_table_gets_a_column(succeed, translator, tmp_path):
    shutil.copytree(translator, tmp_path / "model")
    GenerationConfig.from_pretrained(translator, num_beams=3).save_pretrained(tmp_path / "model")
    texts = ["4 0 1 2 3", "3 3 3 3", "1 2 3"]
    (tmp_path / "pairs.csv").write_text("num,de\n" + "".join(f"{text},x\n" for text in texts))
    arguments = ["--file", tmp_path / "pairs.csv", "--text_column", "num"]
    out = succeed("translate", "--model", tmp_path / "model", *arguments)
    expected = list(expected_translations(translator, texts, 3))
    rows = zip(texts, expected, strict=True)
    assert out.splitlines() == ["num,de,translation", *(f"{text},x,{written}" for text, written in rows)]


def test_the_best_translations_and_their_scores_are_columns(succeed, translator):
    """As `Translator` has them."""
    texts = ["4 0 1 2 3", "", "1 2 3"]
    flags = ["--model", translator, "--num_beams", 3, "--num_return_sequences", 2, "--return_scores", "true"]
    expected = [
        [value for one in answers or () for value in (one["translation"], one["score"], one["score_per_token"])]
        for answers in Translator(translator, num_beams=3)(texts, num_return_sequences=2, return_scores=True)
    ]
    out = succeed("translate", *flags, stdin="\n".join(texts) + "\n")
    names = ["translation", "score", "score_per_token"]
    names += [f"{name} 2" for name in names]
    for line, row in zip(out.split("\n")[:-1], expected, strict=True):
        shown = [value if isinstance(value, str) else f"{value:.4f}" for value in row]
        assert line == "\t".join(shown or [""] * len(names))  # an empty line has no answer
