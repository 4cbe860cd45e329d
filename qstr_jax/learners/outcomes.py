"""How a lane can end. States hold the numbers, rows the names."""

RUNNING, REACHED, CENSORED, DIVERGED, FITTED, CENSORED_BELOW = range(6)
# 'reached': its test loss fell below the threshold. 'censored': its budget ran out first. 'censored_below': the
# smallest n of a search was enough. 'diverged': a loss was not finite. 'fitted': a fit on n prompts, without a search.
OUTCOMES = ('running', 'reached', 'censored', 'diverged', 'fitted', 'censored_below')
