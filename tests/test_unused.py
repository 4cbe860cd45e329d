"""Settings of links and encodings that a user's task does not use are neither recorded nor taken."""

import dataclasses

import jax.numpy as jnp
import pytest

from qstr_jax import sweeps, tasks
from tests import small

ENCODING = {'encoding', 'encoding_scale', 'max_coherence', 'distinct_encodings'}
WIDTH = {'encoding_dim', 'encoding_factor'}


@dataclasses.dataclass(frozen=True)
class Same(tasks.QSTR):
    """Nothing of its own."""


@dataclasses.dataclass(frozen=True)
class Signs(tasks.QSTR):
    """No link."""

    def labels(self, x_NxD, t_NxQ, link_params):
        return jnp.sign(x_NxD[t_NxQ[:, 0], 0])


@dataclasses.dataclass(frozen=True)
class Padded(tasks.QSTR):
    """No encodings, in tokens of the same width."""

    def encode(self, prompt, task_draw):
        return jnp.pad(prompt.x_NxD, ((0, 0), (0, self.embedding_dim - self.token_dim)))


@dataclasses.dataclass(frozen=True)
class Bare(Signs):
    """Neither."""

    @property
    def embedding_dim(self):
        return self.token_dim

    def encode(self, prompt, task_draw):
        return prompt.x_NxD


@dataclasses.dataclass(frozen=True)
class Direction(tasks.QSTR):
    """The link's parameters alone."""

    def labels(self, x_NxD, t_NxQ, link_params):
        return x_NxD[t_NxQ[:, 0]] @ link_params['u_V']


def cells_of(kind, **changes):
    tasks.register('mine')(kind)
    return sweeps.cells_of(small.settings(models='ffn', task='mine', **changes))


@pytest.mark.usefixtures('own_entries')
@pytest.mark.parametrize(
    ('kind', 'left_out'),
    [(Same, set()), (Signs, {'link'}), (Padded, ENCODING), (Bare, {'link'} | ENCODING | WIDTH), (Direction, set())],
)
def test_what_no_prompt_depends_on_is_no_column(kind, left_out):
    (cell,) = cells_of(kind)
    assert {'link', *ENCODING, *WIDTH} - set(dict(cell.columns)) == left_out


@pytest.mark.usefixtures('own_entries')
def test_and_cannot_be_set():
    with pytest.raises(ValueError, match="link='norm2': would be ignored by task mine with these settings"):
        cells_of(Signs, link='norm2')
    assert len(cells_of(Signs, encoding_scale=('unscaled', 'scaled'))) == 2


@pytest.mark.usefixtures('own_entries')
def test_unless_the_test_task_depends_on_it():
    (cell,) = cells_of(Signs, link='norm2', test_task='qstr')
    assert dict(cell.columns)['link'] == 'norm2'
