.PHONY: install demo test faults bench lint format clean

PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 3

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: install
	$(BIN)/combee demo

test: install
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --durations 20

faults: install
	$(BIN)/python -m pytest tests/faults -s -o faulthandler_timeout=1800 -k '$(ONLY)'

bench: install
	$(BIN)/python tests/benchmarks/run.py --only '$(ONLY)'

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv combee-demo .mypy_cache .pytest_cache .ruff_cache
