"""The theorems as code: constructions, floors, rates and what to measure. Nothing else in the package imports it.

constructions: the Transformers of the proofs.   recurrences: the RNNs that retrieve and that store tokens.
interpolation: the RNN that memorises.           networks, gates: what these networks share.
floors: lower bounds, and oracles that attain them.
rates: samples that the theorems ask for.        rnn_sizes: widths and norms that they ask of RNNs.
bounds: covering numbers, Rademacher complexities, tails of tokens.
measures, sensitivity: quantities of the proofs on trained weights.
portraits: a trained W_QK beside the construction.
twisted_teacher, capacity, memory_lines: what else fits a training set, as lines beside n*.
draws: tasks and prompts in float64.                heads: losses of best readers of H heads.
table_readout: FFNs near Theorem 6's floor.         sparse_task, domain: what formulas need of tasks, arguments.
Plugins: oracles, construction_norm, construction_start, capacity, altered, partly_given, unasked, network_probes.

README.md beside this file maps the paper's statements to functions, tests and cards.
"""
