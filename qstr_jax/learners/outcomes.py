"""How a lane can end. States hold the numbers, rows the names."""

from typing import Any

RUNNING, REACHED, CENSORED, DIVERGED, FITTED, CENSORED_BELOW, OUTRACED = range(7)
# 'reached': the test loss fell below the threshold. 'censored': the budget ran out first. 'censored_below': the
# smallest n of a search was already enough. 'diverged': a loss was not finite. 'fitted': a fit on n prompts, no search.
# 'outraced': the samples of `stop_after` were not enough, so that the lane was stopped before its budget.
OUTCOMES = ('running', 'reached', 'censored', 'diverged', 'fitted', 'censored_below', 'outraced')


def is_below(loss: Any, threshold: Any) -> Any:
    """Whether a loss is good enough: strictly below the threshold."""
    return loss < threshold
