"""Jacobians, Hessians and products with them, as functions of a function and its inputs.

The older sibling of `func`: inputs and outputs are tensors or tuples of them, results have a
history only with `create_graph`, and `strict` turns "does not depend on it" from zeros into an
error.  All of it is `autograd.grad`, forward mode for Jacobians where asked.  Read next:
`engine.py`, `../func/jacobian.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import errors
from ..core.handle import Tensor
from ..table.packets import ops
from ..threads.state import state
from .grad_mode import _Switch, enable_grad
from .gradients import grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_STRATEGIES = ("forward-mode", "reverse-mode")
_SCALAR_INPUT = (
    "The vector v can only be None if the input to the user-provided function is a single Tensor "
    "with a single element."
)
_SCALAR_OUTPUT = (
    "The vector v can only be None if the user-provided function returns a single Tensor with a "
    "single element."
)


def _fail(what: str, cure: str = "") -> errors.TransformError:
    return errors.TransformError(errors.text(f"{what} ({errors.user_line(2)})", cure=cure))


def _strictly(what: str) -> errors.TransformError:
    return errors.TransformError(
        errors.text(
            f"{what} This is not allowed in strict mode. ({errors.user_line(2)})",
            cure="pass strict=False, which gives zeros where nothing depends",
        )
    )


def _tuple(value, what: str, function: str) -> tuple[bool, tuple]:
    """(was it a tuple?, the tensors as a tuple)."""
    many = isinstance(value, tuple)
    values = value if many else (value,)
    for i, v in enumerate(values):
        if not isinstance(v, Tensor):
            which = f"value at index {i}" if many else f"given {what}"
            raise errors.ArgumentError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but "
                f"the {which} has type {type(v).__name__} ({errors.user_line(2)})"
            )
    return many, values


def _fresh(values: tuple, create_graph: bool, tracked: bool) -> tuple:
    """New handles: what the function captures from outside is not confused with its arguments."""
    return tuple(
        [
            ops.view_as(t, t)
            if create_graph and t.requires_grad
            else t.detach().requires_grad_(tracked)
            for t in values
        ]
    )


def _result(value, create_graph: bool):
    """Tensors without history, unless it was asked for."""
    if isinstance(value, tuple):
        return tuple([_result(v, create_graph) for v in value])
    return value if create_graph else value.detach()


def _check_vector(v: tuple, like: tuple, many: bool) -> None:
    if len(v) != len(like):
        raise _fail(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
            if many
            else "The given v should contain a single Tensor."
        )
    for i, (a, b) in enumerate(zip(v, like)):
        if tuple(a.shape) != tuple(b.shape):
            entry = f"Entry {i} in " if many else ""
            raise _fail(
                f"{entry}v has invalid size: should be {b.shape} but got {a.shape}."
            )


def _vector(v, like: tuple, many: bool, function: str, create_graph: bool, missing: str):
    """The vector of a product, checked; None for the number one."""
    if v is not None:
        v = _fresh(_tuple(v, "v", function)[1], create_graph, False)
        _check_vector(v, like, many)
    elif len(like) != 1 or like[0].numel() != 1:
        raise _fail(missing)
    return v


def _check_outputs(outputs: tuple, strict: bool) -> None:
    for i, o in enumerate(outputs):
        if strict and not o.requires_grad:
            raise _strictly(
                f"Output {i} of the user-provided function does not require gradients: it must be "
                "computed in a differentiable manner from the input."
            )


def _check_jacobian(jacobian: tuple, strict: bool) -> None:
    if not strict:
        return
    for i, g in enumerate(jacobian):
        if g is None:
            raise _strictly(
                f"The output of the user-provided function is independent of input {i}."
            )
        if not g.requires_grad:
            raise _strictly(
                "While computing the hessian, found that the jacobian of the user-provided "
                f"function with respect to input {i} is independent of the input (as that of a "
                "linear function is)."
            )


def _pull(
    outputs: tuple, inputs: tuple, seeds=None, create_graph=False, retain=None, batched=False
) -> tuple:
    """`grad` of those outputs that have a history; None for what does not depend."""
    seeds = (None,) * len(outputs) if seeds is None else seeds
    pairs = [(o, s) for o, s in zip(outputs, seeds) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        [o for o, _ in pairs],
        inputs,
        [s for _, s in pairs],
        retain_graph=retain,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=batched,
    )


def _filled(grads: tuple, like: tuple, strict: bool, create_graph: bool, what: str) -> tuple:
    """Zeros in the place of None, or errors about both Nones and constants if strict."""
    filled = []
    for i, (g, t) in enumerate(zip(grads, like)):
        if g is None:
            if strict:
                raise _strictly(
                    f"The {what} of the user-provided function is independent of input {i}.")
            g = ops.zeros_like(t)
        elif strict and create_graph and not g.requires_grad:
            order = "jacobian" if what == "output" else "hessian"
            raise _strictly(
                f"The {order} of the user-provided function is independent of input {i}, which "
                "create_graph=True would need."
            )
        filled.append(g)
    return tuple(filled)


def _unpacked(values: tuple, many: bool):
    return values if many else values[0]


def _recording(create_graph: bool) -> _Switch:
    return _Switch(create_graph or state.record[-1])


def vjp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """The outputs of `func(*inputs)`, and v times the Jacobian."""
    with enable_grad():
        many, inputs = _tuple(inputs, "inputs", "vjp")
        inputs = _fresh(inputs, create_graph, True)
        several, outputs = _tuple(func(*inputs), "outputs of the user-provided function", "vjp")
        _check_outputs(outputs, strict)
        v = _vector(v, outputs, several, "vjp", create_graph, _SCALAR_OUTPUT)
    with _recording(create_graph):
        found = _pull(outputs, inputs, v, create_graph)
        found = _filled(found, inputs, strict, create_graph, "output")
    outputs, found = _result(outputs, create_graph), _result(found, create_graph)
    return _unpacked(outputs, several), _unpacked(found, many)


def jvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """The outputs of `func(*inputs)`, and the Jacobian times v.

    By two sweeps, so that functions of which only backward is known work too: the first is linear
    in its seeds, and the second transposes it.  `func.jvp` is forward mode proper.
    """
    with enable_grad():
        many, inputs = _tuple(inputs, "inputs", "jvp")
        inputs = _fresh(inputs, create_graph, True)
        v = _vector(v, inputs, many, "jvp", create_graph, _SCALAR_INPUT)
        several, outputs = _tuple(func(*inputs), "outputs of the user-provided function", "jvp")
        _check_outputs(outputs, strict)
        seeds = tuple([ops.zeros_like(o).requires_grad_() for o in outputs])
        pulled = _pull(outputs, inputs, seeds, create_graph=True)
        if strict:
            for i, g in enumerate(pulled):
                if g is None:
                    raise _strictly(
                        f"The output of the user-provided function is independent of input {i}."
                    )
    with _recording(create_graph):
        found = _pull(pulled, seeds, v, create_graph)
        found = _filled(found, outputs, strict, create_graph, "output")
    outputs, found = _result(outputs, create_graph), _result(found, create_graph)
    return _unpacked(outputs, several), _unpacked(found, several)


def _strategy(strategy: str) -> None:
    if strategy not in _STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )


def jacobian(func: Callable, inputs, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode"):
    """The Jacobian of `func` at `inputs`: for each output, for each input, the derivatives.

    Tuples of outputs or inputs give tuples, in this order; `vectorize` computes all rows (columns
    in forward mode) at once.
    """
    _strategy(strategy)
    compute = _columns if strategy == "forward-mode" else _rows
    with enable_grad():
        many, inputs = _tuple(inputs, "inputs", "jacobian")
        several, found = compute(func, inputs, create_graph, strict, vectorize)
    found = _result(found, create_graph)
    blocks = tuple([_unpacked(row, many) for row in found])
    return _unpacked(blocks, several)


def _units(t: Tensor) -> Tensor:
    """All unit vectors of a tensor's space, the number of the unit in front."""
    n = t.numel()
    return ops.reshape(ops.eye(n, dtype=t.dtype, device=t.device), (n, *t.shape))


