"""Vectors of texts by sentence-transformers: the mean of the encoder's vectors."""

import pytest
import torch
from transformers import AutoModelForTextEncoding, AutoTokenizer


@pytest.mark.slow
def test_sentence_transformers_takes_the_mean_of_the_encoders_vectors(trained):
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    texts = ["정말 재미있고 감동적인 영화", "지루하다", "배우의 연기가 훌륭했다고 생각한다"]
    model = AutoModelForTextEncoding.from_pretrained(trained).eval()
    batch = AutoTokenizer.from_pretrained(trained)(texts, padding=True, return_tensors="pt")
    mask = batch["attention_mask"].unsqueeze(-1)
    with torch.inference_mode():
        vectors = model(batch["input_ids"], batch["attention_mask"]).last_hidden_state
    mean = (vectors * mask).sum(dim=1) / mask.sum(dim=1)
    torch.testing.assert_close(library.SentenceTransformer(str(trained)).encode(texts, convert_to_tensor=True), mean)
