# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Make a web page that opens models in the browser and shows each step of their computation.

    vanilla-transformer page --model model_cards/nsmc-small --output_dir page

Any server of files serves the folder.
"""

import shutil
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path

from huggingface_hub import snapshot_download
from transformers.hf_argparser import HfArg

from ..hub.finished_folder import finished_folder
from ..hub.record import save_json
from ..inference.folder import task_of_folder
from .arguments import parse_arguments


@dataclass
class PageArguments:
    model: list[str] = HfArg(help="Folders or Hub names of classifiers and translators.")
    output_dir: str = HfArg(help="The folder for the page; it must be empty.")


def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PageArguments], __doc__, argv)
    models = {Path(model).resolve().name: model for model in arguments.model if task_of_folder(model, "page")}
    read = ["*config.json", "model*.safetensors*", "tokenizer.json", "target_tokenizer/tokenizer*.json"]
    with finished_folder(arguments.output_dir) as page:
        shutil.copytree(Path(__file__).parents[1] / "page", page, dirs_exist_ok=True)
        for name, model in models.items():
            source = Path(model if Path(model).is_dir() else snapshot_download(model, allow_patterns=read))
            for file in [file for pattern in read for file in source.glob(pattern)]:
                (copy := page / "models" / name / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        save_json(page / "page.json", {"models": [*models], "home": metadata("hf-vanilla-transformer")["Project-URL"]})
    print(f"python -m http.server --bind 127.0.0.1 --directory {arguments.output_dir}")
