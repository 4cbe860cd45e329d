"""What is kept of a finished fit on a fixed sample."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from qstr_jax.learners import certificate


class Record(NamedTuple):
    """The columns of one finished fit. A `State` keeps them with a leading axis of fits."""

    n: jax.Array
    steps: jax.Array
    converged: jax.Array
    fitted_radius: jax.Array
    min_train_risk: jax.Array
    infeasible_radius: jax.Array
    winner: jax.Array
    highest_start_risk: jax.Array
    reference_train_risk: jax.Array
    reference_test_loss: jax.Array
    certificate: certificate.Certificate
    test_loss: jax.Array
    test_loss_se: jax.Array
    validation_loss: jax.Array
    validation_loss_se: jax.Array
    others: dict[str, jax.Array]


def no_records(num_fits: int, others: tuple[str, ...]) -> Record:
    """Room for the records of a lane, before its first fit has ended."""
    nan, zero = jnp.full((num_fits,), jnp.nan), jnp.zeros((num_fits,), jnp.int32)
    fields: dict[str, Any] = dict.fromkeys(Record._fields, nan)
    fields['n'] = fields['steps'] = fields['winner'] = zero
    fields['converged'] = jnp.zeros((num_fits,), bool)
    fields['certificate'] = certificate.Certificate(**dict.fromkeys(certificate.Certificate._fields, nan))
    fields['others'] = dict.fromkeys(others, nan)
    return Record(**fields)
