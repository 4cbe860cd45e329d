# Everything runs in a local environment (.venv) that the first target to need it makes.
PYTHON ?= python3
EXTRA ?= cpu
VENV ?= .venv
WORKDIR ?= results
RUN := $(VENV)/bin/python -m

.DEFAULT_GOAL := help
.PHONY: help install quickstart test suite test-quick lint theorems table1 gallery report docs notebooks benchmark accelerators

help:  ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-24s %s\n", $$1, $$2}'
	@echo "Exhibits, each run and drawn by make NAME:"
	@for file in experiments/exhibits/[a-z]*.py; do \
	  printf '  make %-24s %s\n' $$(basename $$file .py | tr _ -) "$$(head -1 $$file | tr -d '"')"; done
	@echo "  EXTRA=cuda or EXTRA=tpu installs the accelerator's jax; WORKDIR=DIR moves the results (default: results)"

$(VENV)/.installed-%: pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --editable '.[$*]'
	@touch $@

install: $(VENV)/.installed-$(EXTRA)  ## set up .venv

quickstart: install  ## three architectures, N = 2, 4, 6, 8, 3 seeds: a figure and a table in results/quickstart
	$(RUN) experiments.exhibit quickstart --workdir=$(WORKDIR)

test: install $(VENV)/.installed-test  ## the whole test suite, lint beside it
	$(MAKE) --no-print-directory -j 2 lint suite

# Three workers, also on two cores, since many tests wait for processes: they take 15 minutes.
suite: install $(VENV)/.installed-test  ## the whole test suite, without lint
	$(RUN) pytest -n 3 --dist loadfile --no-loadscope-reorder

test-quick: install $(VENV)/.installed-test  ## the suite without its slow tests
	$(RUN) pytest -n 3 --dist loadfile --no-loadscope-reorder -m 'not slow'

lint: install $(VENV)/.installed-test  ## ruff and mypy, without the tests
	$(RUN) ruff check qstr_jax experiments examples tests docs setup.py
	$(RUN) ruff format --check qstr_jax experiments examples tests docs setup.py
	$(RUN) mypy

theorems: install  ## all cards of theorems (hours of a core)
	$(RUN) experiments.exhibit $(notdir $(basename $(wildcard experiments/exhibits/card_*.py))) --workdir=$(WORKDIR)

# Every other name is an exhibit, a file of experiments/exhibits, or one of its results directories.
.DEFAULT:
	$(MAKE) --no-print-directory install
	$(RUN) experiments.exhibit $(subst -,_,$(patsubst %-all,%,$@)) --workdir=$(WORKDIR)

table1: install  ## Table 1 measured, from the committed results
	$(RUN) experiments.table1 --workdir=experiments/results --output=experiments/results/table1

gallery: table1 $(VENV)/.installed-data  ## docs/gallery.md with Table 1, and the README's numbers, from the committed results
	$(RUN) experiments.gallery

report: install  ## one HTML page to explore, and LaTeX fragments, from the committed results
	$(RUN) experiments.report --latex --workdir=experiments/results --output=$(WORKDIR)/report

benchmark: install $(VENV)/.installed-benchmark  ## ours beside PyTorch (needs a quiet machine)
	$(RUN) experiments.benchmark --json=$(WORKDIR)/benchmark/benchmark.json

docs: install $(VENV)/.installed-docs $(VENV)/.installed-data  ## the documentation into site/, strict and offline, all links checked
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict --quiet
	$(RUN) experiments.site --output=site

notebooks: install $(VENV)/.installed-notebooks  ## run the notebooks and keep their outputs in the files
	$(RUN) experiments.notebooks

accelerators:  ## compile the published programs for TPUs and GPUs that are not there (hours; continues where it stopped)
	for kind in tpu gpu; do \
	  $(MAKE) install VENV=$(VENV)-$$kind-compile EXTRA=$$kind-compile && \
	  $(VENV)-$$kind-compile/bin/python -m experiments.accelerators || exit 1; \
	done
