"""Calls of an `autograd.Function` under transforms, and `once_differentiable`.

`dispatch` sends a call to the highest level among its arguments, as `bind` does with an operator;
a rule per kind of interpreter says what the call means there, in terms of the same call one level
below.  Everything else (a trace above all) runs `forward` on its own values.  Read first:
`function.py`; then `mapped_function.py`.
"""

from __future__ import annotations

import functools

from .. import errors
from ..array.lazy import ARRAYS
from ..core.events import CALLED_FUNCTION, CALLS_FUNCTION
from ..core.handle import Tensor, is_buffer, make
from ..core.project import project
from ..core.stack import outlive
from ..core.tape import Accumulate, Node, level_own, make_node, on_tape
from ..interp.box import map_tensors
from ..interp.jvp import Dual, Jvp
from ..interp.lift import Lift
from ..interp.vmap import Batched, Vmap
from ..memory.views import refresh
from ..table.packets import ops
from ..threads.blocks import tied
from ..threads.state import fast, off, state
from .function import (
    _FLOATING,
    Function,
    FunctionCtx,
    VmapInfo,
    _finish,
    _new,
    _Plan,
    _plan_of,
)
from .grad_mode import is_grad_enabled
from .gradients import grad
from .mapped_function import map_nested, mapped_function


class _silent:
    """Recording off on every level: what `forward` does is nobody's history."""

    def __enter__(self):
        self.before = list(state.record)
        state.record[:] = [False] * len(self.before)
        off.add(self)
        mode = state.stack[state.mode] if state.mode else None
        self.capture = mode if hasattr(mode, "joined") else None
        if self.capture is not None:  # `backward` is their history: it is not cut off
            self.joined, mode.joined = mode.joined, True

    @tied
    def __exit__(self, *exc):
        if self.capture is not None:
            self.capture.joined = self.joined
        state.record[:] = self.before
        self.lost()

    def lost(self) -> None:
        off.discard(self)


class _below:
    """Operators without operands, random ones above all, mean the levels below a transform."""

    def __init__(self, interp):
        self.interp = interp

    def __enter__(self):
        self.before = state.random
        if state.random == self.interp.level:
            state.random = self.interp.previous[1]

    @tied
    def __exit__(self, *exc):
        state.random = self.before


class _Low:
    """A context as `forward` left it at one level, for the level above to translate."""

    __slots__ = ("kind", "notes", "outs")

    def __init__(self, ctx: FunctionCtx, outs):
        self.kind, self.notes, self.outs = type(ctx), dict(ctx.__dict__), outs

    def context(self, needs: tuple, lower: tuple, upper: tuple, outs, wrap) -> FunctionCtx:
        """The context with arguments and outputs of the level above in place of its own."""
        made = {id(a): b for a, b in _pairs(self.outs, outs)}
        given = {id(a): b for a, b in _pairs(lower, upper)}

        def up(t):
            found = given.get(id(t))
            if found is None:
                found = made.get(id(t))
            return wrap(t) if found is None else found

        ctx = _new(self.kind)
        for name, value in self.notes.items():
            ctx.__dict__[name] = map_nested(up, value)
        ctx._non_differentiable = tuple(
            [made.get(id(t), t) for t in self.notes.get("_non_differentiable", ())]
        )
        ctx.needs_input_grad = needs
        return ctx


