# Everything runs in a local environment (.venv) that the first target to need it makes.
PYTHON ?= python3
EXTRA ?= cpu
VENV ?= .venv
WORKDIR ?= results
CONFIGS := experiments/configs
RUN := $(VENV)/bin/python -m

.DEFAULT_GOAL := help
.PHONY: help install quickstart test suite test-quick lint figure1a figure1a-task-per-lane theorems learning-curves n-star n-star-models n-star-erm n-star-models-erm theorem6 figure1b figure1b-all figure2 figure2-all figure3 heads embedding \
  larger-n figure1a-tuned figure1b-tuned figure3-tuned larger-n-tuned accuracy sensitivity sensitivity-rnn encodings table1 gallery report docs notebooks benchmark accelerators

help:  ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-24s %s\n", $$1, $$2}'
	@echo "  EXTRA=cuda or EXTRA=tpu installs the accelerator's jax; WORKDIR=DIR moves the results (default: results)"

$(VENV)/.installed-%: pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --editable '.[$*]'
	@touch $@

install: $(VENV)/.installed-$(EXTRA)  ## set up .venv

quickstart: install  ## three architectures, N = 2, 4, 6, 8, 3 seeds: a figure and a table in results/quickstart
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/quickstart.py --workdir=$(WORKDIR)/quickstart

test: install $(VENV)/.installed-test  ## the whole test suite, lint beside it
	$(MAKE) --no-print-directory -j 2 lint suite

suite: install $(VENV)/.installed-test  ## the whole test suite, without lint
	$(RUN) pytest -n 2 --dist loadfile --no-loadscope-reorder

test-quick: install $(VENV)/.installed-test  ## the suite without its slow tests
	$(RUN) pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not slow'

lint: install $(VENV)/.installed-test  ## ruff and mypy, without the tests
	$(RUN) ruff check qstr_jax experiments tests docs setup.py
	$(RUN) ruff format --check qstr_jax experiments tests docs setup.py
	$(RUN) mypy

figure1a: install  ## Figure 1a as published: 18 cells, 5 seeds (about an hour on two cores)
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure1a.py --workdir=$(WORKDIR)/figure1a

figure1a-task-per-lane: install  ## Figure 1a again, every lane with its own (u, ω)
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure1a.py --config.task_per_lane=True \
	  --config.title='1STR: samples to test MSE {threshold}, (u, ω) drawn per lane' --workdir=$(WORKDIR)/figure1a_task_per_lane

learning-curves: install  ## test loss against n on a fixed sample, all models beside the baselines
	$(RUN) experiments.learning_curves --config=$(CONFIGS)/learning_curves.py --workdir=$(WORKDIR)/learning_curves

n-star: install  ## n* of constrained ERM against N, by the averaged and the point-wise risk (Theorem 4)
	$(RUN) experiments.learning_curves --config=$(CONFIGS)/n_star.py --workdir=$(WORKDIR)/n_star
	$(RUN) experiments.learning_curves --config=$(CONFIGS)/n_star.py --config.risk=pointwise --config.batch_size=64 \
	  --config.max_steps=3000 --config.check_every=500 --config.title='1STR: n* of constrained ERM, point-wise risk' \
	  --workdir=$(WORKDIR)/n_star_pointwise

n-star-models: install  ## n* of Transformer, RNN and FFN at d = 2 on simple-1STR and 1STR
	$(RUN) experiments.learning_curves --config=$(CONFIGS)/n_star_models.py --workdir=$(WORKDIR)/n_star_models_simple
	$(RUN) experiments.learning_curves --config=$(CONFIGS)/n_star_models.py --config.task.name=qstr --config.test_task=qstr \
	  --config.title='1STR, d = 2: n* of AdamW on n prompts' --workdir=$(WORKDIR)/n_star_models_qstr

n-star-erm: install  ## n* of constrained ERM of several starts, beside what the ball fits of random labels (Theorem 4)
	for part in log log_labels wide wide_labels; do \
	  $(RUN) experiments.n_star_erm --config=$(CONFIGS)/n_star_erm.py:$$part --workdir=$(WORKDIR)/n_star_erm || exit 1; \
	done

n-star-models-erm: install  ## n* of all architectures at a matched protocol: two starts each, tuned learning rate
	for model in transformer ffn rnn; do \
	  $(RUN) experiments.learning_curves --config=$(CONFIGS)/n_star_models_erm.py:$$model \
	    --workdir=$(WORKDIR)/n_star_models_erm_simple || exit 1; \
	  $(RUN) experiments.learning_curves --config=$(CONFIGS)/n_star_models_erm.py:$$model --config.task.name=qstr \
	    --config.test_task=qstr --workdir=$(WORKDIR)/n_star_models_erm_qstr || exit 1; \
	done

theorem6: install  ## FFNs at stationary points and of least norm above the floor 1 − n/(Nd)
	$(RUN) experiments.learning_curves --config=$(CONFIGS)/theorem6.py --config.models=transformer \
	  --config.learners=stationary --workdir=$(WORKDIR)/theorem6
	$(RUN) experiments.learning_curves --config=$(CONFIGS)/theorem6.py --workdir=$(WORKDIR)/theorem6
	$(RUN) experiments.learning_curves --config=$(CONFIGS)/theorem6.py --config.learners=stationary \
	  --config.models=ffn,theorem6_oracle --config.span=started --config.optimizer=sgd --config.learning_rate=0.03 \
	  --config.seq_lens=5 --workdir=$(WORKDIR)/theorem6_started
	$(RUN) experiments.learning_curves --config=$(CONFIGS)/theorem6_control.py --workdir=$(WORKDIR)/theorem6_control

