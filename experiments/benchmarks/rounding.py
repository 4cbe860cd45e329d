"""Matrix products of a narrower format on a machine that has none: their operands are rounded, sums stay float32."""

import jax
from jax.extend import core

# Bits of mantissa that a product's operands keep; both formats have float32's eight bits of exponent.
MANTISSA_BITS = {'tf32': 10, 'bf16': 7}


def rounded(function, precision):
    """`function` with both operands of every matrix product in it rounded to 'tf32' or 'bf16'.

    The products of gradients that `function` takes are among them, which is why this works on the traced program: a
    rounding inside a model would leave the cotangents as they are. A GPU's TF32 and bf16 modes compute the same up to
    the order of sums.

    Args:
        function: of arrays, or trees of them.
        precision: one of `MANTISSA_BITS`.
    """
    bits = MANTISSA_BITS[precision]

    def changed(*arguments):
        program, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        leaves = _evaluate(program, bits, *jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(shapes), leaves)

    return changed


def _evaluate(program, bits, *arguments):
    """The results of a traced program, a `ClosedJaxpr`, whose equations run one after the other."""
    jaxpr = program.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*program.consts, *arguments], strict=True))
    for equation in jaxpr.eqns:
        operands = [_value(atom, values) for atom in equation.invars]
        if equation.primitive.name == 'dot_general':
            operands = [jax.lax.reduce_precision(operand, 8, bits) for operand in operands]
        params = {name: _inner(value, bits) for name, value in equation.params.items()}
        results = equation.primitive.bind(*operands, **equation.primitive.get_bind_params(params))
        results = results if equation.primitive.multiple_results else [results]
        values.update(zip(equation.outvars, results, strict=True))
    return [_value(atom, values) for atom in jaxpr.outvars]


def _value(atom, values):
    return atom.val if isinstance(atom, core.Literal) else values[atom]


def _inner(value, bits):
    """A parameter of an equation; programs among them, of loops, branches and calls, are changed in the same way."""
    if isinstance(value, core.ClosedJaxpr):
        return jax.make_jaxpr(lambda *arguments: _evaluate(value, bits, *arguments))(*value.in_avals)
    if isinstance(value, core.Jaxpr):
        return _inner(core.ClosedJaxpr(value, ()), bits).jaxpr
    if type(value) is tuple:  # the branches of a `cond`
        return tuple(_inner(part, bits) for part in value)
    return value
