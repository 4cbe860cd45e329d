"""Tasks on real data of installed packages: nothing is downloaded, and nothing read before a prompt is drawn."""

from qstr_jax.tasks.data.flights import Flights
from qstr_jax.tasks.data.pointing_digits import PointingDigits
from qstr_jax.tasks.data.word_heads import WordHeads

__all__ = ['Flights', 'PointingDigits', 'WordHeads']
