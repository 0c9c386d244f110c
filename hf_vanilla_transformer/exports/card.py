# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The README.md of an exported folder, made from its record."""

import json
import shlex
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData
from transformers import PreTrainedTokenizerBase

from ..hub.card_text import code, markdown
from ..hub.model_card import CARD_FILE
from ..inference.engine import TARGET_TOKENIZER
from ..tasks import EXAMPLES, FORMATS, TASKS


TEMPLATE = Path(__file__).with_name("card.md.jinja")


def save_card(folder: Path, record: dict[str, Any], tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    """Write the card of an export; its example is the text with the fewest unknown tokens."""
    config, generation = record["config"], record["generation"] or {}

    def unknown(text: str) -> tuple[int, int]:
        ids = tokenizer(text)["input_ids"]
        return ids.count(tokenizer.unk_token_id), len(ids)

    languages = [*EXAMPLES[record["task"]].values(), *EXAMPLES["translation"].values()]
    example = min((texts[0] for texts in languages), key=unknown)
    labels = [label for _, label in sorted(config["id2label"].items(), key=lambda item: int(item[0]))]
    card = ModelCard.from_template(
        ModelCardData(
            pipeline_tag=TASKS[record["task"]].pipeline_tag,
            library_name=record["format"],
            tags=["vanilla-transformer", *([record["quantize"]] if record["quantize"] else [])],
        ),
        template_path=str(TEMPLATE),
        **record | {"source": code(record["source"])},
        title=markdown(name),
        example=json.dumps(example, ensure_ascii=False),
        shell_example=shlex.quote(example),
        name=name,
        engine=FORMATS[record["format"]].title,
        labels=labels,
        label_names=markdown(", ".join(labels)),
        num_beams=generation.get("num_beams") or 1,
        length_penalty=generation.get("length_penalty", 1.0),
        source_positions=min(tokenizer.model_max_length, config["max_position_embeddings"]),
        target_positions=config["decoder_max_position_embeddings"] or config["max_position_embeddings"],
        target_folder=None if config["decoder_vocab_size"] is None else TARGET_TOKENIZER,
    )
    (folder / CARD_FILE).write_text(str(card), encoding="utf-8")
