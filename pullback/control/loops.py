"""Loops as operators: `map`, `scan`, and `associative_scan`, which needs none.

Each is a Python loop where tensors have values.  In a capture it is a node whose body is a graph;
the derivative of a loop is a loop, backwards for `scan`.  Read `cond.py` first, `whiles.py` next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..array.dims import wrap_dim
from ..core.handle import Tensor
from ..func.vmap import vmap
from ..interp.functionalize import Functionalize
from ..interp.trace import Trace
from ..pytree import tree_flatten, tree_unflatten
from ..table.packets import ops
from ..threads.state import state
from .derivatives import asked, pull_back, push_forward, pushed_through, quiet, remember
from .nodes import OfGraphs, closed, emitted
from .subgraph import (
    HigherOrder,
    capture,
    floats,
    hidden,
    results_of,
    row_of,
    rows_of,
    with_those,
)


def _tensors(tree: Any, what: str) -> tuple[list[Tensor], Any]:
    flat, spec = tree_flatten(tree)
    if not all(isinstance(t, Tensor) for t in flat):
        kind = next(type(t).__name__ for t in flat if not isinstance(t, Tensor))
        raise errors.RefusedValue(f"{what} must consist of tensors, got {kind} "
                                  f"({errors.user_line(3)})")
    return flat, spec


def _refuse(name: str, function: Any, dim: Any = 0, reverse: Any = False) -> None:
    """Refuse what is no function, no dim or no direction."""
    if not callable(function):
        kind = errors.BadValue if name == "associative_scan" else errors.RefusedValue
        what = "the function" if name == "map" else "Combine_fn"
        raise kind(f"{what} must be a callable, but got {type(function).__name__} "
                   f"({errors.user_line(3)})")
    if not isinstance(dim, int):
        raise errors.ArgumentError(
            f"{name}: dim must be an int, but got {type(dim).__name__} ({errors.user_line(3)})")
    if not isinstance(reverse, bool):
        raise errors.RefusedValue(
            f"{name}: Reverse must be a bool, but got {type(reverse)} ({errors.user_line(3)})")


def _length(xs: Sequence[Tensor], what: str) -> int:
    """The common size of the first dim."""
    sizes = [t.shape[0] if t.ndim else None for t in xs]
    if not sizes or None in sizes or sizes[0] == 0 or any(s != sizes[0] for s in sizes):
        raise errors.RefusedValue(
            f"{what}: the leading dims of the tensors must be the same and not 0, got shapes "
            f"{[list(t.shape) for t in xs]} ({errors.user_line(3)})")
    return sizes[0]


def _stacked(steps: Sequence[Sequence[Tensor]]) -> tuple:
    return tuple([ops.stack(list(parts), 0) for parts in zip(*steps)])


def _stack_pytree(trees: Sequence[Any]) -> Any:
    """Trees of one structure as one tree of stacked tensors."""
    specs = [tree_flatten(tree) for tree in trees]
    return tree_unflatten(list(_stacked([leaves for leaves, _ in specs])), specs[0][1])


def _unstack_pytree(xs: Any) -> list[Any]:
    """The tree of each step, along the first dim of the tensors."""
    flat, spec = _tensors(xs, "xs")
    return [tree_unflatten([t[i] for t in flat], spec) for i in range(_length(flat, "xs"))]


def _in_front(t: Tensor, dim: int | None, place: int) -> Tensor:
    return t if dim is None or dim == place else ops.movedim(t, dim, place)


# map ----------------------------------------------------------------------------------------------


def map(f: Callable, xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each `x` along the first dim of `xs`, the results stacked."""
    _refuse("map", f)
    flat, spec = _tensors(xs, "map: xs")
    rest, rest_spec = tree_flatten(args)
    tensors = [v for v in rest if isinstance(v, Tensor)]
    _length(flat, "map")
    n = len(flat)

    def body(*leaves: Tensor) -> Any:
        more = iter(leaves[n:])
        other = [next(more) if isinstance(v, Tensor) else v for v in rest]
        return f(tree_unflatten(list(leaves[:n]), spec), *tree_unflatten(other, rest_spec))

    if not hidden([*flat, *tensors]):
        outs = [body(*[t[i] for t in flat], *tensors) for i in range(flat[0].shape[0])]
        leaves = [_tensors(o, "map: what the function returns")[0] for o in outs]
        return tree_unflatten(list(_stacked(leaves)), tree_flatten(outs[0])[1])
    rows = [row_of(t) for t in flat]
    (found,), extras = capture([body], [[*rows, *tensors]], "the body of map()", [tuple])
    out = _Map.apply(found.module, n, *flat, *tensors, *extras)
    return tree_unflatten(list(out), found.spec)


