# make demo        compile and run a real program on the built-in model, from a bare checkout
# make test        every check, with reduced counts of generated cases
# make test-full   the same with full counts
# make check       lint, types and the tests that the last commit and the working tree concern: for work in progress
# make browser     install what the tests of the page in a browser need: Chromium (apt), the page's tools (npm)
# make sglang      install SGLang's frontend, which the tests of lmc serve use as a client, into build/sglang
# make docs        the web site of docs/, in build/site
# make clean       remove what builds and tests leave; keeps .venv
#
# PYTHON names the interpreter that makes .venv (3.11 or later).

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable

# An idle OpenMP thread that spins steals the core from whatever else runs; this must be set before torch is imported.
export OMP_WAIT_POLICY = PASSIVE
# Everything below works from files in this repository.
export HF_HUB_OFFLINE = 1
export TRANSFORMERS_OFFLINE = 1

# Processes that tests start would compile the sources of lmc each time.
export PYTHONDONTWRITEBYTECODE =

# Tests wait for processes and servers a part of their time, so there is one worker more than cores.
workers = $(shell $(BIN)/python -c "import os; print(min(os.cpu_count() + 1, 4))")
tests = $(BIN)/pytest --numprocesses=$(workers) --dist=worksteal
# pyright needs one core for a minute or two.
beside_types = $(BIN)/pyright & types=$$!; $(1); ended=$$?; wait $$types && exit $$ended

.DELETE_ON_ERROR:
.PHONY: demo test test-full check browser sglang docs clean

demo: .venv/.installed-local
	$(BIN)/lmc compile examples/judge.py --remarks
	$(BIN)/lmc run examples/judge.py --input examples/data/essays.jsonl
	$(BIN)/python benchmarks/judge_tokens.py

test: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(call beside_types,$(tests))

check: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(call beside_types,$(tests) $$($(BIN)/python -m tests.project.concerned))

test-full: export LMC_TEST_FULL = 1
test-full: test

browser: .venv/.installed-dev
	command -v chromium >/dev/null && command -v npm >/dev/null || apt-get update
	command -v chromium >/dev/null || apt-get install --yes --no-install-recommends chromium
	command -v npm >/dev/null || apt-get install --yes --no-install-recommends nodejs npm
	mkdir -p build/browser
	cp tests/report/browser/package.json tests/report/browser/package-lock.json build/browser
	npm ci --prefix build/browser --no-audit --no-fund

# Without its dependencies: they are those of a GPU server. What its frontend imports is small; torch and transformers are those of .venv.
sglang: .venv/.installed-dev
	$(BIN)/python -m venv build/sglang
	build/sglang/bin/python -m pip install --disable-pip-version-check --no-deps sglang==0.5.23
	build/sglang/bin/python -m pip install --disable-pip-version-check orjson pybase64 requests msgspec pyzmq ipython aiohttp psutil pillow
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> "$$(build/sglang/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/main.pth"
	build/sglang/bin/python -c 'import sglang'

docs: .venv/.installed-docs
	$(BIN)/mkdocs build

clean:
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis
	find lmc tests examples benchmarks training -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Stamps: pip runs again only when a file that says what to install is newer.
.venv/.installed-local: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing lmc and what it needs to run models into .venv. To be downloaded, unless pip has it already:"
	@echo "  macOS-arm64             about 0.2 GB (torch 0.1 GB)"
	@echo "  Linux, torch for CPU    about 0.3 GB (torch 0.2 GB)"
	@echo "  Linux, torch for CUDA   about 2.7 GB (torch and NVIDIA's libraries 2.6 GB): what the default index offers for Linux"
	@echo "pip takes the CPU build of torch $$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' constraints.txt) where it is configured to see one. Models: none, the built-in one is in the package."
	$(INSTALL) '.[local]'
	@touch $@

.venv/.installed-dev: .venv/.installed-local
	@echo "Installing the development tools into .venv: about 0.15 GB to download."
	$(INSTALL) '.[local,server,api,dev]'
	@touch $@

.venv/.installed-docs: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing lmc and the documentation tools into .venv: about 0.1 GB to download."
	$(INSTALL) '.[docs]'
	@touch $@

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "make: no python3.11 or python3 found. Install Python 3.11 or later, or run: make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than Python 3.11. Run: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	"$(PYTHON)" -m venv .venv
