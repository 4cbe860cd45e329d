"""Plugins: short files outside the package register things with settings of their own, which are first-class."""

import importlib
import sys

import pytest

from experiments import sample_complexity
from qstr_jax import analysis, columns, plots, sweeps
from qstr_jax.cli import base
from qstr_jax.settings import registry
from qstr_jax.storage import results
from tests import harness, helpers, small

CONVOLUTION = '''
from flax import linen as nn
from qstr_jax import models

class Convolution(nn.Module):
    channels: int
    kernel: int

    @nn.compact
    def __call__(self, z_NxE):
        for _ in range(3):
            z_NxE = nn.relu(nn.Conv(self.channels, (self.kernel,))(z_NxE))
        return nn.Dense(1)(z_NxE)[:, 0]

@models.register('convolution')
def convolution(task, channels: int = 64, kernel: int = 5):
    """Three layers of convolutions over the prompt."""
    return Convolution(channels, kernel)
'''
NEARBY = '''
import dataclasses
import jax.numpy as jnp
from qstr_jax import tasks

@tasks.register('nearby')
@dataclasses.dataclass(frozen=True)
class Nearby(tasks.QSTR):
    """Every position asks for tokens at most `reach` places after it.

    Attributes:
        reach: how far.
    """
    reach: int = 1

    def draw_indices(self, key, unit_RxQ):
        steps_NxQ = jnp.ceil(self.reach * unit_RxQ).astype(jnp.int32)
        return (jnp.arange(self.seq_len)[:, None] + steps_NxQ) % self.seq_len
'''
SOFT = '''
import jax.numpy as jnp
from qstr_jax.tasks import links

@links.register('soft')
def soft(sharpness: float = 1.0):
    """A smooth absolute value."""
    def draw(key, sparsity, token_dim):
        return {'u_D': links.unit_vectors(key, (token_dim,))}

    def label(params, x_QxD):
        return jnp.sum(jnp.log(jnp.cosh(sharpness * x_QxD @ params['u_D']))) / sharpness

    return links.Link('soft', draw, label)
'''
CIRCLE = '''
import jax.numpy as jnp
from qstr_jax.tasks import encoders

@encoders.register('circle')
def circle(key, task, turns: int = 1):
    """Positions on a circle, the same for all keys."""
    angle_N = 2 * jnp.pi * turns * jnp.arange(task.seq_len) / task.seq_len
    rest = jnp.zeros((task.seq_len, task.encoding_dim - 2))
    return jnp.concatenate([jnp.cos(angle_N)[:, None], jnp.sin(angle_N)[:, None], rest], axis=1)
'''
CLIPPED = '''
import dataclasses
import optax
from qstr_jax import learners

@learners.register('clipped')
@dataclasses.dataclass(frozen=True)
class Clipped(learners.Online):
    """Online training with clipped gradients.

    Attributes:
        clip: largest norm of the gradient.
    """
    clip: float = 1.0

    def transform(self, lane):
        return optax.chain(optax.clip_by_global_norm(self.clip), super().transform(lane))
'''
SHARE = '''
import jax
import jax.numpy as jnp
from qstr_jax.models import probes

@probes.register
def small_share(params, task_draw, problem, below: float = 0.1):
    """Share of the parameters whose size is below a bound."""
    leaves = [jnp.abs(leaf).ravel() for leaf in jax.tree.leaves(params)]
    return {'small_share': jnp.mean(jnp.concatenate(leaves) < below)}
'''
AVERAGE = '''
import jax.numpy as jnp
from flax import linen as nn
from qstr_jax import models

@models.mixers.register('average')
class Average(nn.Module):
    """A weighted mean of the tokens so far.

    Attributes:
        power: of a token's place, its weight.
    """
    power: float = 0.0

    @nn.compact
    def __call__(self, x_NxW):
        weight_Nx1 = jnp.arange(1, len(x_NxW) + 1)[:, None] ** self.power
        return jnp.cumsum(weight_Nx1 * x_NxW, axis=0) / jnp.cumsum(weight_Nx1)[:, None]

    def state_size(self, width, seq_len):
        return width
'''
NAMES = ('my_average', 'my_convolution', 'my_nearby', 'my_soft', 'my_circle', 'my_clipped', 'my_share')
SOURCES = dict(zip(NAMES, (AVERAGE, CONVOLUTION, NEARBY, SOFT, CIRCLE, CLIPPED, SHARE), strict=True))
BAD = {
    'my_raising': "raise RuntimeError('no table of weights')",
    'my_unfinished': 'def f(:',
    'my_exit': 'import sys\nsys.exit(3)',
    'my_none': "from qstr_jax import models\n@models.register('none')\ndef none(task):\n    return None",
    'my_wide': CONVOLUTION.replace('[:, 0]', '').replace("'convolution'", "'wide'"),
}
SMALL = {name: value for name, value in small.SMALL.items() if '.' not in name} | {'ffn': {'widths': (16, 16)}}
QUICKSTART = f'--config={helpers.ROOT}/experiments/exhibits/quickstart.py'
SHORT = ('seq_lens=3', 'num_seeds=1', 'token_dim=2', 'test_samples=40', 'max_samples=1280', 'threshold=9.0')
QUICK = tuple(f'--config.{setting}' for setting in SHORT)


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Plugins that this process can import, and forgets afterwards."""
    for name, source in (SOURCES | BAD).items():
        (tmp_path / f'{name}.py').write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    tables = registry._ENTRIES, columns._TABLE
    before = [dict(table) for table in tables]
    yield tmp_path
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)
    for name in SOURCES | BAD:
        sys.modules.pop(name, None)


def test_each_is_short():
    assert max(len(source.strip().splitlines()) for source in SOURCES.values()) <= 20


@pytest.mark.slow
def test_a_config_may_register_what_it_runs(tmp_path):
    config = 'from qstr_jax.cli import base\ndef get_config():\n    return base.get_config(models=("convolution",))\n'
    (tmp_path / 'mine.py').write_text(CONVOLUTION + config)
    done = harness.run_binary('sample_complexity', '--config=mine.py', '--dry_run', folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'convolution-qstr-N' in done.stdout


@pytest.mark.slow
def test_an_architecture_goes_from_the_command_line_to_heat_map_and_report(plugins):
    """Both settings are axes, columns by name, axes of the heat map, lines of a figure, and in the report."""
    workdir = plugins / 'results'
    done = harness.run_binary(
        'sample_complexity', QUICKSTART, f'--workdir={workdir}', '--config.plugins=my_convolution',
        '--config.models=convolution', '--config.convolution.channels=4,8',
        '--config.axes={"convolution.kernel": (1, 3)}',
        '--config.heatmap.x=convolution_channels', '--config.heatmap.y=convolution_kernel', *QUICK, folder=plugins,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '| convolution_kernel | convolution_channels | num_lanes |' in done.stdout
    assert (workdir / 'heatmap_convolution.png').stat().st_size > 5000
    done = harness.run_binary('report', f'--workdir={workdir}', f'--output={plugins / "report"}')
    assert done.returncode == 0, done.stderr
    page = (plugins / 'report/report.html').read_text()
    assert 'convolution channels' in page
    assert 'convolution kernel' in page
    rows = results.load(workdir)
    assert set(zip(rows['convolution_channels'], rows['convolution_kernel'], strict=True)) == {
        (4, 1), (4, 3), (8, 1), (8, 3),
    }  # fmt: skip
    assert analysis.curve_columns(rows, 'convolution_channels') == ['model', 'convolution_kernel']
    figure = plots.samples_against(rows, 'convolution_channels')
    assert figure.axes[0].get_xlabel() == 'convolution channels'
    assert plots.samples_heatmap(rows, 'convolution_channels', 'convolution_kernel')


@pytest.mark.slow
@pytest.mark.parametrize(
    ('plugin', 'changes', 'column', 'values', 'role'),
    [
        ('my_nearby', {'task': {'name': 'nearby', 'reach': (1, 2)}}, 'reach', {1, 2}, 'task'),
        ('my_soft', {'link': 'soft', 'soft': {'sharpness': (1.0, 3.0)}}, 'soft_sharpness', {1.0, 3.0}, 'task'),
        ('my_circle', {'encoding': 'circle', 'circle': {'turns': (1, 2)}}, 'circle_turns', {1, 2}, 'task'),
        ('my_clipped', {'learners': ('clipped',), 'clipped': {'clip': (0.1, 1.0)}}, 'clip', {0.1, 1.0}, 'learner'),
    ],
)
def test_settings_of_other_kinds_are_axes_and_columns(plugins, plugin, changes, column, values, role):
    config = base.get_config((plugin,))
    config.update({**SMALL, 'models': ('ffn',), 'test_task': changes.get('task', {}).get('name'), **changes})
    rows = sweeps.run(base.to_sweep(config), plugins / 'results', small.quiet())
    assert set(rows[column]) == values
    assert columns.get(column).role == role
    assert rows['cell'].nunique() == 2
    assert rows.groupby(column)['train_loss'].mean().nunique() == 2
    assert plots.samples_against(rows, column).axes[0].get_xlabel() == columns.label(column)
    assert plots.samples_heatmap(rows, column, 'seed' if role == 'lane' else 'seq_len')


def test_a_link_and_an_encoding_that_are_a_tasks_own_default_have_their_settings(plugins):
    source = (
        SOFT
        + CIRCLE
        + """
