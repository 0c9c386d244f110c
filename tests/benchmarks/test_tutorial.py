"""The tutorial's classifier in the benchmarks computes what the tutorial's own code computed."""

import torch
from test_conversion import checkpoint, convert, read
from tutorial import MovieClassification


def test_the_logits_are_those_of_the_tutorials_own_code():
    file = "transformer-evolution-classification"
    tensors, weights = read(file), checkpoint(file)
    model = MovieClassification(convert(file).config).eval()
    # One table of positions serves both stacks; the tutorial's have a length each.
    rows = weights["transformer.decoder.pos_emb.weight"]
    torch.testing.assert_close(model.transformer.decoder.pos_emb.weight[: len(rows)], rows)
    weights["transformer.decoder.pos_emb.weight"] = weights["transformer.encoder.pos_emb.weight"]
    model.load_state_dict(weights)
    torch.testing.assert_close(model(tensors["input.src"]), tensors["output.logits"])
