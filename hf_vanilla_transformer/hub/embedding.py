# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Files with which sentence-transformers takes the mean of the encoder's vectors.

Without them it takes the mean of `last_hidden_state`, which here is the decoder's single vector.
"""

from pathlib import Path

from .record import save_json


def save_embedding_modules(folder: str | Path, width: int) -> None:
    """Write to a saved model's folder that a text's vector is the mean of its tokens'; `width` is `d_model`."""
    types = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{name}"}
        for place, (path, name) in enumerate(types.items())
    ]
    transformer = {
        "transformer_task": "feature-extraction",
        "modality_config": {"text": {"method": "forward", "method_output_name": "encoder_last_hidden_state"}},
        "module_output_name": "token_embeddings",
    }
    save_json(Path(folder, "modules.json"), modules)
    save_json(Path(folder, "sentence_bert_config.json"), transformer)
    Path(folder, "1_Pooling").mkdir(exist_ok=True)
    save_json(Path(folder, "1_Pooling", "config.json"), {"embedding_dimension": width, "pooling_mode": "mean"})
