# The verbs of guardwave. Each works in a fresh clone: the first one that needs Python makes .venv.
#
#   GUARDWAVE_PORT, GUARDWAVE_DATA ...  move `demo` and `serve`
#   PYTHON=python3.12                   chooses the interpreter
#   ARGS='-k rollback -x'               is passed on by `test`
.DEFAULT_GOAL := help
.PHONY: help demo serve test check fix bench mutants release

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

help: ## say what each verb does
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

# `exec` puts guardwave in the recipe's place, so that Ctrl-C reaches it and nothing stays behind.
demo: $(VENV)/server ## run the whole loop on this machine: store, web, worker and a simulated fleet
	@exec $(BIN)/guardwave demo

serve: $(VENV)/server ## run the web server and the worker
	@exec $(BIN)/guardwave serve

test: $(VENV)/dev ## run every test (CI=true: a missing browser or Redis 7 fails instead of skipping)
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

check: $(VENV)/dev ## lint, format, types, import directions, dead code; changes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.ci $(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python .ci/dead_code.py

fix: $(VENV)/dev ## format the code and apply the safe lint fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev ## measure: every benchmarks/*.py in turn
	@found=0; for script in benchmarks/*.py; do \
	  [ -e "$$script" ] || continue; \
	  found=1; echo "== $$script"; $(BIN)/python "$$script" || exit 1; \
	done; [ $$found = 1 ] || echo "no benchmarks yet"

release: $(VENV)/dev ## build sdist and wheel in dist/, and run the demo from the wheel in an empty venv
	.ci/release

mutants: $(VENV)/mutation ## change the guards in small ways and list what no test noticed
	$(BIN)/mutmut run > mutants.log 2>&1 || { tail -n 20 mutants.log; exit 1; }
	@$(BIN)/mutmut results

# The stamps: an install that was broken off leaves none, and a second call has nothing to do.
$(VENV)/server: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing guardwave (once) ..."
	@$(PIP_INSTALL) --editable '.[server]'
	@touch $@

$(VENV)/dev: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing guardwave and its development tools (once) ..."
	@$(PIP_INSTALL) --editable '.[dev]'
	@touch $(VENV)/server $@

$(VENV)/mutation: $(VENV)/dev
	@$(PIP_INSTALL) --editable '.[mutation]'
	@touch $@

# Asked by running it: a name on PATH may be a launcher for a version that is not installed.
USABLE := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))

$(BIN)/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	  "$$python" -c '$(USABLE)' 2>/dev/null || continue; \
	  if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "$$python has no venv module; on Debian or Ubuntu: apt-get install python3-venv" >&2; \
	    exit 1; \
	  fi; \
	  exec "$$python" -m venv --clear $(VENV); \
	done; \
	echo "no Python 3.11, 3.12 or 3.13 found; on Debian or Ubuntu: apt-get install python3 python3-venv," >&2; \
	echo "or name one: make PYTHON=/path/to/python3.11 <verb>" >&2; \
	exit 1
