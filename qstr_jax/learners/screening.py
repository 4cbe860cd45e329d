"""Screening: skipping the test evaluations that cannot show that the threshold was crossed.

At every check the model is tried on a subset of the test prompts. Let e_i be its error on prompt i now, and a_i its
error at the last full evaluation (the anchor), whose loss A over all test prompts is known. Then

    A + mean_i (e_i − a_i) ± z · sd_i(e_i − a_i)/√m

brackets the present test loss tightly, since both errors are taken on the same prompts. The whole test set is
evaluated only when the lower end is below the threshold, which also sets a new anchor. Before the first evaluation
a_i = A = 0, and the bracket is the usual one for a mean.

A second, larger subset that decides before the full evaluation does not pay. On Figure 3's FFN at q = 1, whose loss
stays near its threshold (five lanes, 1,807 checks), 2,000 prompts bring 283 full evaluations down to 143, or to 108
with the correction for a finite test set; but the anchor is then older, so that the second subset is asked for 539 to
660 times, and more prompts are evaluated than without it. If the second subset renews the anchor too, a tenth of the
prompts is saved, and since `lanes.over_chosen` tests each due lane by itself, tests take a tenth of the time anyway.

The training loss would be free, but it cannot replace the subset: as published, test prompts follow another
distribution than training prompts, and at N = 12 an FFN's training loss is 0.83 when its test loss is 0.70.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

# Largest subset of the test prompts: a tenth of the published test set.
MAX_SUBSET = 500

# Half width of the bracket in standard errors: with 4, a check exactly at the threshold is missed once in about 30,000.
NUM_SE = 4.0


class Screen(NamedTuple):
    """The anchor of one lane.

    Attributes:
        anchor_loss: test loss of the last full evaluation.
        anchor_errors_T: errors on the subset at that evaluation, (m,).
    """

    anchor_loss: jax.Array
    anchor_errors_T: jax.Array


def subset_size(test_samples: int) -> int:
    """The size m of the subset: an eighth of the test prompts, at most `MAX_SUBSET`."""
    return max(1, min(MAX_SUBSET, test_samples // 8))


def start(test_samples: int) -> Screen:
    """The anchor before any evaluation: zeros."""
    return Screen(anchor_loss=jnp.float32(0), anchor_errors_T=jnp.zeros(subset_size(test_samples)))


def estimate(screen: Screen, errors_T: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The test loss as estimated from the subset, and its standard error."""
    difference_T = errors_T - screen.anchor_errors_T
    return (
        screen.anchor_loss + jnp.mean(difference_T),
        jnp.std(difference_T) / jnp.sqrt(jnp.float32(errors_T.size)),
    )


def is_due(loss: jax.Array, standard_error: jax.Array, threshold: Any) -> jax.Array:
    """Whether a full evaluation might find the test loss below the threshold; also True where the estimate is NaN."""
    return ~(loss - NUM_SE * standard_error >= threshold)


def update(screen: Screen, errors_T: jax.Array, test_loss: jax.Array, is_due: jax.Array) -> Screen:
    """The anchor after a check: a new one where a full evaluation was due."""
    anchor = Screen(anchor_loss=test_loss, anchor_errors_T=errors_T)
    return jax.tree.map(lambda new, old: jnp.where(is_due, new, old), anchor, screen)
