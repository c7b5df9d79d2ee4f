# Token By Token. `make` lists the targets.
PYTHON ?= python3
PORT ?= 0
VENV := .venv
RUN := $(VENV)/bin/python -m harness
export NO_MKDOCS_2_WARNING := 1

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/stamp ## create .venv from the lock (every target that needs it does this)

$(VENV)/stamp: requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	touch $@

site: setup ## build the site into site/
	$(RUN) site

serve: site ## build the site and show it on http://127.0.0.1:8000
	$(VENV)/bin/python -m http.server 8000 --bind 127.0.0.1 --directory site

record: setup ## record an episode: EPISODE=00 [ENGINE=vllm] [TIER=cpu] [URL=http://host:port MODEL=name]
	@test -n "$(EPISODE)" || { echo "which episode? make record EPISODE=00" >&2; exit 2; }
	@$(RUN) record "$(EPISODE)" --port "$(PORT)" $(if $(ENGINE),--engine "$(ENGINE)") $(if $(TIER),--tier "$(TIER)") $(if $(URL),--url "$(URL)") $(if $(MODEL),--model "$(MODEL)")

calibrate: setup ## find what this client can measure on this machine, into data/calibration/
	$(RUN) calibrate

engines: setup ## list the engines and what is installed of them
	$(RUN) engines

models: setup ## make the models that the project makes itself, into .engines/models (the trained ones take long)
	$(RUN) models

doctor: setup ## say what this machine has and lacks
	$(RUN) doctor

test-tools: # what the tests need of the system: Chromium, and gcc for SGLang's stub
	@{ command -v chromium && command -v gcc; } >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core gcc libc6-dev >/dev/null; \
	  else \
	    echo "The tests need Chromium and gcc. Install them (Debian: sudo apt-get install chromium gcc) and run make test again." >&2; exit 1; \
	  fi; }

test: setup test-tools ## run every test but those that start real engines
	$(VENV)/bin/python -m pytest -m "not engines"

test-engines: setup ## the end-to-end tests on real vLLM, SGLang and Transformers
	$(VENV)/bin/python -m pytest -m engines -s

check: setup ## lint, types, declarations, recordings, prose
	$(VENV)/bin/ruff check harness tests episodes lessons
	$(VENV)/bin/ruff format --check harness tests episodes lessons
	$(VENV)/bin/mypy
	$(RUN) check

bench: setup ## measure the recorder and its peers against the emulator: README.md's table, data/peers
	$(VENV)/bin/python -m harness.scale
	$(VENV)/bin/python -m harness.bench --repeats 5 --readme README.md
	$(VENV)/bin/python -m harness.peers

lock: setup ## compile requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --extra dev --no-header --no-annotate pyproject.toml -o requirements.lock

clean: ## remove what can be built again; recordings and engines stay
	rm -rf site docs/episodes docs/lessons docs/reference docs/assets/data .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: help setup site serve record engines models doctor test-tools test test-engines check bench lock clean
