# `make run` and `make test` set up whatever is missing and can be run again at any time.

.POSIX:
.NOTPARALLEL:
.PHONY: help run test quick lint types contracts fresh unit kernel shares mac ordinary-user search bench soak docs clean
.PHONY: test-tools test-packages forget-second-tries second-tries lowest lock

VENV = .venv
BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed
LOWEST = .venv-lowest
# the tests that needed a second try, in every stage of `make test`
SECOND_TRIES = $(VENV)/second-tries
PYTEST = SOURCE_TREE_MUST_STAY_CLEAN=1 SECOND_TRIES=$(SECOND_TRIES) $(BIN)/python scripts/pytest-again
ORDINARY = SECOND_TRIES=$$PWD/$(SECOND_TRIES) PYTHON=$(BIN)/python scripts/as-ordinary-user
# tests in sandboxes wait now and then, so there is one more at a time than most machines' two processors
BUSY = -n auto --dist loadgroup
WAITING = -n 3 --dist loadgroup
# where the tests are that need no sandbox, and those that do: collecting the others takes seconds in each process
UNIT = tests/unit tests/property tests/mac tests/test_wheel.py
KERNEL = tests/kernel tests/redteam tests/property
SECONDS = 300

help:
	@echo "make run            set up, then check, explain and run the sample workspace"
	@echo "make test           set up, then everything below that can fail"
	@echo "make quick          lint, types and the fast tests: about a minute"
	@echo "make lint           ruff: rules and format"
	@echo "make types          mypy"
	@echo "make contracts      which module may import which"
	@echo "make fresh          generated files match what they are generated from"
	@echo "make unit           tests that need no sandbox"
	@echo "make lowest         the fast ones of them with the lowest versions pyproject.toml allows"
	@echo "make kernel         tests in real sandboxes, all of them as whoever calls"
	@echo "make shares         (as root) the same shared out between root and an ordinary user"
	@echo "make mac            (on a Mac) tests of profiles in the system's own hands"
	@echo "make ordinary-user  (as root) all of them twice without privileges: with a /dev/fuse, and without"
	@echo "make search         property tests over other random input, for SECONDS=300; prints counterexamples"
	@echo "make bench          prints ratios, asserts nothing"
	@echo "make soak           thousands of runs, then every part killed at random moments"
	@echo "make docs           generate docs and validators from the schema"
	@echo "make lock           lock the newest versions pyproject.toml allows in requirements/"
	@echo "make clean          remove the virtual environment and caches"

# packages come by the hashes of requirements/, from whichever index pip is set up with
LOCKED = -m pip --disable-pip-version-check install --quiet --require-hashes --requirement
# the build backend is among them, so this asks no index
EDITABLE = -m pip --disable-pip-version-check install --quiet --no-index --no-deps --no-build-isolation --editable .

# made anew when a lock changes: what it no longer names is gone
$(VENV)/.locked: requirements/dev.txt
	python=$$(scripts/pick-python) && rm -rf $(VENV) && \
		echo "making $(VENV) with $$python" && "$$python" -m venv $(VENV)
	$(BIN)/python $(LOCKED) requirements/dev.txt
	touch $(VENV)/.locked

$(INSTALLED): $(VENV)/.locked pyproject.toml
	$(BIN)/python $(EDITABLE)
	touch $(INSTALLED)

# the oldest Python as well, where there is one
$(LOWEST)/.installed: requirements/lowest.txt pyproject.toml
	python=$$(PYTHON="$$PYTHON python3.11" scripts/pick-python) && rm -rf $(LOWEST) && \
		echo "making $(LOWEST) with $$python" && "$$python" -m venv $(LOWEST)
	$(LOWEST)/bin/python $(LOCKED) requirements/lowest.txt
	$(LOWEST)/bin/python $(EDITABLE)
	touch $(LOWEST)/.installed

run: $(INSTALLED)
	scripts/system-packages bwrap
	$(BIN)/python scripts/sample.py

test: forget-second-tries test-tools lint types contracts fresh unit
	@if [ "$$(id -u)" -eq 0 ] && [ "$$(uname -s)" = Linux ]; then $(MAKE) shares; else $(MAKE) kernel; fi
	@$(MAKE) second-tries

quick: lint types
	$(PYTEST) $(BUSY) -m "not kernel and not slow" $(UNIT)

forget-second-tries:
	@rm -f $(SECOND_TRIES)

second-tries:
	@if [ -s $(SECOND_TRIES) ]; then \
		echo "tests that needed a second try, which is a bug of theirs:"; sort -u $(SECOND_TRIES) | sed 's/^/  /'; \
	else echo "no test needed a second try"; fi

test-tools: $(INSTALLED) test-packages

test-packages:
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
	$(BIN)/python scripts/lock --check

soak: test-tools
	$(BIN)/python tests/soak/run.py
	$(BIN)/python tests/soak/crashes.py

lock: $(INSTALLED)
	$(BIN)/python $(LOCKED) requirements/uv.txt
	$(BIN)/python scripts/lock

docs: $(INSTALLED)
	$(BIN)/python scripts/generate

unit: $(INSTALLED)
	$(PYTEST) $(BUSY) -m "not kernel" $(UNIT)

lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest $(BUSY) -m "not kernel and not slow and not registry" tests/unit tests/property

kernel: test-tools
	$(PYTEST) $(WAITING) -m kernel $(KERNEL)

mac: $(INSTALLED)
	$(PYTEST) -m mac tests/mac

# tests/support/shares.py says which test is whose
shares: test-tools
	$(PYTEST) $(WAITING) -m kernel --share root $(KERNEL)
	$(ORDINARY) 666 $(WAITING) -m kernel --share ordinary $(KERNEL)
	$(ORDINARY) 600 $(WAITING) -m kernel --share no-fuse $(KERNEL)

ordinary-user: test-tools
	$(ORDINARY) 666 $(WAITING) -m kernel $(KERNEL)
	$(ORDINARY) 600 $(WAITING) -m "kernel and not one_observer" $(KERNEL)

search: test-tools
	$(BIN)/python scripts/search --seconds $(SECONDS)

bench: test-tools
	$(BIN)/python tests/bench/run.py
	$(BIN)/python tests/bench/observers.py
	$(BIN)/python tests/bench/streams.py
	$(BIN)/python tests/bench/network.py
	$(BIN)/python tests/bench/proxy_loop.py
	$(BIN)/python tests/bench/together.py

clean:
	rm -rf $(VENV) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist *.egg-info
