# Everything runs in a local environment (.venv) that the first target to need it makes.
PYTHON ?= python3
EXTRA ?= cpu
VENV ?= .venv
WORKDIR ?= results
CONFIGS := experiments/configs
RUN := $(VENV)/bin/python -m

.DEFAULT_GOAL := help
.PHONY: help install quickstart test lint figure1a figure1a-task-per-lane

help:  ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-24s %s\n", $$1, $$2}'
	@echo "  EXTRA=cuda or EXTRA=tpu installs the accelerator's jax; WORKDIR=DIR moves the results (default: results)"

$(VENV)/.installed-%: setup.py
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --editable '.[$*]'
	@touch $@

install: $(VENV)/.installed-$(EXTRA)  ## set up .venv

quickstart: install  ## three architectures, N = 2, 4, 6, 8, 3 seeds: a figure and a table in results/quickstart
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/quickstart.py --workdir=$(WORKDIR)/quickstart

test: install $(VENV)/.installed-test  ## lint, then the whole test suite
	$(RUN) ruff check qstr_jax experiments tests setup.py
	$(RUN) pytest -n 2

lint: $(VENV)/.installed-test  ## ruff alone
	$(RUN) ruff check qstr_jax experiments tests setup.py

figure1a: install  ## Figure 1a as published: 18 cells, 5 seeds (about an hour on two cores)
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure1a.py --workdir=$(WORKDIR)/figure1a

figure1a-task-per-lane: install  ## Figure 1a again, every lane with its own (u, ω)
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure1a.py --config.task_per_lane=True \
	  --workdir=$(WORKDIR)/figure1a_task_per_lane
