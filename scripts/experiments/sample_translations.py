# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Translate a file's lines with CTranslate2, each token sampled from the most probable ones (Edunov et al. 2018).

    python scripts/experiments/sample_translations.py --model runs/de-en-int8 --file captions.de --output captions.en

Another seed gives other translations of the same lines.
"""

from dataclasses import dataclass
from pathlib import Path

import ctranslate2
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import Translator
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.lines import iterate_lines


@dataclass
class SampleArguments:
    model: str = HfArg(help="The export's folder, for CTranslate2.")
    file: str = HfArg(help="The lines.")
    output: str = HfArg(help="The file for their translations.")
    top_k: int = HfArg(default=10, help="A token is sampled from so many.")
    batch_size: int = HfArg(default=128, help="Lines at once.")
    seed: int = HfArg(default=42, help="Of the samples.")


ARGUMENTS = [SampleArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments(ARGUMENTS, __doc__, argv)
    ctranslate2.set_random_seed(arguments.seed)
    translator = Translator(arguments.model)
    engine = translator.engine
    ids, _ = translator.tokenizer.encode(list(iterate_lines(arguments.file)), engine.facts.max_positions)
    results = engine.translator.translate_batch(
        engine.sources(ids),
        max_batch_size=arguments.batch_size,
        beam_size=1,
        sampling_topk=arguments.top_k,
        max_decoding_length=engine.facts.max_new_tokens,
        end_token=engine.facts.end_token_ids,
    )
    rows = [engine.until_end([engine.target_ids[token] for token in row.hypotheses[0]]) for row in results]
    texts = translator.target_tokenizer.decode(rows)
    Path(arguments.output).write_text("".join(f"{' '.join(text.split())}\n" for text in texts), encoding="utf-8")


if __name__ == "__main__":
    main()
