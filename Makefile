# `make run` and `make test` set up whatever is missing and can be run again at any time.

.POSIX:
.NOTPARALLEL:
.PHONY: help run test lint types contracts fresh unit kernel mac ordinary-user bench soak docs clean test-tools

VENV = .venv
BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed
PYTEST = SOURCE_TREE_MUST_STAY_CLEAN=1 $(BIN)/python scripts/pytest-again
PARALLEL = -n auto --dist loadgroup

help:
	@echo "make run            set up, then check, explain and run the sample workspace"
	@echo "make test           set up, then everything below that can fail"
	@echo "make lint           ruff: rules and format"
	@echo "make types          mypy"
	@echo "make contracts      which module may import which"
	@echo "make fresh          generated files match what they are generated from"
	@echo "make unit           tests that need no sandbox"
	@echo "make kernel         tests in real sandboxes"
	@echo "make mac            (on a Mac) tests of profiles in the system's own hands"
	@echo "make ordinary-user  (as root) the same twice without privileges: with a /dev/fuse, and without"
	@echo "make bench          prints ratios, asserts nothing"
	@echo "make soak           thousands of runs, then every part killed at random moments"
	@echo "make docs           generate docs and validators from the schema"
	@echo "make clean          remove the virtual environment and caches"

$(INSTALLED): pyproject.toml
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		python=$$(scripts/pick-python) && rm -rf $(VENV) && \
		echo "making $(VENV) with $$python" && "$$python" -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $(INSTALLED)

run: $(INSTALLED)
	scripts/system-packages bwrap
	$(BIN)/python scripts/sample.py

test: test-tools lint types contracts fresh
	$(PYTEST) $(PARALLEL) tests
	@if [ "$$(id -u)" -eq 0 ] && [ "$$(uname -s)" = Linux ]; then $(MAKE) ordinary-user; fi

test-tools: $(INSTALLED)
	scripts/system-packages bwrap strace git npm setpriv curl openssl ssh dropbear

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED)
	$(BIN)/mypy

contracts: $(INSTALLED)
	$(BIN)/lint-imports

fresh: $(INSTALLED)
	$(BIN)/python scripts/generate --check

soak: test-tools
	$(BIN)/python tests/soak/run.py
	$(BIN)/python tests/soak/crashes.py

docs: $(INSTALLED)
	$(BIN)/python scripts/generate

unit: $(INSTALLED)
	$(PYTEST) $(PARALLEL) -m "not kernel" tests

kernel: test-tools
	$(PYTEST) $(PARALLEL) -m kernel tests

mac: $(INSTALLED)
	$(PYTEST) -m mac tests

ordinary-user: test-tools
	PYTHON=$(BIN)/python scripts/as-ordinary-user 666 $(PARALLEL) -m kernel tests
	PYTHON=$(BIN)/python scripts/as-ordinary-user 600 $(PARALLEL) -m "kernel and not one_observer" tests

bench: test-tools
	$(BIN)/python tests/bench/run.py
	$(BIN)/python tests/bench/observers.py
	$(BIN)/python tests/bench/network.py
	$(BIN)/python tests/bench/proxy_loop.py
	$(BIN)/python tests/bench/together.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist *.egg-info
