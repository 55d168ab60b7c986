# run, test and the others work on a fresh checkout: each first adds to .venv what it needs of the locked packages.
PYTHON ?= python3
ARGS ?=
# Tests at the same time, else what suits two cores: those of the second tier mostly wait for servers that start.
JOBS ?=
VENV := .venv/bin

# Where this is set, every process that a command or a test starts would compile all of its libraries anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help env serving run cluster test test-all lint bench site dist lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

env:
	@$(PYTHON) .ci/bootstrap.py

serving:
	@$(PYTHON) .ci/bootstrap.py run

run: serving ## start a demo server with its own Redis; ARGS="--port 9000"
	@$(VENV)/stream-server serve --demo $(ARGS)

cluster: serving ## start a demo on a Redis Cluster: six nodes, two servers, nginx; ARGS="--port 9000"
	@$(VENV)/python -m tests.end_to_end.cluster_demo $(ARGS)

test: env ## run the first tier of tests, which holds every promise; ARGS="-k cursor"
	@$(VENV)/python -m pytest -n $(or $(JOBS),5) --dist worksteal --quick $(ARGS)

test-all: env ## run all tests; ARGS=--full adds the long forms
	@$(VENV)/python -m pytest -n $(or $(JOBS),6) --dist worksteal $(ARGS)

lint: env ## check style, types and workflows
	@$(VENV)/ruff check
	@$(VENV)/python -m mypy
	@$(VENV)/zizmor --offline --quiet --strict-collection --min-severity medium .github

bench: env ## measure, and print what was measured
	@$(VENV)/python -m bench $(ARGS)

site: ## make the documentation a site, which the server then shows below /docs; ARGS=FOLDER puts it elsewhere
	@$(PYTHON) .ci/docs_site.py $(if $(filter dist,$(MAKECMDGOALS)),,$(ARGS))

# The time of all files is that of the commit. An archive of a commit has no .git, and that time for its files.
dist: env site ## build the source distribution and, from it, the wheel; PURE_PYTHON=1 leaves the loop in C out
	@umask 022 && export SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$( \
		[ -e .git ] && git log -1 --format=%ct || $(VENV)/python -c 'import os; print(int(os.stat("setup.py").st_mtime))')} && \
	$(VENV)/uv build --quiet --offline --no-build-isolation --python $(VENV)/python --out-dir dist $(ARGS) && \
	for wheel in dist/*-linux_*.whl; do \
		[ ! -e "$$wheel" ] || { PATH=$(VENV):$$PATH auditwheel repair --wheel-dir dist "$$wheel" && rm "$$wheel"; } || \
			{ echo "the loop in C was not built: PURE_PYTHON=1 leaves it out" >&2; exit 1; }; \
	done

lock: ## write the lock files anew from pyproject.toml; ARGS=--upgrade moves to the newest
	@$(PYTHON) .ci/bootstrap.py lock $(ARGS)

clean: ## remove .venv, build and caches, and nothing else
	rm -rf .venv build dist stream_server/site *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f stream_server/hub/*.so
