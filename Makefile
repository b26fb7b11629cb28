# make demo   install, then find three known disease patterns in a simulated cohort
# make test   install, then run the tests that every change needs (eight minutes on two cores)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
PEERS := .venv-peers

.PHONY: demo test test-all test-slow mutate test-browser test-oldest test-pages fuzz docs dist audit lint size format bench bench-official peers reproduce reproduce-full reproduce-paper clean

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(VENV)/installed
	$(BIN)/rindices demo --out demo

# Left to `make test-all`: pages, figures, analyses, whole runs, documents followed to the letter, experiments, other
# programs' tables, other libraries' checks, tests that draw their own cases, and the examples in docstrings.
SECOND := tests/analysis tests/cohort/test_traps.py tests/docs tests/experiments tests/fuzz tests/imaging tests/interop \
	tests/longevity tests/pages tests/plots tests/properties tests/run tests/sentences tests/simulate \
	tests/tables/test_formats.py tests/trust/test_whole_life.py tests/test_brain_commands.py tests/test_cli.py tests/test_cli_official.py \
	tests/test_linear_estimator.py tests/test_real_tables.py tests/test_search.py tests/test_sklearn_checks.py \
	tests/test_streaming.py

# Of the other files, the tests of trained programs that take longest to compile are left to it as well.
LONG := $(addprefix tests/,core/test_train.py::test_company_with_more_patterns_does_not_matter \
	core/test_train.py::test_four_devices_give_the_same_r_indices \
	training/test_chunks_and_starts.py::test_a_model_of_a_mixed_chunk_is_what_it_is_alone)

# One thread of linear algebra per process, as in commands: there are as many processes as cores.
test test-all test-slow: export OPENBLAS_NUM_THREADS := 1

test: $(VENV)/installed
	$(if $(COVERAGE),$(BIN)/coverage erase)
	$(BIN)/$(if $(COVERAGE),coverage run,python) -m pytest -m "not slow" -n 2 --dist loadfile --ignore tests/survival \
		$(SECOND:%=--ignore=%) $(LONG:%=--deselect=%)

# `make test test-all COVERAGE=1` measures the coverage of src by both parts together and fails below 92 %. The last
# tests kill and restart processes, so they run one at a time.
test-all: $(VENV)/installed
	$(BIN)/$(if $(COVERAGE),coverage run,python) -m pytest -m "not slow" -n 2 --dist loadfile $(SECOND) $(LONG) \
		--doctest-modules src
	$(BIN)/$(if $(COVERAGE),coverage run,python) -m pytest -m "not slow" tests/survival
	$(if $(COVERAGE),$(BIN)/coverage combine --quiet && $(BIN)/coverage report --skip-covered --fail-under=92)

# Mutation testing: one token of the source is changed at a time (NUMBER=150, SEED=0); which changes go unnoticed?
mutate: $(VENV)/installed
	$(BIN)/python tools/mutate.py $(if $(NUMBER),--number $(NUMBER)) $(if $(SEED),--seed $(SEED))

test-slow: $(VENV)/installed
	$(BIN)/python -m pytest -m slow

# Pages and reports in a real browser; with PICTURES=docs/pictures, the tutorial's pictures are remade as well.
test-browser: $(VENV)/installed
	RINDICES_PICTURES=$(PICTURES) $(BIN)/python -m pytest tests/pages/server/test_browser.py tests/pages/test_browser.py

$(OLDEST)/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet uv
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST)/bin/python --resolution lowest-direct --compile-bytecode --editable '.[dev]'
	@touch $@

# The tests with the oldest versions that pyproject.toml allows, on Python 3.11. Old matplotlib warns of new pyparsing.
test-oldest: $(OLDEST)/installed
	$(OLDEST)/bin/python -m pytest -m "not slow" -W ignore::DeprecationWarning -n 2 --dist loadfile --ignore tests/survival
	$(OLDEST)/bin/python -m pytest -m "not slow" -W ignore::DeprecationWarning tests/survival

# The demonstration's report and the site in a real Chromium: heights, print, phones, network, keyboard, contrast.
test-pages: docs
	test -f demo/run/report.html || $(BIN)/rindices demo --out demo
	$(BIN)/rindices report demo/run
	$(BIN)/python tools/check_pages.py demo/run/report.html site

# Damaged, odd and hostile files for every reader (CASES=1000, SEED=1); failures are kept in fuzz-failures/.
fuzz: $(VENV)/installed
	RINDICES_FUZZ=$(or $(CASES),10000) RINDICES_FUZZ_SEED=$(or $(SEED),0) $(BIN)/python -m pytest -W ignore -s tests/fuzz

# The documentation site, in site/, with three sample reports; warnings are errors, and nothing is fetched.
docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The documentation: site/index.html"

# Wheel and source archive in dist/; each is installed in an empty environment, where the demo runs without a network.
dist: $(VENV)/installed
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python packaging/check_dist.py dist