def dispatch(cls, plan: _Plan, args: tuple, above: tuple = ()) -> tuple:
    """A call at the highest level among its arguments: (output, what the level above needs).

    `above` says which arguments are differentiated on a level above.
    """
    level = state.mode
    owner = state.stack[level] if level else None
    adopts = owner is not None and owner.adopts
    for t in _tensors(args):
        if t._link is not None:
            refresh(t)
        if adopts and type(t._payload) in ARRAYS:
            owner.adopt(t)
        level = max(level, _level(cls, t))
    interp = state.stack[level]
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    edges = [args[i]._edge if on_tape(args[i], level) else None for i in places]
    tracked = state.record[level] and any(e is not None for e in edges)
    if adopts and state.record[level]:
        owner.functions.append(cls)
    needs = list(above) if above and not plan.split else [False] * len(args)
    for i in places:
        needs[i] = needs[i] or args[i]._edge is not None
    needs = tuple(needs)
    rule = next((r for kind, r in _RULES.items() if isinstance(interp, kind)), _run)
    if cls._single_level:
        rule = _run
    before = owner.recorder.graph.last() if adopts and tracked else None
    found = None
    if level and rule is _run and not cls._emits:
        found = interp.event(
            CALLS_FUNCTION, cls, args, lambda: _run(cls, plan, args, interp, needs))
    out, ctx = rule(cls, plan, args, interp, needs) if found is None else found
    if ctx is None and tracked:
        ctx = _context(plan, args, out, needs)
    if ctx is None:
        return out, None
    low = None if plan.split else _Low(ctx, out)
    kind = _generated(plan.node) if isinstance(interp, Lift) else None
    made = _finish(plan, ctx, args, places, edges, out, tracked, level, kind)
    if adopts and tracked and interp is owner:
        owner.event(CALLED_FUNCTION, cls, [args[i] for i in places], made, before)
    return made, low


@functools.cache
def _generated(node: type) -> type:
    """The class of a function's nodes on the tape of a transform: PyTorch names them otherwise."""
    name = f"{node.__name__.removesuffix('Backward')}GeneratedBackward"
    return type(name, (node,), {"__slots__": ()})


def _level(cls, t: Tensor) -> int:
    """The level of a handle, which must not have outlived it."""
    interp = getattr(t._payload, "interp", None)
    if interp is None:
        return 0
    if not interp.alive:
        if interp.leaves_values:
            outlive(t)
            return _level(cls, t)
        raise errors.EscapedTensor(
            errors.text(
                f"a tensor escaped from {interp.title} and was used by {cls.__name__} after that "
                f"transform had finished ({errors.user_line(4)})",
                cure="return the value from the transformed function instead of keeping it outside",
            )
        )
    return interp.level


def _tensors(args):
    """The tensors among arguments, those in lists included."""
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif type(a) in (list, tuple):
            yield from _tensors(a)


def _pairs(lower, upper) -> list:
    """(lower, upper) for each tensor of two values of one structure."""
    if isinstance(lower, Tensor):
        return [(lower, upper)]
    if isinstance(lower, (tuple, list)):
        return [pair for a, b in zip(lower, upper) for pair in _pairs(a, b)]
    return []


def _raised(out, lower: tuple, upper: tuple, wrap):
    """Outputs of the level below as outputs of this one; arguments stay arguments."""
    given = {id(a): b for a, b in _pairs(lower, upper)}
    return map_tensors(lambda t: given[id(t)] if id(t) in given else wrap(t), out)


def _run(cls, plan, args, interp, needs) -> tuple:
    """`forward` on the values of this level."""
    ctx = _new(plan.context)
    ctx.needs_input_grad = needs
    with _silent():
        tangents, state.forward = state.forward, False
        try:
            out = plan.run(ctx, args)
        finally:
            state.forward = tangents
    return out, ctx


def _context(plan, args: tuple, out, needs: tuple) -> FunctionCtx:
    """A context for outputs that were made without one at this level."""
    ctx = _new(plan.context)
    ctx.needs_input_grad = needs
    with _silent():
        if plan.split:
            plan.setup(ctx, args, out)
            return ctx
        copies = tuple([a.clone() if isinstance(a, Tensor) else a for a in args])
        again = plan.forward(ctx, *copies)  # it fills the context on the way
    return _Low(ctx, again).context(needs, copies, args, out, lambda t: t)


def _lift(cls, plan, args, interp, needs) -> tuple:
    """A fresh tape: the call below, and a node for it here."""
    lower = map_tensors(interp.unwrap, args)
    out, low = dispatch(cls, plan, lower, needs)
    outs = _raised(out, lower, args, interp.wrap)
    ctx = None if low is None else low.context(needs, lower, args, outs, interp.wrap)
    return outs, ctx


