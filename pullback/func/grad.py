"""`grad`, `vjp` and `jvp`: thin functions around one level each.

A `Lift` level makes `grad` nestable; a `Jvp` level carries tangents.  Inputs that the function
changes in place are changed afterwards too.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from .. import errors
from ..autograd import transpose  # noqa: F401  (gives forward mode its last resort)
from ..autograd.grad_mode import _Switch
from ..autograd.gradients import grad as engine_grad
from ..core.handle import Tensor
from ..core.tape import Origin
from ..interp.box import snapshot
from ..interp.jvp import Jvp
from ..interp.lift import Lift
from ..memory.assign import assign, hand_back
from ..memory.views import current
from ..parts.trees import (
    closed,
    lowered,
    on_parts,
    opened,
    put_together,
    taken_apart,
    takes_tensors,
    through,
)
from ..pytree import tree_flatten, tree_map, tree_unflatten
from ..table.packets import ops


def _positions(argnums, count: int) -> tuple:
    if not isinstance(argnums, (int, tuple)):
        raise errors.TransformError(
            f"argnums must be int or Tuple[int, ...], got {type(argnums)} ({errors.user_line()})")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise errors.TransformError(f"argnums must be non-empty ({errors.user_line()})")
    for n in numbers:
        if not isinstance(n, int):
            raise errors.TransformError(
                f"argnums must be int or Tuple[int, ...], each element must be int, got {argnums} "
                f"({errors.user_line()})")
        if not -count <= n < count:
            raise errors.TransformError(
                f"argnum {n} is out of range: got argnum={n}, but only {count} positional inputs "
                f"({errors.user_line()})"
            )
    if len({n % count for n in numbers}) != len(numbers):
        raise errors.TransformError(
            f"argnums elements must be unique, got {argnums} ({errors.user_line()})"
        )
    return tuple(n % count for n in numbers)


def _slice_argnums(args, argnums, as_tuple: bool = True):
    """The arguments that `argnums` chooses; one number: that argument, in a tuple or not."""
    chosen = tuple(args[n] for n in _positions(argnums, len(args)))
    return chosen[0] if isinstance(argnums, int) and not as_tuple else chosen


class Lifting:
    """Arguments lifted to a level, and written back if the function changed them."""

    def __init__(self, level: Lift) -> None:
        self.level, self.pairs = level, []

    def track(self, value):
        if not isinstance(value, Tensor):
            return value
        if value.dtype.category < 2:
            raise errors.TransformError(errors.text(
                f"{self.level.title}: inputs must be floating or complex, got {value.dtype} "
                f"({errors.user_line(3)})",
                cure="convert with .float(), or leave it out of argnums"))
        t = self.level.wrap(value)
        t._edge = Origin(t)
        self.pairs.append((value, t, t._payload))
        return t

    def leaves(self) -> list:
        return [t for _, t, _ in self.pairs]

    def write_back(self) -> None:
        for source, t, box in self.pairs:
            if t._payload is not box:
                hand_back(source, t._payload.inner)


def grad_and_value(func, argnums: Any = 0, has_aux: bool = False) -> Any:
    """A function that returns the gradient of a scalar-valued `func`, and its value."""

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        chosen = _positions(argnums, len(args))
        if takes_tensors(func):
            return through(lambda f: grad_and_value(f, argnums, has_aux), func, args, kwargs, True)
        with Lift("func.grad") as level:
            lifting = Lifting(level)
            lifted = list(args)
            for n in chosen:
                lifted[n] = tree_map(lifting.track, args[n])
            edges = [t._edge for t in lifting.leaves()]
            out = func(*lifted, **kwargs)
            aux = None
            if has_aux:
                out, aux = _pair(out, "grad_and_value(f)(*args)")
            loss = _scalar(out)
            found = _gradients(level, [loss], edges, lifting, [None])
            value = level.unwrap(loss)
            aux = _lowered(aux, level.unwrap) if has_aux else None
        lifting.write_back()
        results = iter(found)
        grads = tuple(
            tree_map(lambda v: next(results) if isinstance(v, Tensor) else v, args[n])
            for n in chosen
        )
        grads = grads[0] if isinstance(argnums, int) else grads
        return (grads, (value, aux)) if has_aux else (grads, value)

    return wrapped


def _pair(out, what: str) -> tuple:
    """The output of a function with `has_aux`, and the rest."""
    if not (isinstance(out, tuple) and len(out) == 2):
        raise errors.TransformError(errors.text(
            f"{what}: output of function f should be a tuple of two with has_aux=True "
            f"({errors.user_line(3)})",
            f"it returned {type(out).__name__}"
            + (f" of {len(out)}" if isinstance(out, (tuple, list)) else ""),
            "return (output, aux)"))
    return out


def _lowered(aux, unwrap):
    """Auxiliary outputs as handles of the level below."""
    def lower(v):
        if not isinstance(v, Tensor):
            raise errors.TransformError(errors.text(
                f"has_aux=True: Expected tensors, got unsupported type {type(v)} "
                f"({errors.user_line(3)})",
                cure="return only tensors as auxiliary values"))
        return unwrap(current(v))

    return tree_map(lower, aux)


def _scalar(out) -> Tensor:
    if not isinstance(out, Tensor):
        raise errors.TransformError(errors.text(
            f"func.grad: the function must return a Tensor, got {type(out).__name__} "
            f"({errors.user_line(3)})"))
    if out.ndim != 0:
        raise errors.TransformError(errors.text(
            f"func.grad: the function must return a scalar tensor, got shape {list(out.shape)} "
            f"({errors.user_line(3)})",
            cure="reduce the output, for instance with .sum()"))
    return current(out)


def _gradients(level: Lift, outputs: list, edges: list, lifting: Lifting, seeds: list) -> list:
    """Gradients at the level's leaves, as handles of the level below."""
    from ..core.handle import make

    pairs = [(o, s) for o, s in zip(outputs, seeds) if level.mine(o) and o._edge is not None]
    sources = [make(box, e) for (_, _, box), e in zip(lifting.pairs, edges)]
    if pairs and sources:
        found = engine_grad(
            [o for o, _ in pairs],
            sources,
            [s for _, s in pairs],
            retain_graph=True,
            allow_unused=True,
        )
    else:
        found = [None] * len(sources)
    return [
        ops.zeros_like(v) if g is None else lowered(g, level.unwrap)
        for g, (v, _, _) in zip(found, lifting.pairs)
    ]


