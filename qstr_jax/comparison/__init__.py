"""One architecture beside all others: a frozen suite of points, paired lanes, and a card.

suite      the points: tasks, N, thresholds, seeds, budgets
entries    rows of the suite as entries, and the committed ones that ship with the package
paired     which of two entries needs fewer samples, lane by lane
card       tables, sentences and a figure as html, png, md and json
run        runs the suite and writes the card
board      what is submitted, and how it is checked
"""

from qstr_jax.comparison.run import compare

__all__ = ['compare']
