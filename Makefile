# The two commands are `make run` and `make test`; both install what they need.
PYTHON ?= python3
PY := .venv/bin/python
COMPILE := $(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
export PYTHONPATH := .:platform
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check install install-dev bench eval lock

run: install
	@exec $(PY) -m embedded.supervisor

install:
	@$(PYTHON) platform/embedded/bootstrap.py

install-dev:
	@$(PYTHON) platform/embedded/bootstrap.py --dev

test: install-dev
	@$(PY) -m pytest $(ARGS)

check: install-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -c "from importlinter.cli import lint_imports_command; lint_imports_command()"
	$(PY) -m mypy .
	$(PY) manage.py check
	$(PY) -m pytest -q tests/docs tests/house

bench: install-dev
	@$(PY) -m bench

eval: install-dev
	@$(PY) -m eval

lock:
	$(COMPILE) requirements.txt -o requirements.lock
	$(COMPILE) requirements-dev.txt -c requirements.lock -o requirements-dev.lock
	$(COMPILE) --no-deps requirements-model.txt -o requirements-model.lock
