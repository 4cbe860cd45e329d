"""What an optimised program does at each training step, read from the compiler's text of it.

The text lists computations; a loop names its body, a conditional its branches. Everything that is not a loop, a branch
or bookkeeping is a kernel on a GPU, and a fused operation on a TPU.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from qstr_jax.learners.lanes import STEP_SCOPE

_COMPUTATION = re.compile(r'^(?:ENTRY )?%?([\w.\-]+) \(.*\{$')
_INSTRUCTION = re.compile(r'^\s+(?:ROOT )?%?([\w.\-]+) = (.+?) ([a-z][\w\-]*)\((.*)$')
_ARRAY = re.compile(r'([a-z]+\d*)\[([\d,]*)\](\{[^}]*\})?')
_CALLED = re.compile(r'(?:body|to_apply|calls|called_computations|branch_computations|true_computation|'
                     r'false_computation)=\{?((?:%?[\w.\-]+(?:, )?)+)\}?')  # fmt: skip
_TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')
_SCOPE = re.compile(r'op_name="([^"]*)"')
_SCRATCH = re.compile(r'\bs8\[\d+\]')
_BITS = re.compile(r'\d+')
# Names of operations that no device runs by themselves.
_BOOKKEEPING = {
    'parameter', 'constant', 'tuple', 'get-tuple-element', 'bitcast', 'after-all', 'partition-id', 'replica-id',
    'copy-done', 'async-done', 'opt-barrier', 'domain', 'add-dependency',
}  # fmt: skip
# Operations that read a part of their first operand.
_SLICES = ('dynamic-slice', 'slice', 'gather')
_LOOPS_AND_BRANCHES = {'while', 'call', 'conditional'}
_COLLECTIVES = ('all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all', 'collective-permute', 'ragged-all-to-all')
_HOST = ('infeed', 'outfeed', 'send', 'recv', 'send-done', 'recv-done')
_HOST_CALLS = ('xla_python_cpu_callback', 'xla_python_gpu_callback', 'xla_ffi_python', 'MoveToHost', 'MoveToDevice')


class Instruction(NamedTuple):
    """One line of a computation.

    Attributes:
        name: of its result.
        shape: type of its result.
        operation: what it does.
        rest: operands and attributes.
    """

    name: str
    shape: str
    operation: str
    rest: str

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the computations that it calls."""
        found = _CALLED.findall(self.rest)
        return tuple(name.strip().lstrip('%') for group in found for name in group.split(','))

    @property
    def operands(self) -> list[str]:
        """Names of what it is made from."""
        return re.findall(r'%([\w.\-]+)', self.rest.split('), ')[0])

    @property
    def scope(self) -> str:
        """Where in the Python program it comes from; '' where that is unknown."""
        return ''.join(_SCOPE.findall(self.rest)[:1])

    @property
    def is_kernel(self) -> bool:
        """Whether a device runs it as a piece of work of its own."""
        return self.operation not in _BOOKKEEPING | _LOOPS_AND_BRANCHES


Program = Mapping[str, list[Instruction]]


def computations(text: str) -> dict[str, list[Instruction]]:
    """The computations of an optimised program.

    Args:
        text: `compiled.as_text()`.
    """
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in text.splitlines():
        if header := _COMPUTATION.match(line):
            current = found.setdefault(header[1], [])
        elif instruction := _INSTRUCTION.match(line):
            current.append(Instruction(*instruction.groups()))
    return found


def _instructions(text: str) -> list[Instruction]:
    return [one for several in computations(text).values() for one in several]


def step_kernels(text: str) -> list[int] | None:
    """The kernels of one training step of all lanes, each by the bytes that it reads and writes in main memory.

    An operand counts whole, also where a kernel reads a part of it; of the branches of a conditional the one with the
    most kernels counts.

    Args:
        text: of a program.

    Returns:
        A number for each kernel; None if the program has no loop of training steps.
    """
    program = computations(text)
    loops = [one for lines in program.values() for one in lines if one.operation == 'while']
    steps = [loop for loop in loops if STEP_SCOPE not in loop.scope and _has_steps(program, loop)]
    # The loop over checks has the loop over steps within it.
    innermost = [loop for loop in steps if not any(other in steps for other in _loops_within(program, loop))]
    found = [_kernels(program, _body(loop)) for loop in innermost]
    return max(found, key=len) if found else None


def _body(loop: Instruction) -> str:
    return re.search(r'body=%?([\w.\-]+)', loop.rest)[1]  # type: ignore[index]


def _within(program: Program, name: str) -> Iterator[Instruction]:
    """The instructions of a computation and of those that it calls."""
    for one in program.get(name, []):
        yield one
        for called in one.called:
            yield from _within(program, called)


def _loops_within(program: Program, loop: Instruction) -> list[Instruction]:
    return [one for one in _within(program, _body(loop)) if one.operation == 'while']