def _independent(i: int, k: int) -> errors.TransformError:
    return _strictly(f"Output {i} of the user-provided function is independent of input {k}.")


def _rows(func, inputs, create_graph, strict, vectorize) -> tuple:
    """By reverse mode: a sweep per element of the outputs, or one for all of an output."""
    inputs = _fresh(inputs, create_graph, True)
    several, outputs = _tuple(func(*inputs), "outputs of the user-provided function", "jacobian")
    _check_outputs(outputs, strict)
    table = []
    for i, out in enumerate(outputs):
        shapes = [(*out.shape, *t.shape) for t in inputs]
        units = _units(out.detach())
        if vectorize and out.numel():
            stacked = _pull((out,), inputs, (units,), create_graph, True, batched=True)
        else:
            rows = (
                [
                    _pull((out,), inputs, (unit,), create_graph, True)
                    for unit in ops.unbind(units, 0)
                ]
                if out.numel()
                else []
            )
            columns = list(zip(*rows)) if rows else [()] * len(inputs)
            stacked = [
                None
                if not c or all(g is None for g in c)
                else ops.stack([ops.zeros_like(t) if g is None else g for g in c], 0)
                for c, t in zip(columns, inputs)
            ]
        row = []
        for k, (g, t, shape) in enumerate(zip(stacked, inputs, shapes)):
            if g is None:
                if strict and out.numel():
                    raise _independent(i, k)
                g = ops.zeros(shape, dtype=t.dtype, device=t.device)
            elif strict and create_graph and not g.requires_grad:
                raise _strictly(
                    "The jacobian of the user-provided function is independent of "
                    f"input {k}, which create_graph=True would need."
                )
            row.append(ops.reshape(g, shape))
        table.append(tuple(row))
    return several, tuple(table)


