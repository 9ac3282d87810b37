# `make lab` and `make test` are all that a fresh clone needs: each sets up what is missing first.

PYTHON ?= python3
PORT ?=
MINUTES ?= 10
SEED ?=
ARGS ?=
RUN := .venv/bin/python
PYTEST := $(RUN) -m pytest -q --progress --numprocesses auto --dist loadfile --no-loadscope-reorder
UV := $(firstword $(wildcard .venv/bin/uv) uv)

.PHONY: help setup lab test test-fast sweep check stubs bench fuzz class notebooks lock clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'
	@echo
	@echo "  PYTHON=python3.13   the Python that .venv is made with     PORT=8899   JupyterLab's port"
	@echo "  MINUTES=10 SEED=1     how long make fuzz runs, and from where"
	@echo "  ARGS=\"-k matmul\"    more options for pytest, JupyterLab, the benchmarks or uv"

setup: # quick when nothing has changed
	@sh tools/setup.sh "$(PYTHON)"

lab: setup ## Open JupyterLab at the first notebook
	@$(RUN) -m minitorch lab $(if $(PORT),--port $(PORT)) -- $(ARGS)

test: setup ## Run all tests, every notebook included
	@$(PYTEST) $(ARGS)

test-fast: setup ## Run a tenth of the tests, some of every file
	@$(PYTEST) --fast $(ARGS)

sweep: setup ## Run tests with all their cases, where make test takes some (ARGS=tests/modes)
	@$(PYTEST) --sweep $(ARGS)

check: setup ## Lint, format check and types, of Python and JavaScript
	@failed=0; \
	$(RUN) -m ruff check --quiet || failed=1; \
	$(RUN) -m ruff format --diff --quiet || failed=1; \
	$(RUN) -m mypy --no-error-summary || failed=1; \
	if [ -x .venv/bin/oxlint ]; then .venv/bin/oxlint --quiet --deny-warnings --format=unix || failed=1; fi; \
	exit $$failed

stubs: setup ## Write the type stubs of what is installed at import: mt.*, and the methods of tensors
	@$(RUN) -m tools.stubs

bench: setup ## Measure minitorch beside NumPy, JAX and PyTorch
	@$(RUN) -m benchmarks $(ARGS)

fuzz: setup ## Run random programs in every mode, and write down what differs
	@$(RUN) -m fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(ARGS)

class: setup ## Grade a simulated class of 300 in every way, interrupted five times, and say what is not as it should be
	@$(RUN) -m tests.simulated $(if $(SEED),--seed $(SEED)) $(ARGS)

notebooks: setup ## Run every notebook on idle cores, on one core and beside a busy process, and say the seconds
	@$(RUN) -m tests.notebook_runs $(ARGS)

lock: ## Pin requirements.txt again (needs uv; ARGS=--upgrade for newer versions)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: $(RUN) -m pip install uv" >&2; exit 1; }
	@$(UV) pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --all-extras \
		--no-annotate --custom-compile-command "make lock" --output-file requirements.txt $(ARGS) pyproject.toml

clean: ## Remove .venv and everything else that was generated
	@rm -rf .venv build dist findings *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +
