"""What the page on accelerators says in numbers: how much was compiled, what took long, what precision does."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from qstr_jax.accelerators import chips
from qstr_jax.analysis import formats, names

# No published program should take more seconds on two cores to compile, at the number of lanes chosen.
MOST_SECONDS = 30
# Cells by exhibit, each with the lanes that a sweep begins with on an accelerator.
Cells = Mapping[str, Mapping[str, int]]


def text(programs: Sequence[Mapping[str, Any]], cells: Cells, precisions: Sequence[Mapping[str, Any]]) -> str:
    """The page's numbers, as Markdown.

    Args:
        programs: entries of `accelerators.json`.
        cells: of the published configs.
        precisions: records of the benchmark's section of that name, where the products were emulated.
    """
    published = [one for one in programs if one.get('precision', 'highest') == 'highest']
    parts = [coverage(published, cells), outcomes(published, cells), _emulated(precisions)]
    return '\n'.join(['', *parts, ''])  # blank lines, so that Markdown sees tables between the comments


def coverage(published: Iterable[Mapping[str, Any]], cells: Cells) -> str:
    """A table of how many of an exhibit's cells have a compiled program on each device; cells may share one.

    Args:
        published: entries of the published precision.
        cells: of the published configs.
    """
    served = {
        (one['device'], cell['exhibit'], cell['cell'])
        for one in published if one['outcome'] == 'compiled' for cell in one['serves']
    }  # fmt: skip
    known = [device for device in chips.CHIPS if any(device == one for one, *_ in served)]
    counts = pd.DataFrame(
        [
            {'cells': len(ids), **{_device(name): _count(served, name, exhibit, ids) for name in known}}
            for exhibit, ids in cells.items()
        ],
        index=list(cells),
    )
    counts.loc['all'] = counts.sum()
    return formats.markdown(counts.reset_index(names='exhibit'))


def _count(served: set[tuple[str, str, str]], device: str, exhibit: str, ids: Iterable[str]) -> int:
    return sum((device, exhibit, one) in served for one in ids)


def outcomes(published: Sequence[Mapping[str, Any]], cells: Cells) -> str:
    """How compiling went: what failed, took long or was halved, and the most memory.

    Args:
        published: entries of the published precision.
        cells: of the published configs.
    """
    done = [one for one in published if one['outcome'] == 'compiled']
    others = [f'{_name(one)} ({one["outcome"]})' for one in published if one['outcome'] != 'compiled']
    slow = sorted((one for one in done if _seconds(one) > MOST_SECONDS), key=_seconds, reverse=True)
    halved = [_name(one) for one in done if one['lanes'] < cells.get(one['exhibit'], {}).get(one['cell'], 0)]
    waiting = [_name(one) for one in done if one.get('host_transfers')]
    largest = max(done, key=lambda one: one['memory_bytes'] / chips.get(one['device']).memory_bytes)
    memory = chips.get(largest['device']).memory_bytes / 2**30
    of_core = [one['compile_cpu_seconds'] for one in done]
    slowest = (f'{_name(one)}: {_seconds(one):.1f}' for one in slow)
    return (
        f'{len(done)} programs of {len(published)} that were tried compiled{_but(others)}. '
        f'On two cores each took at most {MOST_SECONDS} seconds{_but(slowest)}, '
        f'the longest {max(map(_seconds, done)):.1f}. '
        f'Of seconds of a core {sum(one > MOST_SECONDS for one in of_core)} took more, '
        f'at most {max(of_core):.1f}. '
        f'All of Figure 1a took {_figure1a(done, cells)}. '
        f'Lanes were halved, and compiled again, for {_listed(halved)}; '
        f'transfers to or from the host are in the `advance` of {_listed(waiting)}. '
        f'Nearest to its memory comes {_name(largest)}, with {largest["memory_bytes"] / 2**30:.1f} GiB '
        f'of {memory:.0f}.\n'
    )


def _figure1a(done: Iterable[Mapping[str, Any]], cells: Cells) -> str:
    """Seconds for all cells of Figure 1a, on the devices that have all of them."""
    own = [one for one in done if one['exhibit'] == 'figure1a' and one['cell'] in cells['figure1a']]
    found = {name: [_seconds(one) for one in own if one['device'] == name] for name in chips.CHIPS}
    whole = {name: sum(several) for name, several in found.items() if len(several) == len(cells['figure1a'])}
    return ', '.join(f'{seconds:.0f} for {_device(name)}' for name, seconds in whole.items()) or 'not yet place'


def _emulated(records: Sequence[Mapping[str, Any]]) -> str:
    """Samples to the threshold at other precisions, as multiples of those at full precision of the same seeds."""
    full = {(one['model'], one['seq_len']): one['samples'] for one in records if one['precision'] == 'highest'}
    shown = {'tf32': 'TF32', 'bf16': 'bfloat16', 'highest, other sums': 'float32, added up in another order'}
    lines = [
        {
            'model': names.display(model), 'N': seq_len, 'seeds': len(samples),
            **{
                shown[one['precision']]: float(np.mean(np.divide(one['samples'], samples)))
                for one in records if (one['model'], one['seq_len']) == (model, seq_len) and one['precision'] in shown
            },
        }
        for (model, seq_len), samples in full.items()
    ]  # fmt: skip
    return (
        'Samples to test error 0.7 with rounded products, emulated on a CPU, as multiples of those in float32 (means '
        f'over the same seeds):\n\n{formats.markdown(pd.DataFrame(lines), digits=3)}'
    )


def _seconds(entry: Mapping[str, Any]) -> float:
    """Seconds on two cores: of the clock, or where other work made those longer, at most those of a core."""
    return float(min(entry['compile_cpu_seconds'], entry['compile_seconds']))


def _device(name: str) -> str:
    return name.upper() if chips.get(name).platform == 'gpu' else name


def _name(entry: Mapping[str, Any]) -> str:
    """A program in words."""
    model = names.display(entry['model'])
    return f'{model} of `{entry["exhibit"]}` at N = {entry["seq_len"]} on {_device(entry["device"])}'


def _but(several: Iterable[str]) -> str:
    found = list(several)
    return f', but for {"; ".join(found)}' if found else ''


def _listed(several: Sequence[str]) -> str:
    return '; '.join(several) or 'none'