def _columns(func, inputs, create_graph, strict, vectorize) -> tuple:
    """By forward mode: the function runs once per element of the inputs, or once per input."""
    from ..func.vmap import vmap
    from ..interp.jvp import Jvp
    from ..memory.views import current
    from . import transpose  # noqa: F401  (gives forward mode its last resort)

    inputs = _fresh(inputs, create_graph, False)
    seen: dict = {}

    def push(k: int, unit: Tensor) -> tuple:
        with Jvp() as level:
            args = [  # strict wants to know what does not vary, so the others stay as they are
                level.wrap(t, unit if j == k else ops.zeros_like(t)) if j == k or not strict else t
                for j, t in enumerate(inputs)
            ]
            several, outs = _tuple(func(*args), "outputs of the user-provided function", "jacobian")
            outs = [current(o) for o in outs]
            seen["several"] = several
            seen["shapes"] = [tuple(o.shape) for o in outs]
            moved = [level.tangent(o) for o in outs]
            if strict and None in moved:
                raise _independent(moved.index(None), k)
            return tuple(
                [ops.zeros_like(level.primal(o)) if t is None else t for o, t in zip(outs, moved)]
            )

    table = []
    for k, t in enumerate(inputs):
        units = _units(t.detach())
        if vectorize and t.numel():
            stacked = vmap(lambda unit, k=k: push(k, unit))(units)
        elif t.numel():
            columns = [push(k, unit) for unit in ops.unbind(units, 0)]
            stacked = [ops.stack(list(c), 0) for c in zip(*columns)]
        else:
            moved = push(k, ops.zeros_like(t))
            stacked = [ops.zeros((0, *m.shape), dtype=m.dtype, device=m.device) for m in moved]
        table.append(
            [ops.reshape(ops.movedim(c, 0, -1), (*c.shape[1:], *t.shape)) for c in stacked]
        )
    return seen["several"], tuple(zip(*table))


def _single(func: Callable, name: str, strict: bool) -> Callable:
    """The function, which must return one number."""

    def call(*inputs):
        out = func(*inputs)
        several, outputs = _tuple(out, "outputs of the user-provided function", name)
        _check_outputs(outputs, strict)
        if several:
            raise _fail(f"The function given to {name} should return a single Tensor")
        if out.numel() != 1:
            raise _fail(
                f"The Tensor returned by the function given to {name} should contain a single "
                "element",
                "reduce it, for instance with .sum()",
            )
        return ops.reshape(out, ())

    return call


def hessian(func: Callable, inputs, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode"):
    """The second derivatives of a scalar function: for each pair of inputs, a block."""
    many, inputs = _tuple(inputs, "inputs", "hessian")
    _strategy(outer_jacobian_strategy)
    scalar = _single(func, "hessian", strict)

    def first(*args):
        if outer_jacobian_strategy == "forward-mode":
            args = tuple([a if a.requires_grad else a.requires_grad_() for a in args])
        found = jacobian(scalar, args, create_graph=True)
        _check_jacobian(found, strict)
        return found

    if strict and outer_jacobian_strategy == "forward-mode":
        _check_blocks(first, inputs)
        strict = False  # the function runs again below, on tensors that show no dependence
    found = jacobian(first, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if many else found[0][0]


def _check_blocks(first: Callable, inputs: tuple) -> None:
    """Refuse a second derivative that is zero because nothing depends, found by reverse mode."""
    with enable_grad():
        args = _fresh(inputs, False, True)
        for i, g in enumerate(first(*args)):
            pulled = _pull((g,), args, (ops.ones_like(g),), retain=True)
            if None in pulled:
                raise _independent(i, pulled.index(None))


def _first(name: str, func: Callable, inputs, v, create_graph: bool, strict: bool) -> tuple:
    """For products with a Hessian: are inputs many, the inputs, v, the value, the gradient."""
    with enable_grad():
        many, inputs = _tuple(inputs, "inputs", name)
        inputs = _fresh(inputs, create_graph, True)
        v = _vector(v, inputs, many, name, create_graph, _SCALAR_INPUT)
        out = func(*inputs)
        first = _pull((_single(lambda: out, name, strict)(),), inputs, create_graph=True)
        _check_jacobian(first, strict)
    return many, inputs, v, out, first


def vhp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """The value of a scalar function, and v times its Hessian."""
    many, inputs, v, out, first = _first("vhp", func, inputs, v, create_graph, strict)
    with _recording(create_graph):
        found = _pull(first, inputs, v, create_graph)
        found = _filled(found, inputs, strict, create_graph, "jacobian")
    return _result(out, create_graph), _unpacked(_result(found, create_graph), many)


def hvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """The value of a scalar function, and its Hessian times v."""
    many, inputs, v, out, first = _first("hvp", func, inputs, v, create_graph, strict)
    with enable_grad():
        seeds = tuple([ops.zeros_like(t).requires_grad_() for t in inputs])
        pulled = _pull(first, inputs, seeds, create_graph=True)
    with _recording(create_graph):
        found = _pull(pulled, seeds, v, create_graph)
        found = _filled(found, inputs, strict, create_graph, "gradient")
    return _result(out, create_graph), _unpacked(_result(found, create_graph), many)
