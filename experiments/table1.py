r"""Table 1 of the paper, measured: growth of samples with N beside the theorems' claims, over result directories.

python -m experiments.table1 --workdir=experiments/results --output=experiments/results/table1

Writes table1.md, table1.tex and table1.parquet (the DataFrame of `qstr_jax.analysis.table1.measure`).
"""

import pandas as pd

from experiments import command_line, report
from qstr_jax import studies
from qstr_jax.analysis import table1
from qstr_jax.storage import files


def run(*arguments):
    """Prints and writes the table of --workdir and `arguments`."""
    workdirs = report.expand([*(report.WORKDIR.value or []), *arguments])
    if not workdirs:
        raise ValueError('--workdir=DIR is missing: which results should be tabulated?')
    frames = [studies.load(workdir) for workdir in workdirs]
    frames = [frame.assign(folder=workdir + frame['folder'])
              for workdir, frame in zip(workdirs, frames, strict=True) if len(frame)]  # fmt: skip
    table = table1.measure(pd.concat(frames, ignore_index=True) if frames else pd.DataFrame())
    output = files.make_folder(report.OUTPUT.value)
    files.write_text(output / 'table1.md', table1.markdown(table))
    files.write_text(output / 'table1.tex', table1.latex(table))
    files.write_table(output / 'table1.parquet', table.assign(N=table['N'].map(list)))
    print(table1.markdown(table))


if __name__ == '__main__':
    command_line.launch(run, required=None, takes_arguments=True)
