# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The README.md of an exported folder, made from its record."""

import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import jinja2
from huggingface_hub import ModelCardData
from transformers import PreTrainedTokenizerBase

from ..hub.model_card import load_model_card
from ..hub.record import CARD_FILE
from ..inference.engine import ModelFacts
from ..tasks import EXAMPLES, FORMATS, TASKS


TEMPLATES = jinja2.FileSystemLoader(Path(__file__).parent)


def save_card(folder: Path, record: dict[str, Any], tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    """Write the card of an export of `source`, a model's folder or Hub name."""
    facts = ModelFacts.of(record["config"])
    texts = [texts[0] for texts in [*EXAMPLES[record["task"]].values(), *EXAMPLES["translation"].values()]]
    # The tokenizer knows the words of the model's language best.
    example = min(texts, key=lambda text: tokenizer(text)["input_ids"].count(tokenizer.unk_token_id))
    head = ModelCardData(
        **metadata_of(source),
        pipeline_tag=TASKS[record["task"]].pipeline_tag,
        library_name=record["format"],
        tags=["vanilla-transformer", *filter(None, [record["quantize"]])],
    )
    environment = jinja2.Environment(loader=TEMPLATES, trim_blocks=True, lstrip_blocks=True)
    text = environment.get_template("card.md.jinja").render(
        **record,
        card_data=head.to_yaml(),
        facts=facts,
        engine=FORMATS[record["format"]].title,
        example=json.dumps(example, ensure_ascii=False),
        shell_example=shlex.quote(example),
        num_beams=record["generation"].get("num_beams") or 1,
        max_length=min(tokenizer.model_max_length, facts.max_positions),
    )
    (folder / CARD_FILE).write_text(text, encoding="utf-8")


def metadata_of(source: str) -> dict[str, Any]:
    """Return the base model, if `source` is a Hub name; of a folder language, licence and data sets of its card."""
    if not Path(source).is_dir():
        return {"base_model": source}
    with suppress(ValueError):  # no card
        data = load_model_card(source).data.to_dict()
        return {name: data[name] for name in ("language", "license", "datasets") if name in data}
    return {}
