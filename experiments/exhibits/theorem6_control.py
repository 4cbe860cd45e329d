"""Theorem 6's control: a Transformer on 1STR, N = 64, below the floor 1 − n/(Nd) that holds for FFNs.

The learner of `n_star` at three given n, beside Theorem 6's oracle.
"""

from experiments.exhibits import n_star

ORDER = 210
IS_SUPPORTING = True
QUESTION = 'Does another architecture get below the floor of FFNs?'
LIMITS = """
That it is below at every n; at 1/2 not every lane is. It is one width and one norm ball, and the FFN is not run.
"""
FIGURES = {'theorem6_control/floor.png': 'Test loss of a Transformer below the floor that holds for FFNs'}


def get_config():
    """The learner of `n_star.py` at three given n, beside Theorem 6's oracle."""
    config = n_star.get_config()
    config.update(models=('transformer', 'theorem6_oracle'), probes=('theorem6_floor',), seq_lens=(64,))
    config.update(num_samples=(0.25, 0.5, 0.75), samples_unit='Nd', radius=(1.0,))
    # A search has these; here n is given.
    config.min_samples = config.max_samples = config.resolution = None
    config.title = '{task}, N = {seq_len}, d = {token_dim}: a Transformer below the floor of FFNs'
    return config


def reduced():
    """The same in seconds, for the tests."""
    config = n_star.reduced()
    config.update(models=('transformer', 'theorem6_oracle'), probes=('theorem6_floor',), seq_lens=(3,))
    config.update(num_samples=(0.5, 1.0), samples_unit='Nd', min_samples=None, max_samples=None, resolution=None)
    return config


def text(rows):
    quarter, half, most = (rows('theorem6_control', model='transformer', num_samples=n) for n in (160, 320, 480))
    return f"""
It does: at n/(Nd) = 3/4, where FFNs of the theorem err by at least 1/4 on average over u, the Transformer
errs by {most.mean('test_loss')}. At 1/4 it does not, with {quarter.mean('test_loss')}, and at 1/2, where the floor is
0.5, not every lane does: they err by {half.smallest('test_loss')} to {half.largest('test_loss')}.

{most.lanes()} lanes with a task each;
{rows('theorem6_control').time()} in all.
"""
