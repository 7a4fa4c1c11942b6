# The two commands of the README are `make demo` and `make test`; each sets up what is missing first.
BIN := .venv/bin

.PHONY: help setup demo test test-browser test-faults test-spark test-upgrade lint format bench dist docs lock clean

help:
	@echo "make demo         late readings through Spark's watermark and the strategies for one feed, a scoreboard, a page"
	@echo "make test         all tests that need no process of their own"
	@echo "make test-browser  reports in a real browser: they render, fit, and answer to pointing"
	@echo "make test-faults  tests with processes of their own: kill and restart, Connect"
	@echo "make test-spark SPARK=4.0   what needs Spark, with another one (4.0, 4.1, 4.2), in an environment of its own"
	@echo "make test-upgrade  a checkpoint goes on with one version of Spark after the other"
	@echo "make dist         sdist and wheel, tried in empty environments"
	@echo "make docs         the documentation as a site, its links checked and its code run"
	@echo "make lint         ruff, mypy, import-linter"
	@echo "make bench        the targets (about 15 minutes; \`latecomer bench sort\` takes half an hour more)"

setup:
	@scripts/setup

demo: setup
	@mkdir -p artifacts
	@$(BIN)/latecomer tour --html artifacts/report.html

test: setup
	@scripts/test

test-browser: setup
	@scripts/test-browser

test-faults: setup
	@$(BIN)/pytest tests/faults

test-spark: setup
	@scripts/test-spark $(SPARK)

test-upgrade: setup
	@scripts/test-upgrade

dist: setup
	@scripts/dist

docs: setup
	@scripts/docs --run

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup
	@mkdir -p artifacts
	@$(BIN)/latecomer bench operator --json artifacts/bench-operator.json
	@$(BIN)/latecomer bench reorder --json artifacts/bench-reorder.json
	@$(BIN)/latecomer bench profile --json artifacts/bench-profile.json
	@$(BIN)/latecomer bench presets --json artifacts/bench-presets.json
	@$(BIN)/latecomer bench pacing --json artifacts/bench-pacing.json

# Needs uv. The lock is for every platform and Python from 3.11 on, hashed, and names no index.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	    pyproject.toml --extra all --group dev --quiet --custom-compile-command "make lock" --output-file requirements.lock
	for spark in 4.0 4.1 4.2; do \
	    echo "pyspark==$$spark.*" | uv pip compile --universal --python-version 3.11 --generate-hashes \
	        --no-emit-index-url --no-emit-find-links pyproject.toml --extra all --group matrix --constraints - \
	        --quiet --custom-compile-command "make lock" --output-file locks/spark-$$spark.lock || exit 1; \
	done

clean:
	rm -rf .venv .venv-spark-* build dist artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis
