r"""The theorems as cards: claim, measured points, the theorem's line, verdict; figures and cards.json.

python -m experiments.theorems --config=experiments/configs/theorems.py --workdir=results/theorems \
    --config.cards=lemma11,proposition3 --config.lemma11.seq_lens=16,64
"""

import pathlib
import time

from absl import logging

from experiments import command_line, runtime, sample_complexity
from qstr_jax import plots
from qstr_jax.plots import cards as figures
from qstr_jax.storage import files, provenance
from qstr_jax.theory import cards

# Defined once for all binaries, since tests import several of them into one process.
CONFIG = sample_complexity.CONFIG


def chosen_cards(config):
    """Names of the cards that a config asks for; they may come as one comma-separated string."""
    if 'cards' not in config:
        raise ValueError('--config is not of cards, it names none: take configs/theorems.py')
    chosen = [config.cards] if isinstance(config.cards, str) else config.cards
    found = tuple(name.strip() for part in chosen for name in part.split(',') if name.strip())
    cards.check_names(found)
    if not found:
        raise ValueError(f'cards=(): give at least one of {", ".join(cards.names())}')
    return found


def read(path):
    """Cards of a cards.json by name; none if there is no such file."""
    return files.read_json(path) if path.exists() else {}


def make_one(name, overrides, workdir):
    """Makes a card unless cards.json has it with these settings; writes entry and figure, returns the card."""
    path = workdir / 'cards.json'
    wanted = cards.plain_settings(name, overrides)
    entry = read(path).get(name)
    if entry is None or entry.get('settings') != wanted:
        start = time.monotonic()
        card = cards.make(name, overrides, progress=True)
        seconds = round(time.monotonic() - start, 1)
        where = {'settings': wanted, 'seconds': seconds, 'device': provenance.describe_device()}
        # Read once more: another process may have written its cards meanwhile.
        files.write_json(path, {**read(path), name: {**cards.as_json(card), **where}})
    else:
        card = cards.from_json(name, entry)
        logging.info('%s: already in %s', name, path)
    plots.save(figures.card_figure(card), workdir / name)
    return card


def run():
    """Makes the cards of --config in --workdir."""
    config = CONFIG.value
    workdir = pathlib.Path(runtime.workdir())
    chosen = chosen_cards(config)
    overrides = {name: dict(config[name]) for name in chosen}
    for name in chosen:
        cards.settings(name, overrides[name])  # errors before any work
    runtime.start()
    files.make_folder(workdir)
    for name in chosen:
        card = make_one(name, overrides[name], workdir)
        print(f'{name}: {card.verdict}', flush=True)


if __name__ == '__main__':
    command_line.launch(run)
