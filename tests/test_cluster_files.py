"""The files of examples/cluster are what Kubernetes and SkyPilot take, and start commands that there are."""

import json
import re

import jsonschema
import pytest
import yaml

from tests import helpers, test_docs

FOLDER = helpers.ROOT / 'examples/cluster'


def read(name):
    return yaml.safe_load((FOLDER / name).read_text())


def test_the_job_is_one_of_kubernetes():
    kubernetes_validate = pytest.importorskip('kubernetes_validate', reason="needs the extra 'test'")
    job = read('job.yaml')
    kubernetes_validate.validate(job, '1.33', strict=True)
    job['spec']['paralelism'] = 8
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, '1.33', strict=True)


def test_the_task_is_one_of_skypilot():
    schema = json.loads((helpers.ROOT / 'tests/schemas/skypilot_task.json').read_text())
    validator = jsonschema.Draft202012Validator(schema)
    task = read('sky.yaml')
    assert list(validator.iter_errors(task)) == []
    assert list(validator.iter_errors({**task, 'num_node': 4}))


def script(name):
    """The command that a worker of a file runs, in words, with numbers in place of what the cluster sets."""
    file = read(name)
    text = file['run'] if 'run' in file else file['spec']['template']['spec']['containers'][0]['args'][0]
    command = re.search(r'python -m .*', text.replace('\\\n', ' '))[0]
    known = {'BUCKET': 'gs://bucket/sweep', 'JOB_COMPLETION_INDEX': '3', 'SKYPILOT_NODE_RANK': '3'}
    known['SKYPILOT_NUM_NODES'] = '4'
    return re.sub(r'\$(\w+)', lambda found: known[found[1]], command).replace('"', '').split()


@pytest.mark.slow
@pytest.mark.parametrize('name', ['job.yaml', 'sky.yaml'])
def test_the_commands_are_understood(name, monkeypatch):
    words = [word for word in script(name) if not word.startswith('--workdir=')]
    if 'qstr_jax' in words:  # without the repository there is no config file
        words = ['python', '-m', 'experiments.sample_complexity', '--config=qstr_jax/cli/base.py', *words[3:]]
    monkeypatch.chdir(helpers.ROOT)
    test_docs.understood(words)


def test_a_job_has_as_many_shares_as_pods():
    spec = read('job.yaml')['spec']
    assert f'--num_shards={spec["completions"]}' in script('job.yaml')
    assert spec['parallelism'] == spec['completions']


def test_each_pod_of_a_job_has_a_cell():
    axes = dict(word.removeprefix('--config.').split('=') for word in script('job.yaml') if '--config.' in word)
    num_cells = len(axes['models'].split(',')) * len(axes['seq_lens'].split(','))
    assert read('job.yaml')['spec']['completions'] <= num_cells
