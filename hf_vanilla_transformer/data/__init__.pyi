# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
# As ../__init__.pyi.
from .labelled_text import encode as encode
from .labelled_text import load_labelled_text as load_labelled_text
from .labelled_text import tokenize as tokenize
from .lines import iterate_lines as iterate_lines
from .parallel_text import load_parallel_text as load_parallel_text
from .parallel_text import tokenize_pairs as tokenize_pairs
from .plain_text import load_corpus as load_corpus
from .plain_text import tokenize_corpus as tokenize_corpus
