"""What a results directory holds and what runs in it: python -m experiments.status --workdir=DIR."""

import pandas as pd
from etils import epath

from qstr_jax.cli import command_line, runtime
from qstr_jax.progress import duration
from qstr_jax.storage import results
from qstr_jax.sweeps import monitor


def describe(status: pd.DataFrame) -> str:
    """The status table as text."""
    width = max([4, *status['cell'].str.len()])
    head = ('lanes', 'reached', 'fitted', 'censored', 'outraced', 'diverged', 'left')
    columns = ' '.join(f'{name:>8s}' for name in (*head, 'spent', 'to go'))
    lines = [f'{"cell":{width}s} {"state":8s} {columns}  note']
    for _, row in status.iterrows():
        counts = ' '.join(f'{row[name]:8d}' for name in head)
        times = f'{duration(row["seconds"]):>8s} {duration(row["expected_seconds"]):>8s}'
        lines.append(f'{row["cell"]:{width}s} {row["state"]:8s} {counts} {times}  {row["note"]}')
    states = ', '.join(f'{count} {state}' for state, count in status['state'].value_counts().items())
    spent, left = status['seconds'].sum(), status['expected_seconds'].sum(skipna=False)
    lines.append(f'{len(status)} cells: {states}; {duration(spent)} spent, {duration(left)} to go on one device')
    return '\n'.join(lines)


def run() -> None:
    """Prints the status of --workdir, and of the runs in it that choose settings."""
    workdir = epath.Path(runtime.workdir())
    choosing = workdir / results.SELECTION
    parts = [part for part in (workdir, choosing) if (part / 'plan.json').exists()] or [workdir]
    for part in parts:
        if part == choosing:
            print('\nruns that choose settings; what a point needs is planned once they are chosen:')
        print(describe(monitor.status(part)))


if __name__ == '__main__':
    command_line.launch(run, used=('workdir',))
