r"""Times qstr_jax beside an idiomatic PyTorch implementation of the same protocol, in one run, in turn.

make install EXTRA=benchmark
python -m experiments.benchmark [--quick] [--json=PATH] [--sections=steps,runs,seeds,scaling] [--models=transformer,ffn]

Prints a table per section; --json writes all of it with versions and device, and PATH.png beside it. A section that is
done is in the file at once: a run that is cut off keeps it. See experiments/benchmarks/README.md.
"""

import dataclasses
import importlib.util
import pathlib
import sys
from typing import Any

from absl import flags

from qstr_jax.cli import command_line, runtime
from qstr_jax.storage import files

QUICK = flags.DEFINE_bool('quick', False, 'A few cells.')
JSON = flags.DEFINE_string('json', None, 'File of the results; its picture gets the same name.')
SECTIONS = flags.DEFINE_list('sections', [], 'Which sections to measure; all by default.')
MODELS = flags.DEFINE_list('models', [], 'Which architectures to measure; all by default.')
SEQ_LENS = flags.DEFINE_list('seq_lens', [], 'Which lengths of the plan to measure; all by default.')
RUN_SEEDS = flags.DEFINE_integer('run_seeds', None, 'Seeds of a run to the threshold; the plan has 5.', lower_bound=1)
COMPILED = flags.DEFINE_bool('compiled', None, 'Whether torch.compile is measured too; unless --quick by default.')


def plan() -> Any:
    """The `cells.Plan` of the flags.

    Raises:
        ValueError: an unknown architecture, or a length that is not in the plan.
    """
    from experiments.benchmarks import cells, protocol

    chosen = cells.QUICK if QUICK.value else cells.FULL
    if unknown := set(MODELS.value) - set(protocol.MODELS):
        raise ValueError(f'--models={",".join(sorted(unknown))}: unknown, one of {", ".join(protocol.MODELS)}')
    changes = {'models': tuple(MODELS.value)} if MODELS.value else {}
    if SEQ_LENS.value:
        changes |= cells.restricted(chosen, SEQ_LENS.value)
    if RUN_SEEDS.value is not None:
        changes['run_seeds'] = RUN_SEEDS.value
    if COMPILED.value is not None:
        changes['compiled'] = cells.FULL.compiled if COMPILED.value else ()
    return dataclasses.replace(chosen, **changes)


def run() -> None:
    """Measures the sections one after the other."""
    if importlib.util.find_spec('torch') is None:
        raise ValueError('PyTorch is missing, which the benchmark compares with: make install EXTRA=benchmark')
    from experiments.benchmarks import report, sections, timing

    runtime.use_all_cores()
    names = SECTIONS.value or list(sections.SECTIONS)
    if unknown := [name for name in names if name not in sections.SECTIONS]:
        raise ValueError(f'--sections={",".join(unknown)}: unknown, one of {", ".join(sections.SECTIONS)}')
    for flag, section in (RUN_SEEDS, 'runs'), (COMPILED, 'steps'):
        if flag.value is not None and section not in names:
            raise ValueError(f'--{flag.name}: {section} is not among the --sections, leave it out')
    chosen = plan()
    if JSON.value:
        files.make_folder(pathlib.Path(JSON.value).parent)  # before any work
        if pathlib.Path(JSON.value).is_dir():
            raise ValueError(f'--json={JSON.value}: is a directory; name a file')
    device = sections.device_name()

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    results = report.start(sys.argv, chosen)
    with timing.fresh_cache():
        for name in names:
            results['sections'][name] = sections.SECTIONS[name](chosen, device, say)
            print(report.tables(results, name), end='\n\n', flush=True)
            if JSON.value:
                report.write(results, pathlib.Path(JSON.value))


if __name__ == '__main__':
    command_line.launch(run, required=None, used=())