def _push(cls, plan, args, interp, needs) -> tuple:
    """Forward mode: the call below, and the tangents by `jvp` or by transposing `backward`."""
    lower = map_tensors(interp.primal, args)
    tangents = [interp.tangent(a) if isinstance(a, Tensor) else None for a in args]
    moving = tuple([t is not None or n for t, n in zip(tangents, needs)])
    out, low = dispatch(cls, plan, lower, moving)
    if low is not None:
        ctx = low.context(moving, (), (), out, lambda t: t)
    else:
        ctx = _context(plan, lower, out, moving)
    outs = out if isinstance(out, tuple) else (out,)
    varies = [
        isinstance(o, Tensor)
        and o._payload.dtype in _FLOATING
        and not any(o is n for n in ctx._non_differentiable)
        for o in outs
    ]
    if cls.jvp is not Function.jvp:
        found = _user_tangents(cls, ctx, lower, tangents, outs, varies)
    elif plan.backward is Function.backward:
        cls.jvp(ctx)  # refuses
    else:
        found = _transposed(cls, plan, ctx, lower, tangents, outs, varies)
    given = {id(a): b for a, b in _pairs(lower, args)}
    made = []
    for o, t, v in zip(outs, found, varies):
        target = given.get(id(o))
        if not v or t is None:
            made.append(o if target is None else target)
            continue
        t = t if t.dtype is o.dtype else t.to(o.dtype)
        if target is None:
            made.append(interp.wrap(o, t))
        else:  # an argument that was overwritten
            target._payload = Dual(interp, o, t)
            made.append(target)
    made = tuple(made) if isinstance(out, tuple) else made[0]
    ctx = None if low is None else low.context(needs, lower, args, made, lambda t: t)
    return made, ctx


def _user_tangents(cls, ctx, lower: tuple, tangents: list, outs: tuple, varies: list) -> tuple:
    if ctx.materialize_grads:
        tangents = [
            ops.zeros_like(a) if t is None and isinstance(a, Tensor) and _floats(a) else t
            for a, t in zip(lower, tangents)
        ]
    ctx._pushing = True
    found = cls.jvp(ctx, *tangents)
    found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if len(found) != len(outs):
        raise errors.GradientShapeError(
            errors.text(
                "Function's jvp returned an invalid number of forward gradients (expected "
                f"{len(outs)} but got {len(found)}): {cls.__name__} ({errors.user_line(2)})",
                cure="return one tangent per output, None for those without",
            )
        )
    for i, (o, t) in enumerate(zip(outs, found)):
        if t is not None and not varies[i]:
            raise errors.GradientShapeError(
                errors.text(
                    f"{cls.__name__}.jvp returned a tangent for output {i}, which is not a "
                    f"differentiable tensor ({errors.user_line(2)})",
                    cure="You should return None at that position instead",
                )
            )
        if t is not None and (not isinstance(t, Tensor) or tuple(t.shape) != tuple(o.shape)):
            what = list(t.shape) if isinstance(t, Tensor) else type(t).__name__
            raise errors.GradientShapeError(
                f"{cls.__name__}.jvp returned {what} for output {i}, whose shape is "
                f"{list(o.shape)} ({errors.user_line(2)})"
            )
    return found


def _floats(t: Tensor) -> bool:
    return t._payload.dtype in _FLOATING


