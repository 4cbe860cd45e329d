"""Random streams: what a key depends on, what it does not, and the first prompts that they give."""

import dataclasses
import hashlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from qstr_jax import tasks
from qstr_jax.tasks import streams

TASK = tasks.build('qstr')

# Digests of example 0 of the stream 'train' with seed 0, see `digests`. They never change: they are what
# published rows were computed from.
FIRST_PROMPTS = {
    'qstr': ('91ca0f2c19840bf5', '305ff59f3e94dbaa', '5ad756e8d5b783f3'),
    'simple_qstr': ('b398505844456334', '888befc3d8c783bb', 'dc4129e20061786d'),
}
KEYS = {
    'task': (2082528472, 3715937662),
    'init': (1015268016, 1626943296),
    'train': (3203039227, 2532144084),
    'test': (3400417679, 3806119637),
    'validation': (2277133526, 639838685),
    'order': (121642680, 716218386),
    'position': (2962995109, 2952173781),
}


def bits(key):
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def digests(prompt):
    """sha256 of tokens, indices and labels; reals in hundredths, so that another device's last bit may differ."""
    scaled = (np.asarray(leaf, np.float64) * factor for leaf, factor in zip(prompt[:3], (100, 1, 100), strict=True))
    return tuple(hashlib.sha256(np.round(leaf).astype('<i4').tobytes()).hexdigest()[:16] for leaf in scaled)


def test_keys_differ_by_seed_stream_and_task():
    settings = ({}, {'seq_len': 9}, {'sparsity': 2}, {'token_dim': 11})
    changed = [tasks.sibling(TASK, 'simple_qstr'), *(dataclasses.replace(TASK, **each) for each in settings)]
    keys = [
        bits(streams.stream_key(seed, stream, task))
        for seed, stream, task in itertools.product(range(3), streams.STREAMS, changed)
    ]
    assert len(set(keys)) == len(keys)


def test_neighbouring_settings_do_not_share_a_fingerprint():
    sizes = itertools.product(('qstr', 'simple_qstr'), range(2, 34), (1, 2, 11), (1, 2, 10))
    allowed = [size for size in sizes if size[2] <= size[1]]
    prints = {streams.fingerprint(tasks.build(name, seq_len=n, sparsity=q, token_dim=d)) for name, n, q, d in allowed}
    assert len(prints) == len(allowed)


@pytest.mark.parametrize(
    'change',
    [
        {'link': 'hermite2'},
        {'indices': 'half'},
        {'tokens': 'half'},
        {'encoding_dim': 30},
        {'encoding_scale': 'scaled'},
        {'max_coherence': 0.9},
        {'distinct_encodings': False},
    ],
)
@pytest.mark.parametrize('stream', streams.STREAMS)
def test_keys_do_not_depend_on_link_distribution_or_encoding(stream, change):
    other = dataclasses.replace(TASK, **change)
    assert bits(streams.stream_key(3, stream, other)) == bits(streams.stream_key(3, stream, TASK))


def test_links_see_the_same_tokens_and_indices():
    prompts = []
    for link in lambda x_QxD: x_QxD[0, 0], lambda x_QxD: x_QxD[0, 1]:
        task = dataclasses.replace(TASK, link=link)
        prompts.append(tasks.sample(streams.stream_key(0, 'train', task), task, {}))
    assert np.array_equal(prompts[0].x_NxD, prompts[1].x_NxD)
    assert np.array_equal(prompts[0].t_NxQ, prompts[1].t_NxQ)
    assert not np.array_equal(prompts[0].y_N, prompts[1].y_N)


def test_vmap_over_seeds_equals_a_loop():
    batched = jax.vmap(lambda seed: streams.stream_key(seed, 'init', TASK))(jnp.arange(5))
    assert [bits(key) for key in batched] == [bits(streams.stream_key(s, 'init', TASK)) for s in range(5)]


def test_keys_drawn_together_are_those_drawn_one_by_one():
    other = dataclasses.replace(TASK, seq_len=TASK.seq_len + 1)
    sources = {stream: (number % 3, (TASK, other)[number % 2]) for number, stream in enumerate(streams.STREAMS)}
    together = streams.stream_keys(sources)
    assert {stream: bits(key) for stream, key in together.items()} == {
        stream: bits(streams.stream_key(seed, stream, task)) for stream, (seed, task) in sources.items()
    }


def test_keys_are_threefry_whatever_the_default():
    with jax.default_prng_impl('rbg'):
        key = streams.stream_key(0, 'train', TASK)
    assert bits(key) == bits(streams.stream_key(0, 'train', TASK))


def test_unknown_stream():
    with pytest.raises(
        ValueError, match=r"^stream='trian': unknown; did you mean 'train'\? It is one of task, init, train, [^\n]*$"
    ):
        streams.stream_key(0, 'trian', TASK)
    with pytest.raises(ValueError, match=r"^stream='trian': unknown"):
        streams.stream_keys({'train': (0, TASK), 'trian': (0, TASK)})


def test_keys_are_pinned():
    assert streams.STREAMS[: len(KEYS)] == tuple(KEYS)
    assert {stream: bits(streams.stream_key(0, stream, TASK)) for stream in KEYS} == KEYS


@pytest.mark.parametrize('name', ['qstr', 'simple_qstr'])
def test_first_prompt_is_pinned(name):
    task = tasks.build(name, seq_len=8, sparsity=1, token_dim=10)

    @jax.jit
    def first():
        link_params = tasks.draw(tasks.task_key(0, task), task).link
        return tasks.examples(streams.stream_key(0, 'train', task), jnp.arange(1), task, link_params)

    assert digests(jax.tree.map(lambda leaf: leaf[0], first())) == FIRST_PROMPTS[name]
