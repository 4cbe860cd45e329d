r"""Table 1 of the paper, measured: growth of samples with N beside the theorems' claims, over result directories.

python -m experiments.table1 --workdir=experiments/results --output=experiments/results/table1

Writes table1.md, table1.tex, table1.parquet (the DataFrame of `qstr_jax.analysis.table1.measure`) and table1.json:
which command made it at which commit, and from the rows of which runs.
"""

import sys

from qstr_jax.analysis import table1
from qstr_jax.cli import command_line, runtime
from qstr_jax.report import lanes
from qstr_jax.storage import files, provenance, results


def run(*arguments: str) -> None:
    """Prints and writes the table of --workdir and further directories."""
    made_by = provenance.made_by(sys.argv)
    workdirs, output = runtime.workdirs(arguments), runtime.output('results/table1')
    rows = results.load_all(workdirs, read=lanes.for_table1)
    if rows.empty:
        raise files.ResultsError(f'--workdir={",".join(workdirs)}: there are no rows of lanes to make a table of')
    table = table1.measure(rows)
    folder = files.make_folder(output)
    files.write_text(folder / 'table1.md', table1.markdown(table))
    files.write_text(folder / 'table1.tex', table1.latex(table))
    files.write_table(
        folder / 'table1.parquet', table.assign(N=table['N'].map(list), bounds_at=table['bounds_at'].map(list))
    )
    files.write_json(folder / 'table1.json', {'made_by': made_by, 'rows_of': provenance.sources(rows)})
    print(table1.markdown(table))


if __name__ == '__main__':
    command_line.launch(run, takes_arguments=True, used=('workdir', 'output'))