def value_and_grad(func, argnums: Any = 0, has_aux: bool = False) -> Any:
    """Like `grad_and_value`, with the value first."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return value, grads

    return wrapped


def grad(func, argnums: Any = 0, has_aux: bool = False) -> Any:
    """A function that returns the gradient of a scalar-valued `func`."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapped


def _only_tensors(what: str, out, outputs: list) -> None:
    if out is None or not outputs:
        raise errors.TransformError(
            f"{what}: Expected f to be a function that has non-empty output (got {out}) "
            f"({errors.user_line(3)})")
    for o in outputs:
        if not isinstance(o, Tensor):
            raise errors.TransformError(
                f"{what}: expected f(*primals) to return only tensors, got {type(o).__name__} "
                f"({errors.user_line(3)})")


def vjp(func, *primals, has_aux: bool = False) -> Any:
    """The output of `func(*primals)` and a function from cotangents to gradients."""
    if takes_tensors(func):
        found = vjp(on_parts(func, True), *opened(primals, True), has_aux=has_aux)
        return closed(found[0]), _closed_pull(found[1]), *closed(found[2:])
    level = Lift("func.vjp")
    with level:
        lifting = Lifting(level)
        lifted = tree_map(lifting.track, list(primals))
        edges = [t._edge for t in lifting.leaves()]
        out = func(*lifted)
        aux = None
        if has_aux:
            out, aux = _pair(out, "vjp(f, *primals)")
        outputs, spec = tree_flatten(taken_apart(out))
        _only_tensors("vjp(f, *primals)", out, outputs)
        outputs = [snapshot(current(o)) for o in outputs]
        values = [level.unwrap(o) for o in outputs]
        aux = _lowered(aux, level.unwrap) if has_aux else None
    lifting.write_back()

    def pull(cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        """Gradients of the primals; the graph is kept in any case."""
        flat, given_spec = tree_flatten(taken_apart(cotangents))
        if given_spec != spec:
            raise _unlike("Expected pytree structure of cotangents to be the same as that of the "
                          "outputs", cotangents=given_spec, outputs=spec)
        for c, o in zip(flat, values):
            if tuple(c.shape) != tuple(o.shape):
                raise errors.TransformError(errors.text(
                    f"vjp: a cotangent has shape {list(c.shape)}, the output {list(o.shape)} "
                    f"({errors.user_line(2)})"))
        recorded = contextlib.nullcontext() if create_graph is None else (
            _Switch(create_graph))
        with recorded, level:  # entered again: it may be long after the function returned
            found = _gradients(level, outputs, edges, lifting, [level.wrap(c) for c in flat])
        results = iter(found)
        grads = tuple(
            tree_map(lambda v: next(results) if isinstance(v, Tensor) else v, p) for p in primals
        )
        return grads

    result = put_together(tree_unflatten(values, spec))
    return (result, pull, aux) if has_aux else (result, pull)


def _closed_pull(pull):
    """The pullback of a function of tensors that are made of parts."""

    def closed_pull(cotangents, *args: Any, **kwargs: Any):
        return closed(pull(opened(cotangents, True), *args, **kwargs))

    return closed_pull


def _unlike(what: str, **specs: Any) -> Exception:
    """The error for structures that differ."""
    shown = "".join([f"\n  {name}: {spec}" for name, spec in specs.items()])
    return errors.TransformError(f"{what} ({errors.user_line(2)}){shown}")


def jvp(func, primals, tangents, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The output of `func(*primals)` and its directional derivative along `tangents`."""
    if not isinstance(primals, tuple):
        raise errors.TransformError(
            f"jvp(f, primals, tangents): Expected primals to be a tuple, got "
            f"{type(primals).__name__} ({errors.user_line(2)})"
        )
    if takes_tensors(func):
        return closed(jvp(on_parts(func, True), opened(primals, True), opened(tangents, True),
                          strict=strict, has_aux=has_aux))
    flat, spec = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if spec != other:
        raise _unlike("jvp(f, primals, tangents): Expected primals and tangents to have the same "
                      "python structure", primals=spec, tangents=other)
    if not flat:
        raise errors.TransformError(
            "jvp(f, primals, tangents): Expected primals to contain at least one Tensor, but they "
            f"are empty ({errors.user_line(2)})")
    for given in (*flat, *directions):
        if not isinstance(given, Tensor):
            raise errors.TransformError(
                "jvp(f, primals, tangents): Expected primals and tangents to only contain Tensors, "
                f"got {type(given).__name__} ({errors.user_line(2)})")
    for p, t in zip(flat, directions):
        if isinstance(p, Tensor) and tuple(p.shape) != tuple(t.shape):
            raise errors.TransformError(errors.text(
                f"jvp: a tangent has shape {list(t.shape)}, its primal {list(p.shape)} "
                f"({errors.user_line(2)})"))
    with Jvp() as level:
        duals = [level.wrap(p, t) for p, t in zip(flat, directions)]
        boxes = [d._payload for d in duals]
        out = func(*tree_unflatten(duals, spec))
        aux = None
        if has_aux:
            out, aux = _pair(out, "jvp(f, primals, tangents)")
        outputs, out_spec = tree_flatten(taken_apart(out))
        _only_tensors("jvp(f, primals, tangents)", out, outputs)
        values, derivatives = [], []
        for o in outputs:
            o = current(o)
            values.append(level.primal(o))
            t = level.tangent(o)
            if t is None and strict:
                raise errors.TransformError(
                    f"jvp with strict=True: an output does not depend on the inputs "
                    f"({errors.user_line()})"
                )
            derivatives.append(ops.zeros_like(values[-1]) if t is None else t)
        aux = _lowered(aux, level.primal) if has_aux else None
    for p, d, box in zip(flat, duals, boxes):
        if d._payload is not box:
            assign(p, d._payload.inner)
    result = tree_unflatten(values, out_spec), tree_unflatten(derivatives, out_spec)
    result = put_together(result)
    return (*result, aux) if has_aux else result


def linearize(func, *primals) -> Any:
    """The output of `func(*primals)` and the linear map from tangents to output tangents."""
    output = func(*primals)
    flat, spec = tree_flatten(primals)

    def push(*tangents):
        given, other = tree_flatten(tangents)
        if other != spec:
            raise errors.TransformError(
                "linearize: Expected the tangents to have the same argspec as the primals "
                f"({errors.user_line(2)})\n  primals: {spec}\n  tangents: {other}")
        for i, (p, t) in enumerate(zip(flat, given)):
            for what in ("shape", "dtype", "device"):
                wanted, found = getattr(p, what), getattr(t, what)
                if wanted != found:
                    raise errors.TransformError(
                        f"linearize: tangent {i} in flattened pytree doesn't match the {what} of "
                        f"its primal: {found} for {wanted} ({errors.user_line(2)})")
        return jvp(func, primals, tangents)[1]

    return output, push