def _has_steps(program: Program, loop: Instruction) -> bool:
    return any(STEP_SCOPE in one.scope for one in _within(program, _body(loop)))


def _kernels(program: Program, name: str) -> list[int]:
    """Bytes of each kernel of a computation, and of the loops and branches in it."""
    lines = program.get(name, [])
    shapes = {one.name: one.shape for one in lines}
    found: list[int] = []
    for one in lines:
        if one.is_kernel:
            found.append(_traffic(program, one, shapes))
        elif one.operation == 'while':
            found += _trips(program, one) * _kernels(program, _body(one))
        elif one.operation in _LOOPS_AND_BRANCHES:
            branches = [_kernels(program, called) for called in one.called]
            longest = max(branches, key=len, default=list[int]())
            found += longest
    return found


def _trips(program: Program, loop: Instruction) -> int:
    """How often the body of a loop runs; 1 where neither the compiler nor the loop's condition says."""
    if told := _TRIPS.search(loop.rest):
        return int(told[1])
    condition = re.search(r'condition=%?([\w.\-]+)', loop.rest)
    lines = _within(program, condition[1]) if condition else iter(())
    bounds = {
        one.rest.partition(')')[0] for one in lines if one.operation == 'constant' and one.shape.startswith('s32[]')
    }
    return int(bounds.pop()) if len(bounds) == 1 else 1


def _traffic(program: Program, one: Instruction, shapes: Mapping[str, str]) -> int:
    """Bytes that an instruction reads and writes in main memory."""
    operands = [shapes[name] for name in one.operands if name in shapes]
    if one.operation == 'copy-start':  # its result names the source again
        return sum(map(main_memory_bytes, operands))
    if one.operation == 'custom-call':  # its scratch, such as cuBLAS's, is bytes without a type of number
        return main_memory_bytes(_SCRATCH.sub('', one.shape)) + sum(map(main_memory_bytes, operands))
    fused = program.get(one.called[0], []) if one.operation == 'fusion' and one.called else []
    if not fused:
        return main_memory_bytes(one.shape) + sum(map(main_memory_bytes, operands))
    inputs = {int(line.rest.partition(')')[0]): line for line in fused if line.operation == 'parameter'}
    read = (
        _read(fused, inputs[i], shape) if i in inputs else main_memory_bytes(shape) for i, shape in enumerate(operands)
    )
    return _written(fused, one.shape) + sum(read)


def _read(fused: list[Instruction], source: Instruction, shape: str) -> int:
    """Bytes that a fusion reads of one operand: its slices, if it takes nothing else."""
    whole, total, names = main_memory_bytes(shape), 0, {source.name}
    for line in fused:
        if not names & set(line.operands):
            continue
        if line.operation == 'bitcast':
            names.add(line.name)
        elif line.operation in _SLICES and line.operands[0] in names:
            total += main_memory_bytes(line.shape)
        elif line.operation != 'dynamic-update-slice' or line.operands[0] not in names:
            return whole
    return min(whole, total)


def _written(fused: list[Instruction], shape: str) -> int:
    """Bytes that a fusion writes: of an array that it updates in place, the part that is new."""
    lines = {line.name: line for line in fused}
    saved = 0
    for line in fused:
        # A short array in main memory may be updated in one of the TPU's own: then nothing of it is counted.
        if line.operation == 'dynamic-update-slice' and line.operands[1] in lines:
            saved += main_memory_bytes(line.shape) - main_memory_bytes(lines[line.operands[1]].shape)
    return max(0, main_memory_bytes(shape) - saved)


def main_memory_bytes(shape: str) -> int:
    """Bytes of an array, or of a tuple of arrays, in main memory; what a TPU keeps in its own scratch is left out.

    Args:
        shape: as the compiler writes it, with layouts.
    """
    total = 0
    for kind, lengths, layout in _ARRAY.findall(shape):
        if 'S(' in layout:
            continue
        bits = _BITS.search(kind)
        size = int(bits[0]) // 8 if bits and int(bits[0]) >= 8 else 1
        total += size * math.prod(map(int, filter(None, lengths.split(','))))
    return total


def host_transfers(text: str) -> list[str]:
    """Instructions by which a program waits for its host, or its host for it.

    Args:
        text: of a program.
    """
    calls = [f'custom_call_target="{name}' for name in _HOST_CALLS]
    return [one.name for one in _instructions(text) if one.operation in _HOST or any(c in one.rest for c in calls)]


def collectives(text: str) -> list[str]:
    """Instructions for which the devices of a program wait for each other.

    Args:
        text: of a program.
    """
    return [one.name for one in _instructions(text) if one.operation.removesuffix('-start') in _COLLECTIVES]


def num_aliased(text: str) -> int:
    """How many results of a program take the memory of its arguments.

    Args:
        text: of a program.
    """
    return len(re.findall(r'(?:may|must)-alias', text.partition('\n')[0]))
