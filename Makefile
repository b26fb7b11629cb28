# make demo   install, then find three known disease patterns in a simulated cohort
# make test   install, then run the test suite
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow lint format bench bench-official reproduce reproduce-full clean

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
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --ignore tests/survival
	$(BIN)/python -m pytest -m "not slow" tests/survival  # these kill and restart processes: one at a time

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

# The paper's experiments: the page from the tables in results/, then a reduced rerun on two cores.
reproduce: $(VENV)/installed
	$(BIN)/python experiments/paper/page.py
	$(BIN)/python experiments/paper/reduced.py --out runs/reproduce/reduced.csv
	$(BIN)/python experiments/paper/all.py --small --out runs/reproduce/not-comparable
	@echo "docs/reproduction.md is from results/; runs/reproduce holds the reduced rerun and the smoke runs."

# All of them on a GPU, in stages that go on where they stopped (STAGE="1 2", CONTROLS=healthy.csv).
reproduce-full: $(VENV)/installed
	$(BIN)/python experiments/paper/all.py --out results \
		$(if $(STAGE),--stage $(STAGE)) $(if $(CONTROLS),--controls $(CONTROLS))
	$(BIN)/python experiments/paper/page.py

clean:
	rm -rf $(VENV) .venv-official demo .pytest_cache .ruff_cache .mypy_cache
