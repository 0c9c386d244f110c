# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The README.md of an exported folder, made from its record."""

import json
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData
from jinja2 import Template
from transformers import PreTrainedTokenizerBase

from ..hub.model_card import CARD_FILE, EXAMPLE_TEXTS
from ..inference.folder import TARGET_TOKENIZER


TEMPLATE = Path(__file__).with_name("card.md.jinja")
ENGINE_NAMES = {
    "ctranslate2": "CTranslate2",
    "onnx": "onnxruntime",
    "transformers": "transformers",
}
PIPELINE_TAGS = {"translation": "translation", "classification": "text-classification"}
REVIEW = "정말 재미있고 감동적인 영화"


def save_card(folder: Path, record: dict[str, Any], tokenizer: PreTrainedTokenizerBase, code: str, name: str) -> None:
    """Write the card.

    Args:
        folder: The exported folder.
        record: Its record.
        tokenizer: Chooses the example: the one that it knows best.
        code: The program that runs the export with the engine alone: a template, with the variables below.
        name: What the export is called.
    """
    config, generation = record["config"], record["generation"] or {}
    examples = [REVIEW] if record["task"] == "classification" else []
    example = min(
        [*examples, *EXAMPLE_TEXTS.values()],
        key=lambda text: (
            tokenizer(text)["input_ids"].count(tokenizer.unk_token_id),
            len(tokenizer(text)["input_ids"]),
        ),
    )
    variables = {
        "example": json.dumps(example, ensure_ascii=False),
        "sentence": example,
        "name": name,
        "engine": ENGINE_NAMES[record["format"]],
        "labels": [label for _, label in sorted(config["id2label"].items(), key=lambda item: int(item[0]))],
        "num_beams": generation.get("num_beams") or 1,
        "length_penalty": generation.get("length_penalty", 1.0),
        "source_positions": min(tokenizer.model_max_length, config["max_position_embeddings"]),
        "target_positions": config["decoder_max_position_embeddings"] or config["max_position_embeddings"],
        "target_folder": None if config["decoder_vocab_size"] is None else TARGET_TOKENIZER,
    }
    card = ModelCard.from_template(
        ModelCardData(
            pipeline_tag=PIPELINE_TAGS[record["task"]],
            library_name=record["format"],
            tags=["vanilla-transformer", *([record["quantize"]] if record["quantize"] else [])],
        ),
        template_path=str(TEMPLATE),
        code=Template(code).render(**(record | variables)).strip(),
        **(record | variables),
    )
    (folder / CARD_FILE).write_text(str(card), encoding="utf-8")