def _transposed(cls, plan, ctx, lower, tangents, outs, varies) -> list:
    """J t from a linear `backward`: it is the pullback of v -> <backward(v), t>."""

    def refuse(why: str):
        return errors.DerivativeNotWritten(
            errors.text(
                f"forward mode needs the jvp of {cls.__name__}, and its backward cannot be "
                f"transposed: {why} ({errors.user_line(3)})",
                cure=f"give {cls.__name__} a static method jvp(ctx, *tangents)",
            )
        )

    if getattr(plan.backward, "_once", False):
        raise refuse("it is marked with @once_differentiable")
    with Lift("the transposed backward") as level:
        seeds = [level.wrap(ops.ones_like(o)) if v else None for o, v in zip(outs, varies)]
        for s in seeds:
            if s is not None:
                s._edge = Accumulate(s)
        sent = [
            ops.zeros_like(o)
            if s is None and ctx.materialize_grads and isinstance(o, Tensor)
            else s
            for o, s in zip(outs, seeds)
        ]
        found = plan.backward(ctx, *sent)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        pulled, directions = [], []
        for a, t, g in zip(lower, tangents, found):
            if t is None or g is None:
                continue
            if not level.mine(g) or g._edge is None:
                if not _is_zero(g):
                    raise refuse("it computes gradients outside of the recorded operators")
                continue
            pulled.append(project(g, a._payload.shape, a._payload.dtype))
            directions.append(level.wrap(t))
        sources = [s for s in seeds if s is not None]
        pushed = (
            grad(pulled, sources, directions, allow_unused=True)
            if pulled
            else [None] * len(sources)
        )
        rest = iter([None if p is None else level.unwrap(p) for p in pushed])
    return [next(rest) if v else None for v in varies]


def _is_zero(t: Tensor) -> bool:
    data = t._payload
    while hasattr(data, "inner"):
        data = data.inner._payload
    return is_buffer(data) and not data.any()


# batching


def _batch(cls, plan, args, interp, needs) -> tuple:
    """Vmap: the user's rule, or the function itself on a hidden dimension."""
    own = cls.vmap is not Function.vmap
    if own and cls.generate_vmap_rule:
        raise errors.TransformError(
            errors.text(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True "
                f"and an overriden vmap staticmethod ({errors.user_line(3)})",
                cure="set generate_vmap_rule=False or delete the vmap staticmethod",
            )
        )
    dims = map_nested(lambda t: t._payload.dim if interp.mine(t) else None, args)
    dims = tuple([_nothing(d, a) for d, a in zip(dims, args)])
    lower = map_tensors(lambda t: t._payload.inner if interp.mine(t) else t, args)
    with _below(interp):
        if own:
            out, out_dims = _user_batched(cls, interp, dims, lower)
        elif cls.generate_vmap_rule:
            mapped = mapped_function(cls, plan, interp.size, interp.randomness, dims)
            out = dispatch(mapped, _plan_of(mapped), lower, needs)[0]
            out_dims = mapped.out_dims
        else:
            raise errors.TransformError(errors.text(
                f"You tried to vmap over {cls.__name__}, but this autograd.Function does not have "
                f"vmap support ({errors.user_line(3)})",
                cure=["implement the vmap staticmethod: vmap(info, in_dims, *args) -> (output, "
                      "out_dims)",
                      "or set generate_vmap_rule = True, if forward, backward and jvp are made of "
                      "tensor operators"]))
    given = {id(a): b for a, b in _pairs(lower, args)}
    places = _places(cls, out, out_dims)
    if not isinstance(out, tuple):
        return _boxed(interp, out, places[0], given), None
    return tuple([_boxed(interp, o, d, given) for o, d in zip(out, places)]), None


def _user_batched(cls, interp, dims: tuple, lower: tuple) -> tuple:
    """(Output, out_dims) of the user's `vmap`."""
    result = cls.vmap(VmapInfo(interp.size, interp.randomness), dims, *lower)
    if not isinstance(result, tuple) or len(result) != 2:
        raise errors.TransformError(errors.text(
            f"Expected the {cls.__name__}.vmap staticmethod to have two returns, an output and "
            f"out_dims with pytree structure compatible with the output, got "
            f"{type(result).__name__} ({errors.user_line(4)})",
            cure="return (output, out_dims)"))
    return result


