"""The worst ERM: what is evidence, what is none, what the hinge does, and what a search reports."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import learners
from qstr_jax.learners import certificate, fits, fitting, span_of_inputs
from tests import helpers
from tests.test_fixed_sample import FFN, SIMPLE, TRANSFORMER, lane, make, params_of, run

RADIUS = 3.0
SETTINGS = {'batch_size': 8, 'risk': 'pointwise', 'fresh': 8, 'threshold': 0.05, 'level': 5.0}


def record(**changes):
    """The record of a fit that is evidence, with changes."""
    nothing = fits.no_records(1, ())
    numbers = {'train_risk': 1e-4, 'norm': RADIUS, 'fitted_radius': RADIUS, 'test_loss': 0.08, 'test_loss_se': 0.01}
    numbers = {name: np.float32(value) for name, value in (numbers | changes).items()}
    certified = {name: numbers.pop(name) for name in certificate.Certificate._fields if name in numbers}
    return nothing._replace(certificate=nothing.certificate._replace(**certified), **numbers)


LEARNER = learners.WorstERM(**SETTINGS)


def test_an_erm_of_the_ball_that_errs_is_evidence():
    assert LEARNER.is_evidence(record())
    assert not LEARNER.is_enough(record())


@pytest.mark.parametrize(
    'changes',
    [
        {'norm': RADIUS * 1.001},
        {'norm': np.nan},
        {'train_risk': 2e-3},
        {'train_risk': np.nan},
        {'test_loss': 0.049},
        {'test_loss': np.nan},
        {'test_loss_se': 0.02},  # 0.08 is not above 0.05 by two standard errors.
    ],
)
def test_without_any_one_part_of_the_certificate_there_is_no_evidence(changes):
    assert not LEARNER.is_evidence(record(**changes))


def test_the_hinge_is_that_of_the_network_that_coordinates_stand_for():
    problem = make(FFN, learners.WorstERM, SIMPLE, **SETTINGS, span='coordinates')
    a_lane = lane(problem, 5, radius=RADIUS, hinge=0.3)

    def hinges():
        data, _ = fits.init_lane(a_lane, problem)
        fit = fitting.start(data, a_lane, jnp.int32(5), problem)
        whole = span_of_inputs.expand(fit.params, fit.basis_RxV, 'coordinates')
        free = make(FFN, learners.WorstERM, SIMPLE, **SETTINGS)
        return [
            one.learner.added(params, fit, data, a_lane, one) for one, params in ((problem, fit.params), (free, whole))
        ]

    own, same = helpers.quick_jit(hinges)()
    assert own == same > 0


@dataclasses.dataclass(frozen=True)
class Unprojected(learners.WorstERM):
    """Claims a projection that does not project, as broken code would."""

    def project(self, params, radius):
        return params


def search(learner, tolerance, **numbers):
    problem = make(TRANSFORMER, learner, is_search=True, **SETTINGS, erm_tolerance=tolerance, min_samples=2)
    _, state_K, rows = run(problem, lane(problem, 0, radius=numbers.get('radius', RADIUS), hinge=0.1))
    return rows[0], problem.learner.report_curves(state_K, problem)[0]


@pytest.mark.slow
def test_a_search_reports_the_largest_n_with_evidence():
    """60 steps from the first parameters err at every n, so that with a loose tolerance each fit is evidence."""
    row, curve = search(learners.WorstERM, tolerance=100.0)
    assert curve['is_erm'].all()
    assert np.all(curve['norm'] <= RADIUS * (1 + 1e-5))
    assert row['outcome'] == 'censored'
    assert row['erring_samples'] == curve['samples'].max() == 16


@pytest.mark.slow
def test_fits_that_err_but_are_above_the_tolerance_are_no_evidence():
    row, curve = search(learners.WorstERM, tolerance=1e-6)
    assert np.all(curve['test_loss'] > 0.1)
    assert not curve['is_erm'].any()
    assert row['erring_samples'] == 0
    assert row['outcome'] == 'censored_below'


@pytest.mark.slow
def test_fits_that_err_but_are_outside_of_the_ball_are_no_evidence():
    row, curve = search(Unprojected, tolerance=100.0, radius=0.1)
    assert np.all(curve['distance'] == 0)  # So says the broken projection; the norm says otherwise.
    assert np.all(curve['norm'] > 0.1)
    assert np.all(curve['test_loss'] > 0.1)
    assert not curve['is_erm'].any()
    assert row['erring_samples'] == 0


@pytest.mark.slow
def test_without_the_hinge_it_is_constrained_erm_and_with_it_it_errs_more():
    params, losses = [], []
    for learner, hinge in ((learners.Constrained, 0.0), (learners.WorstERM, 0.0), (learners.WorstERM, 10.0)):
        settings = {name: value for name, value in SETTINGS.items() if name in learner.__dataclass_fields__}
        problem = make(TRANSFORMER, learner, **settings)
        _, state_K, rows = run(problem, lane(problem, 16, radius=RADIUS, hinge=hinge))
        params.append(params_of(state_K))
        losses.append(rows[0]['test_loss'])
    chex.assert_trees_all_close(params[0], params[1], rtol=1e-4, atol=1e-5)
    assert losses[2] > losses[1] + 0.1


@pytest.mark.slow
def test_the_hinge_is_zero_above_its_level_and_sees_no_training_prompt():
    problem = make(TRANSFORMER, learners.WorstERM, **{**SETTINGS, 'level': 1e-6})
    a_lane = lane(problem, 16, hinge=1.0)
    data, state = jax.jit(fits.init_lane, static_argnames='problem')(a_lane, problem=problem)
    assert problem.learner.added(state.fit.params, state.fit, data, a_lane, problem) == 0
    high = dataclasses.replace(problem.learner, level=5.0)
    pulls = high.added(state.fit.params, state.fit, data, a_lane, problem)
    assert 0 < pulls < 5
    blank = data._replace(train=jax.tree.map(jnp.zeros_like, data.train), held_out=())
    assert high.added(state.fit.params, state.fit, blank, a_lane, problem) == pulls
    later = state.fit._replace(step=state.fit.step + 1)
    assert high.added(state.fit.params, later, data, a_lane, problem) != pulls


def test_other_constraints_are_refused():
    with pytest.raises(ValueError, match=r'constraint=.*use l2'):
        learners.WorstERM(constraint='attention/qk_HxExE:operator:2')


def test_several_starts_are_refused():
    with pytest.raises(ValueError, match=r'starts=.*give one'):
        learners.WorstERM(starts=('init', 'init:1'))
