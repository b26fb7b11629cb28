# make demo   install, then find three known disease patterns in a simulated cohort
# make test   install, then run the test suite
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow lint format bench bench-official clean

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(VENV)/installed
	$(BIN)/rindices demo --out demo

test: $(VENV)/installed
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(VENV)/installed
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Against the authors' package where `make bench-official` has installed it; without it, our own speed alone.
bench: $(VENV)/installed
	$(BIN)/python benchmarks/versus_official.py
	$(BIN)/python benchmarks/throughput.py --models 10 10

bench-official:
	$(PYTHON) -m venv .venv-official
	.venv-official/bin/python -m pip install --quiet torch==2.13.0 numpy pandas scipy scikit-learn lifelines tqdm
	.venv-official/bin/python -m pip install --quiet --no-deps SurrealGAN==0.1.1

clean:
	rm -rf $(VENV) .venv-official demo .pytest_cache .ruff_cache .mypy_cache
