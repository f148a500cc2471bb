# Every target makes .venv and installs what it needs: a machine with Python 3.11+ and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-more test-lowest coverage lint bench bench-peers docs docs-serve results dist clean

demo: $(VENV)/tool.stamp
	$(BIN)/evenly demo --out demo

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15 -m "not more"

test-more: $(VENV)/test.stamp
	HYPOTHESIS_PROFILE=more $(BIN)/python -m pytest -n 2 --dist worksteal --durations=15 -m more

# The quick tests with the lowest versions that pyproject.toml allows, in an environment of their own.
test-lowest:
	$(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip --disable-pip-version-check --quiet install uv
	build/lowest/bin/uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct -e '.[all]' --group test
	build/lowest/bin/python -m pytest -n 2 --dist worksteal -m "not more"

# What `make test` covers: it must be worth running.
coverage: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not more" --cov=evenly --cov-report=term:skip-covered --cov-fail-under=90

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/test.stamp
	$(BIN)/python benchmarks/gamma_trick.py
	$(BIN)/python benchmarks/scaler_speed.py
	$(BIN)/python benchmarks/epoch_time.py
	$(BIN)/python benchmarks/together.py
	$(BIN)/python benchmarks/imputer_cost.py
	$(BIN)/python benchmarks/engines.py --rows 1000000 --engines polars duckdb

# The imputer beside others on the smallest table, measured anew in a few minutes; the larger tables take hours.
bench-peers: $(VENV)/test.stamp
	rm -f $(VENV)/peers.jsonl
	$(BIN)/python benchmarks/peers.py --dataset breast --out $(VENV)/peers.jsonl

# The site of the documentation, in build/site: a broken link or reference fails.
docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

docs-serve: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

# The pictures and tables in the documentation, made again from the recorded runs.
results: $(VENV)/test.stamp
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_design_picture.py
	$(BIN)/python docs/make_results.py
	$(BIN)/python docs/make_paper_appendix.py
	$(BIN)/python docs/make_peers.py
	$(BIN)/python docs/make_published.py
	$(BIN)/python docs/make_pooling.py
	$(BIN)/python docs/make_default_method.py
	$(BIN)/python docs/make_gamma_trick.py
	$(BIN)/python docs/make_real_tables.py
	$(BIN)/python docs/make_engines.py
	$(BIN)/python docs/make_programs.py
	$(BIN)/python docs/make_balance.py

# The wheel and the source distribution; `python tests/check_wheel.py` installs the wheel in clean environments.
dist: $(VENV)/bin/python
	rm -rf dist
	$(PIP) install --upgrade build
	$(BIN)/python -m build --outdir dist

clean:
	rm -rf $(VENV) demo dist build/site build/lowest

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/tool.stamp: $(VENV)/bin/python pyproject.toml
	$(PIP) install -e '.[models,tool]'
	touch $@

$(VENV)/test.stamp: $(VENV)/bin/python pyproject.toml
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install -e '.[all]' --group test
	touch $@

$(VENV)/docs.stamp: $(VENV)/bin/python pyproject.toml
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install -e '.[tool]' --group docs
	touch $@
