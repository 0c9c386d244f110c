# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The README.md of an exported folder, made from its record."""

import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import jinja2
from huggingface_hub import ModelCard, ModelCardData
from transformers import PreTrainedTokenizerBase

from ..hub.record import CARD_FILE
from ..inference.engine import TARGET_TOKENIZER
from ..tasks import EXAMPLES, FORMATS, TASKS


TEMPLATE = Path(__file__).with_name("card.md.jinja")


def facts_of_source(source: str) -> dict[str, Any]:
    """The card's base model, a name on the Hub; of a folder, language, licence and data sets of its card."""
    if not Path(source).is_dir():
        return {"base_model": source}
    with suppress(OSError, ValueError):  # no card, or none that can be read
        data = ModelCard.load(Path(source, CARD_FILE)).data.to_dict()
        return {name: data[name] for name in ("language", "license", "datasets") if name in data}
    return {}


def save_card(
    folder: Path, record: dict[str, Any], tokenizer: PreTrainedTokenizerBase, program: str, source: str
) -> None:
    """Write the card of an export of `source`, a model's folder or Hub name.

    `program` is the template of a program that runs the export without this package. Its example is the text of which
    the tokenizer knows the most tokens.
    """
    config, generation = record["config"], record["generation"] or {}
    texts = [texts[0] for texts in [*EXAMPLES[record["task"]].values(), *EXAMPLES["translation"].values()]]
    example = min(texts, key=lambda text: tokenizer(text)["input_ids"].count(tokenizer.unk_token_id))
    values = {
        **record,
        "engine": FORMATS[record["format"]].title,
        "example": json.dumps(example, ensure_ascii=False),
        "shell_example": shlex.quote(example),
        "labels": [label for _, label in sorted(config["id2label"].items(), key=lambda item: int(item[0]))],
        "num_beams": generation.get("num_beams") or 1,
        "length_penalty": generation.get("length_penalty", 1.0),
        "source_positions": min(tokenizer.model_max_length, config["max_position_embeddings"]),
        "target_positions": config["decoder_max_position_embeddings"] or config["max_position_embeddings"],
        "target_folder": None if config["decoder_vocab_size"] is None else TARGET_TOKENIZER,
    }
    head = ModelCardData(
        **facts_of_source(source),
        pipeline_tag=TASKS[record["task"]].pipeline_tag,
        library_name=record["format"],
        tags=["vanilla-transformer", *filter(None, [record["quantize"]])],
    )
    values["program"] = jinja2.Template(program).render(values)
    card = ModelCard.from_template(head, template_path=str(TEMPLATE), **values)
    (folder / CARD_FILE).write_text(str(card), encoding="utf-8")
