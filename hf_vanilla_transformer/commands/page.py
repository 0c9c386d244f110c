# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Make a web page that runs a model in the browser and shows its attention.

    vanilla-transformer page --model model_cards/nsmc-small --output_dir page --serve
    vanilla-transformer push-to-hub page --space USER/NAME

Any host of static files serves the folder; a Space on the Hub does it for nothing. The page asks no other host for
anything. npm downloads the JavaScript libraries, unless --runtime names a folder that has them.
"""

import contextlib
from dataclasses import dataclass

from transformers.hf_argparser import HfArg

from ..exports.browser_page import make_page, page_server
from .arguments import exit_with_one_line, parse_arguments


@dataclass
class PageArguments:
    model: str = HfArg(help="A classifier's or translator's folder or Hub name.")
    output_dir: str = HfArg(help="The folder for the page; it must be empty.")
    runtime: str | None = HfArg(
        default=None, help="A folder with the JavaScript libraries: another page's `runtime`, or `node_modules`."
    )
    examples: list[str] | None = HfArg(
        default=None, help="Texts to try; by default some in the language on the model's card."
    )
    serve: bool = HfArg(default=False, help="Serve the page on this machine, until Ctrl-C.")
    port: int = HfArg(default=8000, help="The port for --serve; 0 for any that is free.")


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PageArguments], __doc__, argv)
    with contextlib.ExitStack() as stack:
        # A port that is taken is reported before the work.
        server = stack.enter_context(page_server(arguments.output_dir, arguments.port)) if arguments.serve else None
        settings = make_page(
            arguments.model, arguments.output_dir, runtime=arguments.runtime, examples=arguments.examples
        )
        print(f"{arguments.output_dir}: a page of {settings['bytes'] / 1e6:.0f} MB for {settings['name']}", flush=True)
        if server is not None:
            print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
