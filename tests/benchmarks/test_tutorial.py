"""The tutorial's classifier in the benchmarks computes what the tutorial's own code computed."""

import json

import torch
from safetensors import safe_open
from test_conversion import REFERENCES, checkpoint, read
from tutorial import MovieClassification

from hf_vanilla_transformer import VanillaTransformerConfig


def test_the_logits_are_those_of_the_tutorials_own_code():
    file = "transformer-evolution-classification"
    tensors, weights = read(file), checkpoint(file)
    with safe_open(REFERENCES / f"{file}.safetensors", "pt") as reader:
        sizes = json.loads(reader.metadata()["meta"])["config"]
    config = VanillaTransformerConfig(
        vocab_size=sizes["n_enc_vocab"],
        decoder_vocab_size=sizes["n_dec_vocab"],
        max_position_embeddings=sizes["n_enc_seq"],
        d_model=sizes["d_hidn"],
        head_dim=sizes["d_head"],
        layer_norm_eps=sizes["layer_norm_epsilon"],
        pad_token_id=sizes["i_pad"],
        decoder_start_token_id=tensors["input.bos"][0, 0].item(),
        **{f"{side}_layers": sizes["n_layer"] for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": sizes["d_ff"] for side in ("encoder", "decoder")},
        **{f"{side}_attention_heads": sizes["n_head"] for side in ("encoder", "decoder")},
    )
    model = MovieClassification(config).eval()
    # One table of positions serves both stacks; the tutorial's have a length each.
    rows = weights["transformer.decoder.pos_emb.weight"]
    torch.testing.assert_close(model.transformer.decoder.pos_emb.weight[: len(rows)], rows)
    weights["transformer.decoder.pos_emb.weight"] = weights["transformer.encoder.pos_emb.weight"]
    model.load_state_dict(weights)
    torch.testing.assert_close(model(tensors["input.src"]), tensors["output.logits"])
