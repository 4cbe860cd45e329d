"""The code blocks of README and documentation run, page by page: Python as it stands, commands as dry runs."""

import contextlib
import functools
import importlib
import io
import pathlib
import re
import shlex
import sys

import matplotlib.pyplot as plt
import pytest
from absl import app

from experiments import exhibit
from qstr_jax import sweeps
from qstr_jax.storage import results
from tests import helpers

ELSEWHERE = ('README.md', 'CONTRIBUTING.md', 'qstr_jax/theory/README.md', 'experiments/benchmarks/README.md')
PAGES = [*(helpers.ROOT / page for page in ELSEWHERE), *sorted((helpers.ROOT / 'docs').rglob('*.md'))]
TARGETS = {
    *re.findall(r'^([a-z0-9-]+):', (helpers.ROOT / 'Makefile').read_text(), flags=re.MULTILINE),
    *(name.replace('_', '-') for one in exhibit.every().values() for name in (one.name, *one.folders)),
}


def blocks(page, language):
    """Fenced blocks of a page in one language; of commands also those that are indented."""
    text = page.read_text()
    fenced = re.findall(rf'^```{language}\n(.*?)^```', text, flags=re.MULTILINE | re.DOTALL)
    if language != 'bash':
        return fenced
    outside = re.sub(r'^```.*?^```', '', text, flags=re.MULTILINE | re.DOTALL)
    return [*fenced, *re.findall(r'^    ((?:make|python|\S*/python)\b.*(?:\n     .*)*)', outside, flags=re.MULTILINE)]


def commands(page):
    """The lines of a page's blocks of commands, without comments and with their continuations."""
    text = '\n'.join(blocks(page, 'bash')).replace('\\\n', ' ')
    return [words for line in text.splitlines() if (words := shlex.split(line, comments=True))]


def name(page):
    return page.relative_to(helpers.ROOT).as_posix()


with_python = [page for page in PAGES if blocks(page, 'python')]
with_commands = [page for page in PAGES if commands(page)]


@pytest.fixture
def folder(tmp_path, monkeypatch, own_entries):
    """Where a reader would be: beside the rows that pages read, with the page's own files importable."""
    for name in ('board', 'experiments'):
        (tmp_path / name).symlink_to(helpers.ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield tmp_path
    for module in set(sys.modules) - known:
        if module.startswith('my_'):
            del sys.modules[module]
    plt.close('all')


def run_python(page, folder, monkeypatch):
    """Runs the page's blocks one after the other, as a reader does; one that names its file is only written to it."""
    one_device = functools.partialmethod(sweeps.Options.__init__, num_devices=1, progress=False)
    monkeypatch.setattr(sweeps.Options, '__init__', one_device)
    names = {'__name__': '__main__'}
    for block in blocks(page, 'python'):
        if file := re.match(r'# (my_\w+)\.py\n', block):
            (folder / f'{file[1]}.py').write_text(block)
            importlib.invalidate_caches()
        else:
            exec(compile(block, name(page), 'exec'), names)


@pytest.mark.slow
@pytest.mark.parametrize('page', with_python, ids=name)
def test_python_blocks_run(page, folder, monkeypatch, capsys):
    run_python(page, folder, monkeypatch)
    assert 'failed' not in capsys.readouterr().err
    for workdir in results.find(folder / 'results') if (folder / 'results').exists() else ():
        assert not results.load(workdir).empty


@pytest.mark.usefixtures('_as_before')
@pytest.mark.parametrize('page', with_commands, ids=name)
def test_commands_are_understood(page, folder):
    for block in blocks(page, 'python'):
        if file := re.match(r'# (my_\w+)\.py\n', block):
            (folder / f'{file[1]}.py').write_text(block)
    for words in commands(page):
        understood(words)


def understood(words):
    """Fails unless a command is a target of make, or its flags are accepted: with --dry_run where there is a config."""
    program, *rest = words
    if program == 'make':
        targets = {word.removesuffix('-all') for word in rest if '=' not in word}
        assert targets <= TARGETS, targets - TARGETS
        return
    assert pathlib.PurePath(program).name == 'python', words
    assert rest[0] == '-m', words
    module = importlib.import_module(rest[1])
    if not any(word.startswith('--config=') for word in rest):
        return
    sys.argv = [rest[1], *rest[2:], *([] if any(word.startswith('--describe') for word in rest) else ['--dry_run'])]
    main = getattr(module, 'main', None) or functools.partial(module.command_line.launch, module.run)
    main = functools.partial(app.run, module.main, flags_parser=module.parse) if 'launch' in rest[1] else main
    with helpers.flags_as_before(module), contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (None, 0), (words, end.value.code)


def test_there_is_an_example_of_each_kind():
    text = '\n'.join(block for page in with_python for block in blocks(page, 'python'))
    kinds = ('models', 'links', 'tasks', 'encoders', 'learners')
    assert all(f'@{kind}.register' in text for kind in kinds)
    assert '@probes.register' in text


def test_every_page_is_in_the_navigation():
    named = (helpers.ROOT / 'mkdocs.yml').read_text()
    for page in (helpers.ROOT / 'docs').rglob('*.md'):
        assert page.relative_to(helpers.ROOT / 'docs').as_posix() in named, page


@pytest.mark.parametrize('page', PAGES, ids=name)
def test_links_and_pictures_exist(page):
    """Also on the pages of the documentation, which can be read where they are."""
    text = re.sub(r'```.*?```|`[^`]*`', '', page.read_text(), flags=re.DOTALL)
    for target in re.findall(r'(?:\]\(|src=")(?!http)([^)#"]+)[#\w*-]*[)"]', text):
        assert (page.parent / target).exists(), target
