# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What makes `sentence_transformers.SentenceTransformer(folder)` right.

Without these files it takes the mean of `last_hidden_state`, which here is the decoder's single vector.
"""

from pathlib import Path

from .record import save_json


MODULES_FILE = "modules.json"
TRANSFORMER_FILE = "sentence_bert_config.json"
POOLING_FOLDER = "1_Pooling"


def save_embedding_modules(folder: str | Path, width: int) -> None:
    """Have sentence-transformers take the mean of the encoder's vectors over a text's tokens.

    Args:
        folder: The folder of a saved model.
        width: `d_model`.
    """
    folder = Path(folder)
    modules = {"": "Transformer", POOLING_FOLDER: "Pooling"}
    save_json(
        folder / MODULES_FILE,
        [
            {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{name}"}
            for place, (path, name) in enumerate(modules.items())
        ],
    )
    save_json(
        folder / TRANSFORMER_FILE,
        {
            "transformer_task": "feature-extraction",
            "modality_config": {"text": {"method": "forward", "method_output_name": "encoder_last_hidden_state"}},
            "module_output_name": "token_embeddings",
        },
    )
    (folder / POOLING_FOLDER).mkdir(exist_ok=True)
    save_json(folder / POOLING_FOLDER / "config.json", {"embedding_dimension": width, "pooling_mode": "mean"})
