# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Make a web page that runs a model in the browser and shows its attention.

    vanilla-transformer page --model model_cards/nsmc-small --output_dir page
    python -m http.server --bind 127.0.0.1 --directory page

Any host of static files serves the folder. The page asks no other host for anything. npm downloads the JavaScript
libraries, unless --runtime names a folder that has them.
"""

from dataclasses import dataclass

from transformers.hf_argparser import HfArg

from ..exports.browser_page import make_page
from .arguments import exit_with_one_line, parse_arguments


@dataclass
class PageArguments:
    model: str = HfArg(help="A classifier's or translator's folder or Hub name.")
    output_dir: str = HfArg(help="The folder for the page; it must be empty.")
    runtime: str | None = HfArg(default=None, help="Another page's `runtime`, with the JavaScript libraries.")
    examples: list[str] | None = HfArg(
        default=None, help="Texts to try; by default some in the language on the model's card."
    )


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PageArguments], __doc__, argv)
    settings = make_page(arguments.model, arguments.output_dir, runtime=arguments.runtime, examples=arguments.examples)
    print(f"{arguments.output_dir}: a page of {settings['bytes'] / 1e6:.0f} MB for {settings['name']}")
    print(f"python -m http.server --bind 127.0.0.1 --directory {arguments.output_dir}")