def _places(cls, out, out_dims) -> tuple:
    """The batch dimension of each output."""
    single = not isinstance(out, tuple)
    places = (out_dims,) if single else out_dims
    if not single and not isinstance(places, (tuple, list)):
        places = (out_dims,) * len(out)
    count = 1 if single else len(out)
    other = (tuple, list) if isinstance(out, Tensor) else tuple if type(out) is list else ()
    if len(places) != count or isinstance(out_dims, other):
        raise errors.TransformError(errors.text(
            f"{cls.__name__}.vmap returned an incompatible (output, out_dims): the dims do not "
            f"fit the output ({errors.user_line(4)})", f"outputs: {count}, out_dims: {out_dims}",
            "return one int or None per output, in the structure of the output"))
    return places


def _nothing(dim, arg):
    """The dim of an argument; a plain value has none."""
    return dim if isinstance(arg, Tensor) or type(arg) in (list, tuple) else None


def _boxed(interp, value, dim, given: dict):
    """An output of the level below at a batching level."""
    if type(value) in (list, tuple):
        dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(value)
        return type(value)([_boxed(interp, v, d, given) for v, d in zip(value, dims)])
    if not isinstance(value, Tensor):
        return value
    target = given.get(id(value))
    if dim is None:
        return value
    box = Batched(interp, value, dim % value.ndim)
    if target is None or target is value:
        return make(box)
    target._payload = box  # an argument that was overwritten
    return target


_RULES = {Lift: _lift, Jvp: _push, Vmap: _batch}


# once_differentiable


class Once(Node):
    """History of what `backward` computed only to be differentiated once: refuses."""

    __slots__ = ()

    class _Rule:
        name, saves = "Error", ()

    def apply(self, grads, needs):
        raise errors.NotDifferentiable(
            errors.text(
                "trying to differentiate twice a function that was marked with "
                f"@once_differentiable (its backward ran at {errors.describe_place(self.where)})",
                cure="remove the mark if backward is made of tensor operators",
            )
        )


def once_differentiable(fn):
    """Mark a `backward` whose result must not be differentiated again."""

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        with _silent():
            out = fn(ctx, *args)
        top = max((level_own(t._payload) for t in _tensors(args)), default=0)
        if not fast["ACTIVE"] and not is_grad_enabled():
            return out
        edges: dict = {}
        _collect(args, edges, top)
        if fast["ACTIVE"] and top:  # transforms below this one: what was saved counts too
            inner = [t._payload.inner for t in _saved(ctx) if hasattr(t._payload, "inner")]
            _collect(inner, edges, top)
        if not edges:
            return out
        return map_tensors(lambda t: _raised_to(_refusing(t, edges), edges), out)

    wrapper._once = True
    return wrapper


def _saved(ctx) -> list:
    kept = ctx._kept if isinstance(ctx._kept, tuple) else ()
    held = [t for t, _ in kept if isinstance(t, Tensor)]  # what a hook packed is not looked at
    return held + [t for t in ctx._to_save if t is not None]


def _collect(tensors, edges: dict, top: int) -> None:
    """The edges of handles on every level."""
    for t in _tensors(tensors):
        while True:
            level = level_own(t._payload)
            if t._edge is not None and state.record[level]:
                edges.setdefault(level, []).append(t._edge)
            if not hasattr(t._payload, "inner"):
                break
            t = t._payload.inner


def _refusing(t: Tensor, edges: dict) -> Tensor:
    """A copy of a handle that refuses to be differentiated on the given levels."""
    import copy

    data, level = t._payload, level_own(t._payload)
    if hasattr(data, "inner"):
        data = copy.copy(data)
        data.inner = _refusing(data.inner, edges)
    made = make(data)
    if level in edges and data.dtype in _FLOATING:
        _refuse(made, edges, level)
    return made


def _raised_to(t: Tensor, edges: dict) -> Tensor:
    """The same on the levels above its own: what left the operators has a history there too."""
    for level in sorted(edges):
        if level > level_own(t._payload) and isinstance(state.stack[level], Lift):
            t = state.stack[level].wrap(t)
            if t._payload.dtype in _FLOATING:
                _refuse(t, edges, level)
    return t


def _refuse(t: Tensor, edges: dict, level: int) -> None:
    found = tuple(edges[level])
    t._edge = make_node(Once, Once._Rule, found, (None,) * len(found), (), level)
