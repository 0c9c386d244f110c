# Everything runs in .venv, which is made first. PYTHON is what it is made with.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: quickstart test pytest test-fast test-gpu test-contracts test-oldest test-newest check style types format \
	benchmark cards docs site release-check .venv-newest/installed

REVIEWS := '정말 재미있고 감동적인 영화, 강력 추천합니다!' '지루하고 유치해서 시간이 아까웠다'

# Classify two reviews with nsmc-small, measure it on the sample's test reviews, fine-tune it and measure it again,
# translate a sentence.
quickstart: .venv/installed
	@printf '\n== 1 of 4: nsmc-small classifies two Korean film reviews, a good and a bad one\n\n'
	@printf '%s\n' $(REVIEWS) | $(BIN)/vanilla-transformer predict --model model_cards/nsmc-small
	@printf '\n== 2 of 4: before fine-tuning, its accuracy on 120 reviews written for this package\n\n'
	@$(BIN)/vanilla-transformer evaluate --model model_cards/nsmc-small --data sample
	@printf '\n== 3 of 4: fine-tuned on 600 more of them, its accuracy on the same 120\n\n'
	@rm -rf runs/quickstart
	@$(BIN)/vanilla-transformer train-classifier finetune --output_dir runs/quickstart
	@printf '\n== 4 of 4: multi30k-de-en translates a German sentence\n\n'
	@printf '%s\n' 'Zwei Hunde spielen im Schnee.' | $(BIN)/vanilla-transformer translate --model model_cards/multi30k-de-en

# `make test FILE=tests/test_tokenizer.py` runs one file. Each process begins with its half of the files, for most make
# something for all of their tests, and takes over tests of the other when it has none left.
FILE ?=
test: style
	@$(MAKE) --no-print-directory -j 2 types pytest

pytest: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal $(FILE)

# What is not marked as slow.
test-fast: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# The tests of tests/gpu on this machine's accelerator; they skip themselves where there is none.
test-gpu: .venv/installed
	$(BIN)/python -m pytest -n 4 tests/gpu

# The tests with which transformers tests its own models, of the installed version, on this package's classes.
test-contracts: .venv/installed
	$(BIN)/python tests/contracts/fetch.py .venv/contracts
	CONTRACTS_DIR=.venv/contracts $(BIN)/python -m pytest -n 2 --dist loadscope tests/contracts

# The quick tests with the oldest versions that pyproject.toml allows, or the newest that pip finds today, in a virtual
# environment of their own.
test-oldest test-newest: test-%: .venv-%/installed
	.venv-$*/bin/python -m pytest -n 2 --dist worksteal -m "not slow"

# Speed beside torch.nn.Transformer, BART and Marian; nothing else should run meanwhile.
benchmark: .venv/installed
	rm -rf runs/benchmark
	$(BIN)/python scripts/benchmarks/benchmark.py --output_dir runs/benchmark --texts 256 --batch_size 64 --rounds 2

# Copy the two Hub files to the published models' folders, which must have the package's.
cards:
	for card in model_cards/*/; do cp hf_vanilla_transformer/*_vanilla_transformer.py $$card; done

# Run the walk-through and write its notebooks anew; needs a font with Hangul (apt install fonts-nanum).
docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/python docs/walkthrough/make_notebooks.py

# The documentation site, in build/site, without the network; warnings and dead links are errors.
site: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	$(BIN)/python docs/site/make_site.py

# Whether this commit can be released: RELEASING.md.
release-check: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	$(BIN)/python scripts/maintainer/release_check.py

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: style types

style: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

.venv/installed: constraints.txt
.venv-oldest/installed: constraints-oldest.txt
.venv/installed .venv-oldest/installed .venv-newest/installed: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager \
		$(addprefix -c ,$(filter constraints%,$^)) -e '.[dev]'
	touch $@