import dataclasses
from qstr_jax import tasks

@tasks.register('mine')
@dataclasses.dataclass(frozen=True)
class Mine(tasks.QSTR):
    link: str | links.Link = 'soft'
    encoding: str | encoders.Encoder = 'circle'
"""
    )
    (plugins / 'my_soft.py').write_text(source)
    config = base.get_config(('my_soft',))
    config.update({**SMALL, 'models': ('ffn',), 'task': {'name': 'mine'}, 'test_task': 'mine'})
    config.soft.sharpness, config.circle.turns = (1.0, 3.0), 2
    cells = sweeps.cells_of(base.to_sweep(config))
    assert [dict(cell.columns)['soft_sharpness'] for cell in cells] == [1.0, 3.0]
    assert [dict(cell.columns)['circle_turns'] for cell in cells] == [2, 2]


@pytest.mark.slow
def test_a_probe_has_a_setting(plugins):
    config = base.get_config(('my_share',))
    config.update({**SMALL, 'models': ('ffn',), 'probes': ('small_share',)})
    shares = []
    for below in (0.1, 100.0):
        config.small_share.below = below
        shares.append(sweeps.run(base.to_sweep(config), plugins / f'{below}', small.quiet())['small_share'].mean())
    assert 0 < shares[0] < shares[1] == pytest.approx(1)


@pytest.mark.parametrize(
    ('plugin', 'arguments', 'words'),
    [
        ('my_convolution', ['--config.convolution.kernal=3'], ['kernal', 'Did you mean "kernel"']),
        ('my_convolution', ['--config.models=convolutoin'], ["did you mean 'convolution'?"]),
        ('my_convolution', ['--config.convolution.kernel=wide'], ["kernel='wide'", 'an integer']),
        ('my_convolution', ['--config.rnn.widht=3'], ['widht', 'Did you mean "width"']),
        (
            'my_convolution',
            ['--config.axes={"convolution.kernl": (3, 5)}'],
            ['kernl', 'did you mean convolution.kernel?'],
        ),
        ('my_convolution', ['--config.rnn.width=1.5'], ['rnn.width=1.5', 'an integer']),
        ('my_raising', [], ["plugins='my_raising': RuntimeError: no table of weights"]),
        ('my_unfinished', [], ["plugins='my_unfinished': SyntaxError"]),
        ('my_exit', [], ["plugins='my_exit': SystemExit: 3"]),
        ('my_missing', [], ["plugins='my_missing': ModuleNotFoundError: No module named 'my_missing'"]),
        ('my_none', ['--config.models=none'], ["models='none'", 'must return a flax.linen Module, not None']),
    ],
)
@pytest.mark.usefixtures('_as_before')
def test_what_is_wrong_is_one_line_that_names_the_nearest_right_name(plugins, plugin, arguments, words):
    plugin, workdir = f'--config.plugins={plugin}', f'--workdir={plugins / "results"}'
    code = helpers.end_of(sample_complexity, QUICKSTART, plugin, workdir, '--dry_run', *QUICK, *arguments)
    helpers.assert_one_line(code, *words)


def test_a_model_of_another_shape_is_the_last_line_of_a_process_and_leaves_no_rows(plugins):
    done = harness.run_binary(
        'sample_complexity', QUICKSTART, '--config.plugins=my_wide', f'--workdir={plugins / "results"}', *QUICK,
        '--config.models=wide', folder=plugins,
    )  # fmt: skip
    helpers.assert_one_error(done, "models='wide'", 'must predict floats of shape (3,)', '(3, 1)')
    assert not list(plugins.glob('results/rows/*'))


def test_describe_lists_a_plugin_like_everything_else(plugins):
    done = harness.run_binary('sample_complexity', '--config.plugins=my_nearby', '--describe=nearby', folder=plugins)
    assert done.returncode == 0, done.stderr
    assert 'nearby.reach = 1' in done.stdout
    assert 'how far.' in done.stdout
    assert 'nearby.seq_len = 8' in done.stdout


@pytest.mark.slow
def test_a_mixer_is_an_architecture_and_part_of_a_pattern(plugins):
    config = base.get_config(('my_average',))
    config.update(
        {**SMALL, 'models': ('average', 'backbone'), 'backbone': {'mixers': ('average:power=1.0', 'min_gru')}}
    )
    config.average.power = (0.0, 1.0)
    rows = sweeps.run(base.to_sweep(config), plugins / 'results', small.quiet())
    assert set(rows['average_power'].dropna()) == {0.0, 1.0}
    assert rows.groupby('cell')['train_loss'].mean().nunique() == rows['cell'].nunique() == 3
