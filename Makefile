# Everything a developer runs. Each target makes the virtual environment it needs the first time;
# `make PYTHON=python3.13 test` chooses the interpreter that makes it.

PYTHON ?= python3
VENV   ?= .venv
PARITY ?= .venv-parity
COMPAT ?= .venv-compat
SHARED ?= ../shared

PY      = $(VENV)/bin/python
BASE    = $(VENV)/.stamp-base
DEV     = $(VENV)/.stamp-dev
PIP     = -m pip install --quiet --disable-pip-version-check

# Arguments for pytest, for instance: make test ARGS="tests/memory -k view"
ARGS   ?=
JOBS   ?= auto
# Arguments for the parity run, for instance: make parity OPS="^(mul|sin)$$" ARGS="--max-samples 2"
OPS    ?=

.PHONY: help demo test test-cuda fuzz bench soak accuracy sanitize lint pyright stubs docs docs-check parity parity-env \
        compat compat-env clean

help:
	@echo "make demo        train a small transformer, eager and compiled"
	@echo "make test        the tests (no torch, no GPU needed)"
	@echo "make lint        style, import contract, budgets, types, generated files in step"
	@echo "make fuzz        random programs in many modes: make fuzz ARGS=\"--minutes 5\""
	@echo "make sanitize    compiled code and its runtime under the C compiler's sanitizers"
	@echo "make pyright     types once more, by pyright (installs it)"
	@echo "make bench       our benchmarks"
	@echo "make soak        100,000 training steps at constant memory"
	@echo "make accuracy    compare special functions with 50-digit arithmetic"
	@echo "make parity      compare with PyTorch, operator by operator (installs torch)"
	@echo "make compat      train public packages on PyTorch and on Pullback, compare losses (both installed)"
	@echo "make test-cuda   the operator tests on a GPU (needs CuPy)"
	@echo "make stubs docs  write the generated files anew"

# --- environments ---------------------------------------------------------------------------------

$(BASE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pullback needs Python 3.11 or newer; \
	this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11 ...")'
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) $(PIP) --editable .
	@touch $@

$(DEV): $(BASE)
	$(PY) $(PIP) --editable '.[dev]'
	@touch $@

# Exactly this PyTorch is the oracle; it lives in an environment of its own.
$(PARITY)/.stamp: pyproject.toml
	test -x $(PARITY)/bin/python || $(PYTHON) -m venv $(PARITY)
	$(PARITY)/bin/python $(PIP) torch==2.13.0
	$(PARITY)/bin/python $(PIP) expecttest pytest einops matplotlib pandas scikit-learn
	$(PARITY)/bin/python $(PIP) --editable .
	@touch $@

# Public packages that are written for PyTorch, without it: whatever they import as torch is ours.
$(COMPAT)/.stamp: compat/requirements.txt pyproject.toml
	test -x $(COMPAT)/bin/python || $(PYTHON) -m venv $(COMPAT)
	$(COMPAT)/bin/python $(PIP) --editable .
	$(COMPAT)/bin/python $(PIP) --no-deps --requirement compat/requirements.txt
	@touch $@

# --- what one runs --------------------------------------------------------------------------------

demo: $(BASE)
	$(PY) examples/chargpt.py $(ARGS)

# Workers and the hundreds of processes that tests start read each other's bytecode, whatever the
# shell says: without it each of them compiles the package anew.
test: export PYTHONDONTWRITEBYTECODE =
test: $(DEV)
	$(PY) -m pytest -n $(JOBS) --dist worksteal -m "not torch" $(ARGS)

test-cuda: $(DEV)
	@$(PY) -c "import cupy" 2>/dev/null || $(PY) $(PIP) --editable '.[cuda]'
	PULLBACK_TEST_DEVICE=cuda $(PY) -m pytest tests/ops/test_table.py $(ARGS)

fuzz: $(BASE)
	$(PY) tests/fuzz $(ARGS)

bench: $(DEV)
	$(PY) -m bench $(ARGS)
	@if [ -d $(SHARED)/bench ]; then \
	  echo; echo "Against the peers (needs their environments, see $(SHARED)/bench/README.md):"; \
	  echo "  BENCH_PYTHON_PULLBACK=$(abspath $(PY)) $(PY) $(SHARED)/bench/run.py --targets torch,torch-compile,jax-jit,pullback,pullback-compile"; \
	  echo "  BENCH_PYTHON_PULLBACK=$(abspath $(PY)) $(PY) $(SHARED)/bench/startup.py"; \
	fi

soak: $(DEV)
	$(PY) -m bench.soak $(ARGS)

accuracy: $(DEV)
	$(PY) tools/accuracy.py $(ARGS)

# Some of it: make sanitize ARGS="threads", ARGS="memory --part table" (or kernels, fuzz), or
# ARGS="memory -- tests/compile/test_ops.py -k sum"
sanitize: $(DEV)
	$(PY) tools/sanitize.py $(ARGS)

lint: $(DEV)
	$(PY) -m ruff check .
	$(VENV)/bin/lint-imports
	$(PY) tools/gen_names.py --check
	$(PY) tools/gen_stubs.py --check
	$(PY) tools/gen_docs.py --check
	$(PY) tools/house.py
	$(PY) -m mypy

# The other type checker; its package on PyPI fetches the program itself from npm's registry.
pyright: $(DEV)
	@$(PY) -c "import pyright" 2>/dev/null || $(PY) $(PIP) pyright
	$(PY) -m pyright

stubs: $(DEV)
	$(PY) tools/gen_names.py
	$(PY) tools/gen_stubs.py

docs: $(DEV)
	$(PY) tools/gen_docs.py

docs-check: $(DEV)
	$(PY) tools/gen_docs.py --check
	$(PY) -m pytest tests/docs $(ARGS)

parity-env: $(PARITY)/.stamp

parity: parity-env
	$(PARITY)/bin/python -m pytest -m torch tests/nn tests/export/test_pt2.py tests/ops/test_conv.py tests/array/test_random.py tests/array/test_random_fill_order.py \
	  tests/serialization tests/distributions tests/torch tests/optim tests/test_examples.py \
	  tests/cut/test_against_torch.py
	@if [ -d $(SHARED)/parity ]; then \
	  $(PARITY)/bin/python $(SHARED)/parity/opinfo_parity.py --target pullback \
	    $(if $(OPS),--ops '$(OPS)') $(ARGS); \
	else \
	  echo "make parity: there is no $(SHARED)/parity here, so there is nothing to compare with."; \
	fi

compat-env: $(COMPAT)/.stamp

# Some of them: make compat ARGS="vit gpytorch_regression"
compat: parity-env compat-env
	$(PARITY)/bin/python -m compat --torch $(PARITY)/bin/python --pullback $(COMPAT)/bin/python \
	  --site $$($(COMPAT)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') $(ARGS)

clean:
	rm -rf $(VENV) $(PARITY) $(COMPAT) build dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
