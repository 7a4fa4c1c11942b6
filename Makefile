# The two commands of the README are `make demo` and `make test`; each sets up what is missing first.
BIN := .venv/bin

.PHONY: help setup demo test test-faults lint format bench lock clean

help:
	@echo "make demo         a disordered stream through the operator, on your screen"
	@echo "make test         all tests that need no process of their own"
	@echo "make test-faults  tests with processes of their own: kill and restart, Connect"
	@echo "make lint         ruff, mypy, import-linter"
	@echo "make bench        the targets (about 15 minutes; \`latecomer bench sort\` takes half an hour more)"

setup:
	@scripts/setup

demo: setup
	@$(BIN)/latecomer demo

test: setup
	@$(BIN)/pytest

test-faults: setup
	@$(BIN)/pytest tests/faults

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
	    pyproject.toml --group dev --quiet --custom-compile-command "make lock" --output-file requirements.lock

clean:
	rm -rf .venv build artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis
