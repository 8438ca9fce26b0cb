# Two commands do all the set-up on a machine with git, make and Python 3.11 or newer: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
FUZZ := .venv-fuzz

# Tests and benchmarks start many processes, each of which would compile every module that it imports again without bytecode files.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-slow coverage lint format docs gallery bench bench-certificates bench-completion bench-large bench-regressor bench-defaults bench-inner soak faults fuzz mutants lock clean bench-matching bench-sets bench-scale-out bench-scale-out-peers bench-methods

# Every package is installed by the hash in a lock file. The locks have setuptools too, which builds condgrad (and copt) in
# the environment itself: pip's isolated build would fetch whatever setuptools is newest. Python compiles modules as they are
# imported; all of them at once (no --no-compile) would take longer than their installation.
INSTALL := install --quiet --disable-pip-version-check --no-compile --require-hashes
EDITABLE := install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .

$(VENV)/demo-ready: demo.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "condgrad needs Python 3.11 or newer: make PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip $(INSTALL) -r demo.lock
	$(BIN)/pip $(EDITABLE)
	touch $@

$(VENV)/ready: $(VENV)/demo-ready requirements.lock
	$(BIN)/pip $(INSTALL) --no-build-isolation -r requirements.lock
	touch $@

demo: $(VENV)/demo-ready  ## the paper's experiment, with a report to look at
	$(BIN)/condgrad reproduce --quick --jobs 2 --out demo-report

# One worker runs all tests of a file, so that a fixture of the module is made once.
test: $(VENV)/ready  ## the default suite
	$(BIN)/pytest -n 2 --dist loadfile -rs

coverage: $(VENV)/ready  ## the default suite again, with its coverage, which takes twice the time
	$(BIN)/pytest -n 2 --dist loadfile --cov --cov-report=term

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

docs: $(VENV)/ready  ## site/index.html; its search needs a server: python -m http.server -d site. The examples run in make test
	$(BIN)/mkdocs build --strict --quiet

gallery: $(VENV)/ready  ## the pictures and tables of docs/gallery.md, docs/set-gallery.md and docs/graph-matching.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.gallery
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.set_gallery

bench: $(VENV)/ready  ## tables on the screen, raw rows and claims in bench-results/
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.order_of_cost --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.corrective --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.problem5 --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.path_cost --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.readers

bench-certificates: $(VENV)/ready  ## 500 random problems: is any certificate false, compared with extended precision?
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.certificates --check

$(PEERS)/ready: benchmarks/peers.lock pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip $(INSTALL) -r benchmarks/peers.lock
	$(PEERS)/bin/pip $(EDITABLE)
	touch $@

bench-completion: $(PEERS)/ready  ## RobustCompletion against six libraries, in an environment of their own
	OPENBLAS_NUM_THREADS=1 $(PEERS)/bin/python -m benchmarks.completion --check

bench-large: $(PEERS)/ready  ## RobustCompletion with defaults on 10 million entries, beside cmfrec
	OPENBLAS_NUM_THREADS=1 $(PEERS)/bin/python -m benchmarks.large_defaults --check

bench-regressor: $(VENV)/ready  ## RobustLinearRegressor against robust regressions of scikit-learn, where data are wrong
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.regressor --check

bench-defaults: $(VENV)/ready  ## estimators with their defaults against tuned plain methods, on 100 data sets
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.one_sided --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.defaults --all --check

bench-matching: $(VENV)/ready  ## GraphMatcher against scipy's FAQ for the same CPU time, on 30 pairs of noisy graphs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.graph_matching --check

bench-sets: $(VENV)/ready  ## linear oracles against the best alternative that a user has
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.sets --check

bench-methods: $(VENV)/ready  ## every method on twelve families of problems, with defaults and tuned; is `auto` near the best?
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.methods --check

bench-inner: $(VENV)/ready  ## linear minimisations of every inner solver on every set, to a relative gap of 1e-8
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.inner_solvers --check

bench-scale-out: $(VENV)/ready  ## completion on a Dask cluster of processes: bits, killed workers, traffic, 100 million entries
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale_out --check

bench-scale-out-peers: $(VENV)/ready  ## the same beside Spark's ALS and cmfrec: PEERS=an interpreter with both
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale_out_peers --check $(if $(PEERS),--peers $(PEERS))

soak: $(VENV)/ready  ## 1,000 solves in one process: memory flat, nothing left
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.soak --check

$(FUZZ)/ready: benchmarks/fuzz.lock pyproject.toml
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/pip $(INSTALL) -r benchmarks/fuzz.lock
	$(FUZZ)/bin/pip $(EDITABLE)
	touch $@

fuzz: $(FUZZ)/ready  ## all that reads files, by hypothesis and by a coverage-guided fuzzer, which has an environment of its own
	OPENBLAS_NUM_THREADS=1 $(FUZZ)/bin/python -m benchmarks.fuzz --check

faults: $(VENV)/ready  ## 200 runs killed at random moments, on failing disks too, and resumed: the same to the bit?
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.faults --check

mutants: $(VENV)/ready  ## wrong changes to the core, and which test notices each
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutants --jobs 2 --check

# One lock, with one version of each package where possible, serves Python 3.11 and newer on every platform: it lists the hash of every file. All but the peers'
# share their versions, so that `make test` after `make demo` only adds packages.
COMPILE = echo 'setuptools>=77' | .lock-venv/bin/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 \
	--generate-hashes --no-strip-extras --no-annotate --no-header --no-emit-index-url pyproject.toml -

lock:  ## the newest versions, with hashes, for requirements.lock, demo.lock, benchmarks/fuzz.lock and benchmarks/peers.lock
	$(PYTHON) -m venv --clear .lock-venv
	.lock-venv/bin/pip install --quiet --disable-pip-version-check 'uv>=0.8'
	$(COMPILE) --extra dev --upgrade --output-file requirements.lock
	$(COMPILE) --extra plot --constraint requirements.lock --upgrade --output-file demo.lock
	$(COMPILE) --extra fuzz --constraint requirements.lock --upgrade --output-file benchmarks/fuzz.lock
	$(COMPILE) --extra completion-peers --upgrade --output-file benchmarks/peers.lock
	rm -rf .lock-venv

clean:
	rm -rf $(VENV) $(PEERS) $(FUZZ) .lock-venv site demo-report reproduction bench-results .coverage
