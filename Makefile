# Two commands do all the set-up on a machine with git, make and Python 3.11 or newer: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
FUZZ := .venv-fuzz

.PHONY: demo test test-slow lint format docs gallery bench bench-certificates bench-completion soak faults fuzz mutants lock clean

$(VENV)/ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "condgrad needs Python 3.11 or newer: make PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

demo: $(VENV)/ready  ## the paper's experiment, with a report to look at
	$(BIN)/condgrad reproduce --quick --jobs 2 --out demo-report

test: $(VENV)/ready  ## the default suite, with coverage
	$(BIN)/pytest -n 2 -rs --cov --cov-report=term

test-slow: $(VENV)/ready  ## the tests that take minutes
	$(BIN)/pytest -m slow -o addopts="--strict-markers" tests

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mkdocs build --strict --quiet

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/ready  ## site/index.html; the pages' examples run in make test
	$(BIN)/mkdocs build --strict --quiet

gallery: $(VENV)/ready  ## the pictures and tables of docs/gallery.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.gallery

bench: $(VENV)/ready  ## tables on the screen, raw rows and claims in bench-results/
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.order_of_cost --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.corrective --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.problem5 --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.path_cost --check

bench-certificates: $(VENV)/ready  ## 500 random problems: is any certificate false, compared with extended precision?
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.certificates --check

$(PEERS)/ready: benchmarks/peers.lock pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -r benchmarks/peers.lock
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

bench-completion: $(PEERS)/ready  ## RobustCompletion against six libraries, in an environment of their own
	OPENBLAS_NUM_THREADS=1 $(PEERS)/bin/python -m benchmarks.completion --check

soak: $(VENV)/ready  ## 1,000 solves in one process: memory flat, nothing left
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.soak --check

$(FUZZ)/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[fuzz]'
	touch $@

fuzz: $(FUZZ)/ready  ## all that reads files, by hypothesis and by a coverage-guided fuzzer, which has an environment of its own
	OPENBLAS_NUM_THREADS=1 $(FUZZ)/bin/python -m benchmarks.fuzz --check

faults: $(VENV)/ready  ## 200 runs killed at random moments, on failing disks too, and resumed: the same to the bit?
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.faults --check

mutants: $(VENV)/ready  ## wrong changes to the core, and which test notices each
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutants --check

lock:  ## new exact versions for requirements.lock and benchmarks/peers.lock
	$(PYTHON) -m venv --clear .lock-venv
	.lock-venv/bin/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	.lock-venv/bin/pip freeze --exclude-editable > requirements.lock
	$(PYTHON) -m venv --clear .lock-venv
	.lock-venv/bin/pip install --quiet --disable-pip-version-check --editable '.[completion-peers]'
	.lock-venv/bin/pip freeze --exclude-editable > benchmarks/peers.lock
	rm -rf .lock-venv

clean:
	rm -rf $(VENV) $(PEERS) $(FUZZ) .lock-venv site demo-report reproduction bench-results .coverage
