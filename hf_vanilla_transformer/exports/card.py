# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The README.md of an exported folder, made from its record."""

import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCard, ModelCardData
from transformers import PreTrainedTokenizerBase

from ..data.network import HUB_NAME
from ..hub.model_card import markdown
from ..hub.record import CARD_FILE
from ..inference.engine import TARGET_TOKENIZER
from ..tasks import EXAMPLES, FORMATS, TASKS


TEMPLATE = Path(__file__).with_name("card.md.jinja")


def facts_of_source(source: str, quantize: str | None) -> dict[str, Any]:
    """The card's base model, a name on the Hub; of a folder, language, licence and data sets of its card."""
    folder = Path(source)
    if not folder.is_dir():
        relation = {"base_model_relation": "quantized"} if quantize else {}
        return {"base_model": source, **relation} if HUB_NAME.fullmatch(source) else {}
    data: dict[str, Any] = {}
    with suppress(OSError, ValueError, yaml.YAMLError):  # no card, or none that can be read
        data = ModelCard.load(folder / CARD_FILE).data.to_dict()
    names = {name: data[name] for name in ("language", "license", "datasets") if name in data}
    return {name: value for name, value in names.items() if all(isinstance(one, str) for one in as_list(value))}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def save_card(folder: Path, record: dict[str, Any], tokenizer: PreTrainedTokenizerBase, name: str, model: str) -> None:
    """Write the card of an export of a model, a folder or a name on the Hub.

    Its example is the text with the fewest unknown tokens.
    """
    config, generation = record["config"], record["generation"] or {}

    def unknown(text: str) -> tuple[int, int]:
        ids = tokenizer(text)["input_ids"]
        return ids.count(tokenizer.unk_token_id), len(ids)

    languages = [*EXAMPLES[record["task"]].values(), *EXAMPLES["translation"].values()]
    example = min((texts[0] for texts in languages), key=unknown)
    labels = [label for _, label in sorted(config["id2label"].items(), key=lambda item: int(item[0]))]
    card = ModelCard.from_template(
        ModelCardData(
            **facts_of_source(model, record["quantize"]),
            pipeline_tag=TASKS[record["task"]].pipeline_tag,
            library_name=record["format"],
            tags=["vanilla-transformer", *([record["quantize"]] if record["quantize"] else [])],
        ),
        template_path=str(TEMPLATE),
        **record,
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