def _map(f: Callable, xs: Sequence[Tensor], args: Sequence[Tensor] = ()) -> tuple:
    if hidden([*xs, *args]):
        return _Map.apply(f, len(xs), *xs, *args)
    return _stacked([f(*[t[i] for t in xs], *args) for i in range(xs[0].shape[0])])


map_operator = HigherOrder("map_impl", _map)


class _Map(OfGraphs):
    @staticmethod
    def forward(f, n, *operands):
        level = state.stack[state.mode]
        xs, args = operands[:n], operands[n:]
        if isinstance(level, Functionalize):
            return level.handed_on(_map, f, xs, args)
        if not isinstance(level, Trace):
            return _stacked([f(*[t[i] for t in xs], *args) for i in range(xs[0].shape[0])])
        (module,) = closed([f], [[*[row_of(t) for t in xs], *args]], "the body of map()",
                           [tuple], level)
        return emitted(level, map_operator, ["body_graph"], [module], operands,
                       lambda graphs, v: (*graphs, v[:n], v[n:]),
                       lambda: [rows_of(t, xs[0].shape[0]) for t in results_of(module)])

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.f, ctx.n, *operands = inputs
        remember(ctx, operands, output)

    @staticmethod
    def backward(ctx, *grads):
        operands, n, f, moving = ctx.saved_tensors, ctx.n, quiet(ctx.f), asked(ctx.moving, grads)
        wanted = [i for i in floats(operands) if ctx.needs_input_grad[i + 2]]
        width, m = len(moving), len(operands) - n

        def pulled(*v):
            values = (*v[:n], *v[n + width:])
            return pull_back(f, values, wanted, moving, v[n:n + width])

        found = map_operator(pulled, [*operands[:n], *[grads[i] for i in moving]],
                             list(operands[n:]))
        found = [g if i < n else g.sum(0) for i, g in zip(wanted, found)]
        return None, None, *with_those([None] * (n + m), wanted, found)

    @staticmethod
    def jvp(ctx, *tangents):
        operands, n, f, moving = ctx.saved_tensors, ctx.n, pushed_through(ctx.f), ctx.moving
        places = [i for i in floats(operands) if tangents[i + 2] is not None]
        along = [i for i in places if i < n]
        beside = [i for i in places if i >= n]
        a, m = len(along), len(operands) - n

        def pushed(*v):
            values, at = (*v[:n], *v[n + a:n + a + m]), n + a + m
            return push_forward(f, values, places, moving, (*v[n:n + a], *v[at:]))

        found = map_operator(pushed, [*operands[:n], *[tangents[i + 2] for i in along]],
                             [*operands[n:], *[tangents[i + 2] for i in beside]])
        return tuple(with_those([None] * ctx.count, moving, found))

    @staticmethod
    def vmap(info, in_dims, f, n, *operands):
        dims = in_dims[2:]
        moved = [_in_front(t, d, 1 if i < n else 0)
                 for i, (t, d) in enumerate(zip(operands, dims))]
        mapped = vmap(f, in_dims=tuple([None if d is None else 0 for d in dims]),
                      randomness=info.randomness)
        out = map_operator(mapped, moved[:n], moved[n:])
        return tuple(out), (1,) * len(out)


# scan ---------------------------------------------------------------------------------------------


def scan(combine_fn: Callable, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False,
         checkpoint: str | int = "all") -> tuple:
    """`carry, y = combine_fn(carry, x)` for each `x` along `dim` of `xs`: the last carry, and all
    `y` stacked along `dim`, or along the first where they have too few.

    The gradient of a captured scan needs what was carried into each step.  `checkpoint` says for
    how many of them it is kept: "all", "sqrt" for about the square root of their number, or a
    number; steps between two of these run once more, and the length is no symbol then.
    """
    _refuse("scan", combine_fn, dim, reverse)
    _refuse_checkpoint(checkpoint)
    carry, carry_spec = _tensors(init, "scan: init")
    flat, spec = _tensors(xs, "scan: xs")
    if not flat:
        return init, xs
    if not carry:
        raise errors.RefusedValue(f"scan() needs an init value ({errors.user_line(2)})")
    place = wrap_dim(dim, flat[0].ndim)
    flat = [_in_front(t, wrap_dim(dim, t.ndim), 0) for t in flat]
    _length(flat, "scan")
    flat = [ops.flip(t, (0,)) for t in flat] if reverse else flat
    n, m = len(carry), len(flat)
    if checkpoint != "all" and flat[0].shape[0] > 2 and hidden([*carry, *flat]):
        last, y = _in_parts(combine_fn, init, flat, spec, checkpoint)
        ys, y_spec = tree_flatten(y)
        ys = [_in_front(ops.flip(t, (0,)) if reverse else t, 0, place if place < t.ndim else 0)
              for t in ys]
        return last, tree_unflatten(ys, y_spec)

    def body(*leaves: Tensor) -> tuple:
        out = combine_fn(tree_unflatten(list(leaves[:n]), carry_spec),
                         tree_unflatten(list(leaves[n:n + m]), spec))
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise errors.RefusedValue(errors.text(
                "scan: combine_fn must return two values, what is carried on and the result of the "
                f"step ({errors.user_line(2)})", f"got: {type(out).__name__}"))
        new, y = out
        got, got_spec = tree_flatten(new)
        _same_carry("scan", carry, carry_spec, got, got_spec)
        return (*got, y)

    if hidden([*carry, *flat]):
        rows = [row_of(t) for t in flat]
        (found,), extras = capture([body], [[*carry, *rows]], "the body of scan()", [list])
        out = _Scan.apply(found.module, n, m, *carry, *flat, *extras)
        *carry, y = tree_unflatten(list(out), found.spec)
        ys, y_spec = tree_flatten(y)
    else:
        steps = []
        for i in range(flat[0].shape[0]):
            *carry, y = body(*carry, *[t[i] for t in flat])
            leaves, y_spec = _tensors(y, "scan: what the function returns")
            steps.append(leaves)
        ys = list(_stacked(steps))
    ys = [_in_front(ops.flip(t, (0,)) if reverse else t, 0, place if place < t.ndim else 0)
          for t in ys]
    return tree_unflatten(list(carry), carry_spec), tree_unflatten(ys, y_spec)


def _refuse_checkpoint(checkpoint: Any) -> None:
    """Refuse what says no number of steps."""
    if checkpoint in ("all", "sqrt") if isinstance(checkpoint, str) else (
            type(checkpoint) is int and checkpoint > 0):
        return
    raise errors.RefusedValue(errors.text(
        f"scan: checkpoint must be \"all\", \"sqrt\" or a positive int ({errors.user_line(3)})",
        f"got: {checkpoint!r}"))


