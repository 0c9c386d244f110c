# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Make a web page that opens models in the browser and shows each step of their computation.

    vanilla-transformer page --model model_cards/nsmc-small --output_dir page

Any server of files serves the folder, such as `python -m http.server --bind 127.0.0.1 --directory page`.
"""

import shutil
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path
from typing import Literal

from huggingface_hub import snapshot_download
from transformers.hf_argparser import HfArg

from ..hub.finished_folder import finished_folder
from ..hub.record import save_json
from ..inference.folder import task_of_folder
from .arguments import exit_with_one_line, parse_arguments


# What the page reads of a model.
FILES = ["config.json", "generation_config.json", "model*.safetensors*", "tokenizer*.json", "target_tokenizer/*.json"]


@dataclass
class PageArguments:
    model: list[str] = HfArg(help="Folders or Hub names of classifiers and translators.")
    output_dir: str = HfArg(help="The folder for the page; it must be empty.")
    language: Literal["en", "ko"] | None = HfArg(default=None, help="The page's language; by default the browser's.")


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PageArguments], __doc__, argv)
    with finished_folder(arguments.output_dir) as folder:
        shutil.copytree(Path(__file__).parents[1] / "page", folder, dirs_exist_ok=True)
        for model in arguments.model:
            task_of_folder(model, "page")  # an error if it neither classifies nor translates
            source = Path(model) if Path(model).is_dir() else Path(snapshot_download(model, allow_patterns=FILES))
            for file in [file for pattern in FILES for file in source.glob(pattern)]:
                copy = folder / "models" / Path(model).resolve().name / file.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        names = [Path(model).resolve().name for model in arguments.model]
        urls = dict(line.split(", ") for line in metadata("hf-vanilla-transformer").get_all("Project-URL"))
        chapters = f"{urls['Repository']}/blob/main/docs/walkthrough"
        save_json(folder / "page.json", {"language": arguments.language, "models": names, "chapters": chapters})
    print(f"python -m http.server --bind 127.0.0.1 --directory {arguments.output_dir}")
