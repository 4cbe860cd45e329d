r"""The theorems as cards: claim, measured points, the theorem's line, verdict; figures, cards.json, rows of trainings.

python -m experiments.theorems --config=experiments/configs/theorems.py --workdir=results/theorems \
    --config.cards=lemma11,proposition3 --config.lemma11.seq_lens=16,64
"""

import pathlib
import sys
import time
from collections.abc import Mapping
from typing import Any

from absl import logging
from ml_collections import config_dict

from qstr_jax import plots, sweeps
from qstr_jax.cli import command_line, runtime, sample_complexity
from qstr_jax.plots import cards as figures
from qstr_jax.storage import files, provenance, records, results
from qstr_jax.theory import cards

# Defined once for all binaries, since tests import several of them into one process.
CONFIG = sample_complexity.CONFIG


def chosen_cards(config: config_dict.ConfigDict) -> tuple[str, ...]:
    """Names of the cards that a config asks for; they may come as one string with commas."""
    if not isinstance(config, (config_dict.ConfigDict, dict)) or 'cards' not in config:
        raise ValueError('--config is not of cards, it names none: take configs/theorems.py')
    chosen = [config.cards] if isinstance(config.cards, str) else config.cards
    found = tuple(name.strip() for part in chosen for name in str(part).split(',') if name.strip())
    cards.check_names(found)
    if not found:
        raise ValueError(f'cards=(): give at least one of {", ".join(cards.names())}')
    return found


def read(path: pathlib.Path) -> dict[str, Any]:
    """Cards of a cards.json by name; none if there is no such file."""
    return records.read(path, 'cards') if path.exists() else {}


def make_one(name: str, overrides: Mapping[str, Any], workdir: pathlib.Path) -> Any:
    """Makes a card, unless cards.json has it with these settings and there is no --refresh; writes entry and figure.

    What the card trains is run, or continued, in the results directory cards/NAME.
    """
    path = workdir / 'cards.json'
    wanted = cards.plain_settings(name, overrides)
    entry = read(path).get(name)
    if entry is None or entry.get('settings') != wanted or runtime.options().refresh:
        start, made_by = time.monotonic(), provenance.made_by(sys.argv)
        card = cards.make(name, overrides, workdir / results.CARDS / name, runtime.options())
        seconds = round(time.monotonic() - start, 1)
        where = {'settings': wanted, 'seconds': seconds, 'device': made_by['device'], 'made_by': made_by}
        # Read again: another process may have written its cards in the meantime.
        files.write_json(path, {**read(path), name: {**cards.as_json(card), **where}})
    else:
        card = cards.from_json(name, entry)
        logging.info('%s: already in %s', name, path)
    plots.save(figures.card_figure(card), workdir / name)
    return card


def run() -> None:
    """Makes the cards of --config in --workdir."""
    config = CONFIG.value
    chosen = chosen_cards(config)
    overrides = {name: dict(config[name]) for name in chosen}
    for name in chosen:
        for sweep in cards.sweeps(name, overrides[name]).values():
            sweeps.cells_of(sweep)  # errors before any work
    runtime.check()
    if sample_complexity.DRY_RUN.value:
        print('\n'.join(f'{name}: {cards.settings(name, overrides[name])}' for name in chosen))
        return
    workdir = pathlib.Path(runtime.workdir())
    runtime.start()
    files.make_folder(workdir)
    for name in chosen:
        card = make_one(name, overrides[name], workdir)
        print(f'{name}: {card.verdict}', flush=True)


def main() -> None:
    """The binary."""
    command_line.launch(run, used=('config', 'dry_run', *command_line.DEVICES))


if __name__ == '__main__':
    main()