# Known vulnerabilities of installed packages; exit status 2 if the service could not be reached.
audit: $(VENV)/installed
	$(BIN)/python tools/audit.py

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Statements, files and untyped mappings against their limits; exit status 1 if one is exceeded.
size: $(VENV)/installed
	$(BIN)/python tools/size.py

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Speed, compared with the authors' package if `make bench-official` has installed it; otherwise ours alone.
bench: $(VENV)/installed
	$(BIN)/python benchmarks/versus_official.py
	$(BIN)/python benchmarks/throughput.py --models 10 10

bench-official:
	$(PYTHON) -m venv .venv-official
	.venv-official/bin/python -m pip install --quiet torch==2.13.0 numpy pandas scipy scikit-learn lifelines tqdm
	.venv-official/bin/python -m pip install --quiet --no-deps SurrealGAN==0.1.1

# These packages' pins (torch 1.10.2, from 2022) no longer install on Python 3.11, so they are ignored;
# benchmarks/peers/foreign_methods.py stubs mlni's torchvision and tensorboardX, which clustering does not use.
$(PEERS)/installed:
	for name in surrealgan smilegan hydra sustain; do \
		$(PYTHON) -m venv $(PEERS)/$$name && \
		$(PEERS)/$$name/bin/python -m pip install --quiet numpy pandas scipy scikit-learn tqdm matplotlib || exit 1; done
	for name in surrealgan smilegan hydra; do $(PEERS)/$$name/bin/python -m pip install --quiet torch==2.13.0 || exit 1; done
	$(PEERS)/surrealgan/bin/python -m pip install --quiet lifelines
	$(PEERS)/surrealgan/bin/python -m pip install --quiet --no-deps SurrealGAN==0.1.1
	$(PEERS)/smilegan/bin/python -m pip install --quiet --no-deps SmileGAN==0.1.4
	$(PEERS)/hydra/bin/python -m pip install --quiet nibabel packaging
	$(PEERS)/hydra/bin/python -m pip install --quiet --no-deps mlni==0.1.5
	$(PEERS)/sustain/bin/python -m pip install --quiet 'numpy<2.4' pathos dill
	@touch $@

# Other methods of the field and ours on the same cohorts: about a week on one core, ten hours with JOBS=16 (MINUTES=30
# of processor time per training, PYSUSTAIN=a checkout). QUICK=1: one row per method.
peers: $(VENV)/installed $(PEERS)/installed
	PYSUSTAIN=$(PYSUSTAIN) $(BIN)/python benchmarks/peers/compare_peers.py $(if $(QUICK),--quick) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(JOBS),--jobs $(JOBS))
	$(if $(QUICK),,$(BIN)/python benchmarks/peers/peers_page.py --write)

# The paper's experiments: the page from the tables in results/, then a reduced rerun on two cores.
reproduce: $(VENV)/installed
	$(BIN)/python experiments/paper/page.py
	$(BIN)/python experiments/paper/reduced.py --out runs/reproduce/reduced.csv
	$(BIN)/python experiments/paper/all.py --small --out runs/reproduce/not-comparable
	@echo "docs/reproduction.md is from results/; runs/reproduce holds the reduced rerun and the smoke runs."

# All of them on a GPU, in stages that resume where they stopped (STAGE="1 2", CONTROLS=healthy.csv).
reproduce-full: $(VENV)/installed
	$(BIN)/python experiments/paper/all.py --out results \
		$(if $(STAGE),--stage $(STAGE)) $(if $(CONTROLS),--controls $(CONTROLS))
	$(if $(STAGE),,$(MAKE) reproduce-paper)
	$(BIN)/python experiments/paper/page.py

# The paper's own settings and difficulty: an hour on one H200. AUTHORS=FOLDER has the authors' sample, MODEL=FILE is
# their published model. Rows already in results/ are not retrained: move the table away to remake it. The column of
# the authors' package comes from `make peers`.
PAPER := $(BIN)/python experiments/paper
reproduce-paper: $(VENV)/installed
	for part in 1 2 3; do $(PAPER)/paper_preset.py --part $$part --out trained/easy || exit; done
	$(PAPER)/paper_preset.py --judge trained/easy
	$(PAPER)/paper_preset.py --part 4 --out trained/hard
	$(PAPER)/paper_preset.py --judge trained/hard --name matched_paper
	$(PAPER)/paper_preset.py --part 5 --out trained/long
	$(PAPER)/paper_preset.py --judge trained/long --name paper_long
	$(PAPER)/matched.py
	$(PAPER)/matched.py --noise
	$(BIN)/python experiments/numbers/linear_start.py --matched
	$(PAPER)/ablations.py --matched --out results/matched_ablations.csv
	$(PAPER)/folds.py --matched --out results/matched_folds.csv
	$(PAPER)/folds.py --default --out results/matched_default_folds.csv
	$(PAPER)/comparison.py --matched --out results/matched_baselines.csv
	$(PAPER)/own_protocol.py --study $(if $(AUTHORS),--authors $(AUTHORS))
	$(if $(MODEL),$(PAPER)/authors_maps.py --model $(MODEL))

clean:
	rm -rf $(VENV) $(OLDEST) .venv-official $(PEERS) dist site demo .pytest_cache .ruff_cache .mypy_cache
