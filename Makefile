# Two commands do everything: `make demo` and `make test`. Both need only Python 3.11+, pip, make.
# `make test-all` is for what takes longer: whole searches, studies and simulations.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
DEMO := demo

.PHONY: demo test test-all checks quick lint types kernels format bench clean

demo: $(VENV)/.package
	@mkdir -p $(DEMO) && date +%s > $(DEMO)/.begun
	@echo "A simulated city stands in for your records."
	@$(BIN)/whosthere simulate milan-like --users 20000 --days 2 --seed 7 --out $(DEMO)/city --force
	@$(BIN)/whosthere ingest $(DEMO)/city/records.parquet --regions $(DEMO)/city/regions.csv \
		--epoch 4h --out $(DEMO)/traces.parquet --force
	@echo
	@echo "An audit: could somebody tell who is in counts of 2,500 of these people?"
	@rm -rf $(DEMO)/audit
	@$(BIN)/whosthere audit $(DEMO)/traces.parquet --group-size 2500 \
		--mechanism raw --mechanism "laplace(eps=0.2, unit=event)" \
		--attack likelihood-ratio --targets 80 --seed 1 --out $(DEMO)/audit
	@echo
	@echo "The report, to be opened in a browser: $(CURDIR)/$(DEMO)/audit/report.html"
	@echo "To find a protection that passes: $(BIN)/whosthere recommend $(DEMO)/traces.parquet -m 2500"
	@echo "To try further attacks, which learn and take minutes: $(BIN)/whosthere attacks"
	@echo "The demo took $$(($$(date +%s) - $$(cat $(DEMO)/.begun))) s."

TWO_AT_A_TIME := $(BIN)/pytest --numprocesses 2 --dist worksteal

test: checks
	$(TWO_AT_A_TIME)

test-all: checks
	$(TWO_AT_A_TIME) --full

checks: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs 2 lint types kernels

# Everything but the tests marked slow.
quick: $(VENV)/.dev
	$(TWO_AT_A_TIME) -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# Compiled once, while mypy takes the other processor.
kernels: $(VENV)/.dev
	@$(BIN)/python tests/compile_kernels.py > /dev/null

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/ingest.py > benchmarks/results/ingest.json
	$(BIN)/python benchmarks/ingest.py --sql > benchmarks/results/ingest_sql.json
	$(BIN)/python benchmarks/foundation.py > benchmarks/results/foundation.json
	$(BIN)/python benchmarks/trained_speed.py > benchmarks/results/trained_speed.json
	$(BIN)/python benchmarks/trained_speed.py --auc > benchmarks/results/trained_auc.json
	$(BIN)/python benchmarks/likelihood_speed.py > benchmarks/results/likelihood_speed.json
	$(BIN)/python benchmarks/audit_speed.py > benchmarks/results/audit_speed.json
	$(BIN)/python benchmarks/guarantees.py > benchmarks/results/guarantees.json

clean:
	rm -rf $(VENV) $(DEMO)

$(VENV)/.package: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (a minute the first time) ..."
	@begun=$$(date +%s); { test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); } && \
		$(PIP) --editable . && touch $@ && \
		echo "The installation took $$(($$(date +%s) - begun)) s."

$(VENV)/.dev: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) for development (a minute the first time) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --no-compile --editable '.[cluster,geo,learn,pandas,plot,sheets,sql,dev]'
	@touch $@ $(VENV)/.package
