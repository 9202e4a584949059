# Dovetail: `make` lists the targets. Needs Python 3.11+, Java 17+ and make; everything else is fetched by `make setup`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The name of the stamp changes with what it stands for, so a new lock is a new set-up.
STAMP := $(VENV)/.ready-$(shell cat requirements.lock pyproject.toml services/jars.lock | cksum | cut -d' ' -f1)
CASES ?= tests/cases
COUNT ?= 300
VIEWS ?= 5
ROWS ?= 2000000
ROUNDS ?= 3
# A file stays in one process, and so do folders whose files share a stack (tests/long_files.py). Much of a test with
# services is waiting, so there are more processes than cores; each has a broker and a Spark of its own, up to 4 GiB.
PROCESSES ?= 2
SERVICE_PROCESSES ?= 4
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup up down demo test test-image test-services unit lint check format conformance fuzz fuzz-queries fuzz-records siege bench-bounded bench-flink bench-formats bench-join bench-lookup bench-skew bench-state bench-views golden screenshots checkpoints lock audit clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## virtual environment, pinned dependencies, Kafka jars and class archives; does nothing when they are there
	@$(BIN)/python -m dovetail.services.jars
	@$(BIN)/python -m dovetail.services.class_archives

$(STAMP): requirements.lock pyproject.toml services/jars.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Dovetail needs Python 3.11 or newer, and $(PYTHON) is older; run: make setup PYTHON=/path/to/python3"; exit 1; }
	@echo "creating $(VENV) and installing the locked dependencies (a minute or two)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

up: setup ## start the local stack: Kafka, Redis, a schema registry, the Spark runner, a lookup worker and the HTTP server
	@$(BIN)/dovetail up

down: setup ## stop what `make up` started
	@$(BIN)/dovetail down

demo: setup ## three examples through real Kafka, Redis, Spark and a lookup worker; leaves nothing running
	@$(BIN)/dovetail demo

test: unit test-services ## all tests, those with Kafka and Spark included

unit: setup ## the tests that start no service
	@$(PYTEST) -n $(PROCESSES) -m "not services"

test-services: setup ## the tests with Kafka, Redis, Spark, databases and Chromium
	@$(PYTEST) -n $(SERVICE_PROCESSES) -m services

test-image: setup ## the image of docker/Dockerfile, built, and run as docker-compose.yml says; by Docker, else as root by Podman and debootstrap
	@$(BIN)/python -m tests.image

lint: setup ## lint, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

check: lint unit ## lint and the tests that start no service: before every commit

format: setup ## rewrite the code in the project's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

conformance: setup ## every case through both engines; CASES=dir for other cases
	@$(BIN)/python -m tests.conformance --cases $(CASES) --engine memory
	@$(BIN)/python -m tests.conformance --cases $(CASES) --engine services

fuzz: setup ## random expressions of both dialects beside ClickHouse and PostgreSQL; SEED=n COUNT=m, CONTEXTS=1 in whole queries
	@$(BIN)/python -m tests.oracles.fuzz --count $(COUNT) $(if $(SEED),--seed $(SEED)) $(if $(CONTEXTS),--contexts)

fuzz-queries: setup ## random whole queries, as views that run and asked at once, beside PostgreSQL; SEED=n COUNT=m
	@$(BIN)/python -m tests.oracles.fuzz_queries --count $(COUNT) $(if $(SEED),--seed $(SEED))

fuzz-records: setup ## records meant to break the decoders, of every format and type; SEED=n COUNT=m
	@$(BIN)/python -m tests.changelog.fuzz --count $(COUNT) $(if $(SEED),--seed $(SEED))

siege: setup ## the HTTP server under 10,000 requests, 5,000 statements and 20,000 records of each format of strangers; needs strace
	@$(BIN)/python -m tests.siege

bench-lookup: setup ## the lookup benchmark: every key in the hot tier, in Redis, in MariaDB; latency, memory
	@$(BIN)/python -m benchmarks.lookup

bench-bounded: setup ## the benchmark of joins bounded by time and order, the range join beside Spark's own
	@$(BIN)/python -m benchmarks.bounded

bench-join: setup ## the join benchmark beside Spark's own stream-stream join
	@$(BIN)/python -m benchmarks.join

bench-flink: setup ## joins beside a tuned Flink SQL, which it installs: time, processor time, memory; ROWS=n ROUNDS=n ONLY=inner,range
	@$(BIN)/python -m benchmarks.beside_flink --rows $(ROWS) --rounds $(ROUNDS) --only "$(ONLY)"

bench-skew: setup ## the benchmark of skewed keys beside uniform ones with as many rows out
	@$(BIN)/python -m benchmarks.skew

bench-state: setup ## a join whose state is five times the memory it may have, beside the same in memory: rate, memory
	@$(BIN)/python -m benchmarks.state

bench-views: setup ## many views on one machine: latency, processor time while idle, memory; VIEWS=n
	@$(BIN)/python -m benchmarks.views --views $(VIEWS)

bench-formats: setup ## reading and writing records of each format, beside JSON
	@$(BIN)/python -m benchmarks.formats

golden: setup ## rewrite the golden files; read the difference before it is committed
	@$(BIN)/python -m pytest -m "not services" --golden

screenshots: setup ## the pictures of the page in docs/pictures; needs chromium
	@$(BIN)/python -m tests.services.serve.page.pictures

checkpoints: setup ## write the checkpoints of this release, which later ones have to go on with
	@$(BIN)/python -m tests.spark.releases.write

lock: setup ## resolve pyproject.toml into requirements.lock again, and into that of the image
	@$(BIN)/python -m pip install --quiet uv==0.13.8
	@$(BIN)/uv pip compile --quiet pyproject.toml --group dev --generate-hashes --universal --python-version 3.11 \
		--no-emit-index-url --custom-compile-command "make lock" --output-file requirements.lock
	@$(BIN)/uv pip compile --quiet pyproject.toml --constraint requirements.lock --generate-hashes --universal \
		--python-version 3.11 --no-annotate --no-emit-index-url --custom-compile-command "make lock" \
		--output-file docker/requirements.lock

audit: ## known vulnerabilities of the locked dependencies, by pip-audit; from the package index (mirrors have no advisories), or else from OSV
	@$(PYTHON) -m venv --clear .dovetail/audit
	@.dovetail/audit/bin/pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	@for service in pypi osv; do \
		report=.dovetail/audit/$$service.md; \
		.dovetail/audit/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off --requirement requirements.lock \
			--vulnerability-service $$service --format markdown --output $$report 2> $$report.log && found=0 || found=1; \
		tail -n 1 $$report.log; \
		if [ $$found = 0 ]; then exit 0; fi; \
		if [ -s $$report ]; then cat $$report; exit 1; fi; \
	done; \
	echo "no advisories can be had from here: neither the package index nor OSV tells them"; exit 2

clean: ## stop the stack, remove its data, the environment and all caches
	@if [ -x $(BIN)/dovetail ]; then $(BIN)/dovetail down; fi
	@rm -rf $(VENV) .dovetail .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
