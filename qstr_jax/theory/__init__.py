"""The theorems as code: constructions, floors, rates and what to measure. Nothing below imports this package.

constructions: the Transformers of the proofs.      recurrences: the RNNs that retrieve and that store.
interpolation: the RNN that memorises.              floors: lower bounds and the oracles that attain them.
rates: the theorems as curves.                      covering: Proposition 17 and Corollary 31.
measures: what the proofs speak about, on trained weights.
cards: one per statement, with measured points and a verdict; `experiments/theorems.py` draws them.

README.md beside this file maps the paper's statements to functions, tests and cards.
"""
