"""Speed of translating: all ways give the same translations, so that only their time differs."""

from pathlib import Path

import pytest
from shared import read_json, tiny_config

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.loading import TARGET_TOKENIZER
from hf_vanilla_transformer.tokenizer import train_tokenizer


COMMAND = ["benchmarks/benchmark_translation.py", "--source_column", "num", "--target_column", "de"]


def save_translator(corpus: Path, folder: Path, preset: str) -> Path:
    """A translator of two vocabularies, with random weights that end each translation at another length."""
    tokenizer, target_tokenizer = (
        train_tokenizer((corpus / f"train.{side}").read_text().splitlines(), 60, add_eos=True, max_length=12)
        for side in ("num", "de")
    )
    sizes = {name: value for name, value in tiny_config().to_dict().items() if name.endswith(("_layers", "_ffn_dim"))}
    config = VanillaTransformerConfig.from_preset(
        preset,
        **sizes,
        d_model=16,
        vocab_size=len(tokenizer),
        decoder_vocab_size=len(target_tokenizer),
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = VanillaTransformerForConditionalGeneration(config)
    model.lm_head.weight.data *= 4
    model.lm_head.bias.data[config.eos_token_id] += 2
    model.lm_head.bias.data[config.pad_token_id] -= 100  # a trained model writes no pads
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    target_tokenizer.save_pretrained(folder / TARGET_TOKENIZER)
    return folder


@pytest.mark.parametrize("preset", ["pytorch-seq2seq", "base"])
def test_all_ways_give_the_same_translations(succeed, corpus, tmp_path, preset):
    """Of more sentences than a batch holds."""
    folder, file = save_translator(corpus, tmp_path / "model", preset), tmp_path / "times.json"
    settings = ["--rounds", "2", "--batch_size", "4", "--max_new_tokens", "8", "--file", file]
    assert succeed(*COMMAND, "--model", folder, "--data", corpus, *settings).count("tokens/s") == 3
    report = read_json(file)
    assert report["sentences"] == 13 and report["tokens"] > 13
    assert set(report["same_translations"].values()) == {13}
    assert [len(times) for times in report["seconds"].values()] == [2, 2, 2]


def test_the_script_refuses_what_marian_cannot_express(refused, corpus, tmp_path):
    folder = save_translator(corpus, tmp_path / "model", "annotated-transformer")
    line = refused(*COMMAND, "--model", folder, "--data", corpus)
    assert "Marian has post-norm models alone" in line