theorems: install  ## a card per theorem: measured points, its line, a verdict (45 minutes of a core)
	$(RUN) experiments.theorems --config=$(CONFIGS)/theorems.py --workdir=$(WORKDIR)/theorems

figure1b: install  ## Figure 1b, the Transformer, every lane with its own (u, ω) (4 minutes)
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure1b.py --config.task_per_lane=True \
	  --config.models=transformer --workdir=$(WORKDIR)/figure1b

figure1b-all: install  ## the same with FFN (6 minutes) and RNN (hours; over one for --config.num_seeds=1)
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure1b.py --config.task_per_lane=True \
	  --workdir=$(WORKDIR)/figure1b

figure2: install  ## Figure 2: trained attention beside the construction, q = 1, separate W_Q and W_K (4 minutes)
	$(RUN) experiments.attention_weights --config=$(CONFIGS)/attention_weights.py --config.sparsity=1 \
	  --config.transformer.attention=separate --workdir=$(WORKDIR)/figure2

figure2-all: install  ## the same for q = 1, 2, 3, separate and merged (three hours of one core)
	$(RUN) experiments.attention_weights --config=$(CONFIGS)/attention_weights.py --workdir=$(WORKDIR)/figure2

figure3: install  ## Figure 3: samples against q on hermite2, Transformer and FFN, 5 lanes
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure3.py --config.models=transformer,ffn \
	  --workdir=$(WORKDIR)/figure3

heads: install  ## test loss against samples for H = 1, …, 2q heads
	$(RUN) experiments.heads --config=$(CONFIGS)/heads.py --workdir=$(WORKDIR)/heads

embedding: install  ## the same for one head and larger embeddings (5 minutes)
	$(RUN) experiments.heads --config=$(CONFIGS)/embedding.py --workdir=$(WORKDIR)/embedding

larger-n: install  ## the Transformer at N = 4, 8, 16, 64, 256, 1024 by the point-wise risk (51 minutes of a core)
	$(RUN) experiments.larger_n --config=$(CONFIGS)/larger_n.py --workdir=$(WORKDIR)/larger_n

figure1a-tuned: install  ## Figure 1a at each architecture's best learning rate, chosen on other seeds
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure1a_tuned.py --workdir=$(WORKDIR)/figure1a_tuned

figure1b-tuned: install  ## Figure 1b at each architecture's best learning rate
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure1b_tuned.py --workdir=$(WORKDIR)/figure1b_tuned

figure3-tuned: install  ## Figure 3 at the best learning rate, to a loss that asks for retrieval
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/figure3_tuned.py --workdir=$(WORKDIR)/figure3_tuned

larger-n-tuned: install  ## larger N at the best learning rate, the Transformer
	$(RUN) experiments.larger_n --config=$(CONFIGS)/larger_n_tuned.py --workdir=$(WORKDIR)/larger_n_tuned

accuracy: install  ## samples against the test loss that is asked for, from one run
	$(RUN) experiments.sample_complexity --config=$(CONFIGS)/accuracy.py --workdir=$(WORKDIR)/accuracy

sensitivity: install  ## samples over learning rate, weight decay and width, Transformer and FFN: heat maps (6 minutes)
	$(RUN) experiments.sensitivity --config=$(CONFIGS)/sensitivity.py:transformer --workdir=$(WORKDIR)/sensitivity_transformer
	$(RUN) experiments.sensitivity --config=$(CONFIGS)/sensitivity.py:ffn --workdir=$(WORKDIR)/sensitivity_ffn

sensitivity-rnn: install  ## the same for the RNN, one lane a point (two hours and more of a core)
	$(RUN) experiments.sensitivity --config=$(CONFIGS)/sensitivity.py:rnn \
	  --config.num_seeds=1 --workdir=$(WORKDIR)/sensitivity_rnn

encodings: install  ## samples over d_e and the scale of the encodings: a heat map
	$(RUN) experiments.sensitivity --config=$(CONFIGS)/encodings.py --workdir=$(WORKDIR)/encodings

table1: install  ## Table 1 measured, from the committed results
	$(RUN) experiments.table1 --workdir=experiments/results --output=experiments/results/table1

gallery: install  ## docs/gallery.md with Table 1, and the README's numbers, from the committed results
	$(RUN) experiments.gallery

report: install  ## one HTML page to explore, and LaTeX fragments, from the committed results
	$(RUN) experiments.report --latex --workdir=experiments/results --output=$(WORKDIR)/report

benchmark: install $(VENV)/.installed-benchmark  ## ours beside PyTorch, every section (needs a quiet machine)
	$(RUN) experiments.benchmark --json=$(WORKDIR)/benchmark/benchmark.json

docs: install $(VENV)/.installed-docs  ## the documentation into site/, strict and offline, all links checked
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict --quiet
	$(RUN) experiments.site --output=site

notebooks: install $(VENV)/.installed-notebooks  ## run the notebooks and keep their outputs in the files
	$(RUN) experiments.notebooks

accelerators:  ## compile the published programs for TPUs and GPUs that are not there (hours; continues where it stopped)
	for kind in tpu gpu; do \
	  $(MAKE) install VENV=$(VENV)-$$kind-compile EXTRA=$$kind-compile && \
	  $(VENV)-$$kind-compile/bin/python -m experiments.accelerators || exit 1; \
	done
