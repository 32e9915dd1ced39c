# Two commands do everything: `make demo` and `make test`. Both need only Python 3.11+, pip, make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
DEMO := demo

.PHONY: demo test quick lint types format benchmark clean

demo: $(VENV)/.package
	@$(BIN)/whosthere simulate milan-like --seed 7 --out $(DEMO)/city --force
	@$(BIN)/whosthere ingest $(DEMO)/city/records.parquet --regions $(DEMO)/city/regions.csv \
		--epoch 1h --out $(DEMO)/traces.parquet --force
	@$(BIN)/whosthere release $(DEMO)/traces.parquet --group-size 1000 --seed 1 --force \
		--mechanism raw --out $(DEMO)/raw.parquet
	@$(BIN)/whosthere release $(DEMO)/traces.parquet --group-size 1000 --seed 1 --force \
		--mechanism "laplace(eps=1, unit=event) | suppress(k=1)" --out $(DEMO)/protected.parquet
	@echo
	@echo "Somebody's visits are known. Is that person in the releases? (Yes: this demo chose a member.)"
	@$(BIN)/whosthere target $(DEMO)/traces.parquet --seed 27 --out $(DEMO)/target.csv --force
	@echo
	@echo "Attack on the raw counts:"
	@$(BIN)/whosthere attack $(DEMO)/raw.parquet --target $(DEMO)/target.csv
	@echo
	@echo "Attack on the protected counts:"
	@$(BIN)/whosthere attack $(DEMO)/protected.parquet --target $(DEMO)/target.csv
	@echo
	@echo "Results are in $(DEMO)/: records and regions of a simulated city, its traces.parquet,"
	@echo "two releases of the same 1000 people (raw.parquet, protected.parquet), and target.csv."

test: lint types
	$(BIN)/pytest --numprocesses 2

# Everything but the tests marked slow.
quick: $(VENV)/.dev
	$(BIN)/pytest --numprocesses 2 -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmark: $(VENV)/.dev
	$(BIN)/python benchmarks/ingest.py > benchmarks/results/ingest.json
	$(BIN)/python benchmarks/foundation.py > benchmarks/results/foundation.json
	$(BIN)/python benchmarks/attack_speed.py > benchmarks/results/attack_speed.json
	$(BIN)/python benchmarks/likelihood_speed.py > benchmarks/results/likelihood_speed.json

clean:
	rm -rf $(VENV) $(DEMO)

$(VENV)/.package: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (a minute the first time) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.package
	@$(PIP) --editable '.[cluster,geo,learn,dev]'
	@touch $@