def _in_parts(function: Callable, init: Any, flat: Sequence[Tensor], spec: Any,
              checkpoint: str | int) -> tuple:
    """A scan of scans: the gradient of the outer keeps what is carried into each of the inner."""
    n = int(flat[0].shape[0])
    size = math.isqrt(n) if isinstance(checkpoint, str) else -(-n // checkpoint)
    main = n // size * size

    def part(carry: Any, rows: Any) -> tuple:
        return scan(function, carry, rows)

    rows = [t[:main].reshape((main // size, size, *t.shape[1:])) for t in flat]
    carry, y = scan(part, init, tree_unflatten(rows, spec))
    ys, y_spec = tree_flatten(y)
    ys = [t.reshape((main, *t.shape[2:])) for t in ys]
    if main < n:
        carry, y = scan(function, carry, tree_unflatten([t[main:] for t in flat], spec))
        ys = [ops.cat([a, b], 0) for a, b in zip(ys, tree_flatten(y)[0])]
    return carry, tree_unflatten(ys, y_spec)


def _same_carry(name: str, old: list, old_spec: Any, new: list, new_spec: Any) -> None:
    """Refuse a step that turns what is carried into something else."""
    one = [(tuple(t.shape), t.dtype) if isinstance(t, Tensor) else type(t).__name__ for t in old]
    two = [(tuple(t.shape), t.dtype) if isinstance(t, Tensor) else type(t).__name__ for t in new]
    if old_spec != new_spec or one != two:
        raise errors.TransformError(errors.text(
            f"{name}(): what is carried changes from step to step ({errors.user_line(3)})",
            [f"given: {one}", f"returned: {two}"],
            "let the function return a carry of the same structure, shapes and dtypes"))


def _steps(f: Callable, init: Sequence[Tensor], xs: Sequence[Tensor],
           args: Sequence[Tensor]) -> tuple:
    carry, rows, n = list(init), [], len(init)
    for i in range(xs[0].shape[0]):
        out = f(*carry, *[t[i] for t in xs], *args)
        carry = list(out[:n])
        rows.append(out[n:])
    return (*carry, *_stacked(rows))


def _scan(f: Callable, init: Sequence[Tensor], xs: Sequence[Tensor],
          additional_inputs: Sequence[Tensor] = ()) -> tuple:
    if hidden([*init, *xs, *additional_inputs]):
        return _Scan.apply(f, len(init), len(xs), *init, *xs, *additional_inputs)
    return _steps(f, init, xs, additional_inputs)


scan_operator = HigherOrder("scan", _scan)


class _Scan(OfGraphs):
    @staticmethod
    def forward(f, n, m, *operands):
        level = state.stack[state.mode]
        init, xs, args = operands[:n], operands[n:n + m], operands[n + m:]
        if isinstance(level, Functionalize):
            return level.handed_on(_scan, f, init, xs, args)
        if not isinstance(level, Trace):
            return _steps(f, init, xs, args)
        (module,) = closed([f], [[*init, *[row_of(t) for t in xs], *args]], "the body of scan()",
                           [list], level)

        def fakes() -> list[Tensor]:
            found = results_of(module)
            return [*found[:n], *[rows_of(t, xs[0].shape[0]) for t in found[n:]]]

        return emitted(
            level, scan_operator, ["scan_combine_graph"], [module], operands,
            lambda graphs, v: (*graphs, v[:n], v[n:n + m], tuple(v[n + m:])), fakes)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.f, ctx.n, ctx.m, *operands = inputs
        remember(ctx, operands, output)

    @staticmethod
    def backward(ctx, *grads):
        v, n, m, f, moving = ctx.saved_tensors, ctx.n, ctx.m, quiet(ctx.f), ctx.moving
        init, xs, args = list(v[:n]), list(v[n:n + m]), list(v[n + m:])

        def remembering(*values):  # what was carried into each step
            out = f(*values)
            return (*out[:n], *[ops.clone(c) for c in values[:n]])

        carried = scan_operator(remembering, init, xs, args)[n:]
        varying = floats(v)
        cs = [i for i in varying if i < n]
        ds = [i for i in varying if i >= n + m]
        ys = asked([i for i in moving if i >= n], grads)
        ends = [ops.zeros_like(v[i]) if grads[i] is None else grads[i] for i in cs]
        zeros = [ops.zeros_like(v[i]) for i in ds]

        def back(*values):
            dc, sums = values[:len(cs)], values[len(cs):len(cs) + len(ds)]
            rest = values[len(cs) + len(ds):]
            at, dy, more = rest[:n + m], rest[n + m:n + m + len(ys)], rest[n + m + len(ys):]
            found = dict(zip(varying, pull_back(f, (*at, *more), varying, [*cs, *ys],
                                                (*dc, *dy))))
            return (*[found[i] for i in cs], *[s + found[i] for s, i in zip(sums, ds)],
                    *[found[i] for i in varying if n <= i < n + m])

        rows = [ops.flip(t, (0,)) for t in (*carried, *xs, *[grads[i] for i in ys])]
        out = scan_operator(back, [*ends, *zeros], rows, args)
        at = len(cs) + len(ds)
        found = dict(zip([*cs, *ds], out[:at]))
        found |= dict(zip([i for i in varying if n <= i < n + m],
                          [ops.flip(t, (0,)) for t in out[at:]]))
        return None, None, None, *[found.get(i) for i in range(len(v))]

    @staticmethod
    def jvp(ctx, *tangents):
        v, n, m, f = ctx.saved_tensors, ctx.n, ctx.m, pushed_through(ctx.f)
        varying = floats(v)
        given = {i: ops.zeros_like(v[i]) if tangents[i + 3] is None else tangents[i + 3]
                 for i in varying}
        cs, es = [i for i in varying if i < n], [i for i in varying if n <= i < n + m]
        ds = [i for i in varying if i >= n + m]
        ys = [i for i in ctx.moving if i >= n]

        def both(*values):
            at = iter(values)
            c, tc = [next(at) for _ in range(n)], [next(at) for _ in cs]
            x, tx = [next(at) for _ in range(m)], [next(at) for _ in es]
            a, ta = [next(at) for _ in v[n + m:]], [next(at) for _ in ds]
            out = f(*c, *x, *a)
            t = push_forward(f, (*c, *x, *a), varying, [*cs, *ys], (*tc, *tx, *ta))
            return (*out[:n], *t)

        out = scan_operator(
            both, [*v[:n], *[given[i] for i in cs]], [*v[n:n + m], *[given[i] for i in es]],
            [*v[n + m:], *[given[i] for i in ds]])
        return tuple(with_those([None] * ctx.count, [*cs, *ys], out[n:]))

    @staticmethod
    def vmap(info, in_dims, f, n, m, *operands):
        dims = in_dims[3:]
        size = info.batch_size
        moved = []
        for i, (t, d) in enumerate(zip(operands, dims)):
            if i < n and d is None:  # what is carried differs per example after one step
                t = ops.expand(ops.unsqueeze(t, 0), (size, *t.shape))
            else:
                t = _in_front(t, d, 1 if n <= i < n + m else 0)
            moved.append(t)
        inside = tuple([0 if i < n or d is not None else None for i, d in enumerate(dims)])
        mapped = vmap(f, in_dims=inside, randomness=info.randomness)
        out = scan_operator(mapped, moved[:n], moved[n:n + m], moved[n + m:])
        return tuple(out), (*[0] * n, *[1] * (len(out) - n))


# associative_scan ---------------------------------------------------------------------------------


def associative_scan(combine_fn: Callable, xs: Any, dim: int, reverse: bool = False,
                     combine_mode: str = "pointwise") -> Any:
    """All prefixes of `xs` along `dim`, combined by an associative function of two elements.

    About 2 log2(n) calls of `combine_fn` on many elements at once; `combine_mode="generic"` maps a
    function of single elements over them, "pointwise" promises that it need not be.
    """
    _refuse("associative_scan", combine_fn, dim, reverse)
    if combine_mode not in ("pointwise", "generic"):
        raise errors.BadValue("Combine_mode must either 'pointwise' or 'generic', but got "
                              f"{combine_mode} ({errors.user_line(2)})")
    flat, spec = _tensors(xs, "associative_scan: xs")
    dims = [wrap_dim(dim, t.ndim) for t in flat]
    flat = [_in_front(t, d, 0) for t, d in zip(flat, dims)]
    _length(flat, "associative_scan")
    flat = [ops.flip(t, (0,)) for t in flat] if reverse else flat

    def combine(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        out = combine_fn(tree_unflatten(left, spec), tree_unflatten(right, spec))
        leaves, out_spec = tree_flatten(out)
        _same_carry("associative_scan", left, spec, leaves, out_spec)
        return leaves

    if combine_mode == "generic":
        one = combine

        def combine(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
            if not left[0].shape[0]:
                return left
            n = len(left)
            return list(vmap(lambda *v: tuple(one(list(v[:n]), list(v[n:]))))(*left, *right))

    out = _prefixes(combine, flat)
    out = [ops.flip(t, (0,)) for t in out] if reverse else out
    return tree_unflatten([_in_front(t, 0, d) for t, d in zip(out, dims)], spec)


def _prefixes(combine: Callable, xs: list[Tensor]) -> list[Tensor]:
    """Pairs are combined, their prefixes found, and the elements between filled in."""
    n = xs[0].shape[0]
    if n < 2:
        return xs
    odd = _prefixes(combine, combine([t[0:n - 1:2] for t in xs], [t[1::2] for t in xs]))
    head = [t[:-1] for t in odd] if n % 2 == 0 else odd
    even = combine(head, [t[2::2] for t in xs])
    even = [ops.cat([t[:1], e], 0) for t, e in zip(xs, even)]
    return [_woven(e, o) for e, o in zip(even, odd)]


def _woven(even: Tensor, odd: Tensor) -> Tensor:
    """Rows of two tensors in turn; the first may have one more."""
    n = odd.shape[0]
    pairs = ops.stack([even[:n], odd], 1).reshape((2 * n, *odd.shape[1:]))
    return pairs if even.shape[0] == n else ops.cat([pairs, even[n:]], 0)
