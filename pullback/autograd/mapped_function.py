"""An `autograd.Function` on a batch, as a function of its own: `generate_vmap_rule = True`.

Every static method runs under a batching level of its own.  What the function noted in its context
is kept with holes in the places of tensors, which are saved like those of any function.  Read
first: `levels.py`.
"""

from __future__ import annotations

from ..core.handle import Tensor, make
from ..interp.vmap import Batched, Vmap
from ..memory.assign import assign
from ..table.packets import ops
from .function import Function, _Meta, _new, _Plan


def map_nested(function, value):
    """A function applied to the tensors among values, those in lists and dicts included."""
    if type(value) is dict:
        return {k: map_nested(function, v) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)([map_nested(function, v) for v in value])
    return function(value) if isinstance(value, Tensor) else value


class _Hole:
    """A tensor's place in the notes of a context: its number, and its batch dimension."""

    __slots__ = ("dim", "number")

    def __init__(self, number: int, dim: int | None):
        self.number, self.dim = number, dim


def mapped_function(cls, plan: _Plan, size: int, randomness: str, dims: tuple) -> type:
    """The function on a batch as a function of its own."""
    rule = _MappedRule(cls, plan, size, randomness, dims)
    methods = {
        "forward": staticmethod(rule.forward_alone if plan.split else rule.forward),
        "generate_vmap_rule": True,
        "out_dims": None,
    }
    if plan.split:
        methods["setup_context"] = staticmethod(rule.setup)
    if plan.backward is not Function.backward:
        def backward(ctx, *grads):
            return rule.backward(ctx, *grads)

        backward._once = getattr(plan.backward, "_once", False)
        methods["backward"] = staticmethod(backward)
    if cls.jvp is not Function.jvp:
        methods["jvp"] = staticmethod(rule.jvp)
    rule.mapped = _Meta(f"Vmapped{cls.__name__}", (Function,), methods)
    return rule.mapped


class _MappedRule:
    """The static methods of a function on a batch; `mapped.out_dims` says where outputs have it."""

    mapped: type

    def __init__(self, cls, plan: _Plan, size: int, randomness: str, dims: tuple):
        self.cls, self.plan, self.size, self.randomness, self.dims = (
            cls, plan, size, randomness, dims)

    def level(self) -> Vmap:
        """The batching level that a method runs under."""
        return Vmap(self.size, self.randomness)

    @property
    def out_dims(self) -> tuple:
        """The batch dimension of each output."""
        found = self.mapped.out_dims
        return found if isinstance(found, tuple) else (found,)

    def forward(self, ctx, *args):
        """`forward(ctx, *args)`, which notes what it needs on the way."""
        with self.level() as level:
            boxes = _box(level, args, self.dims)
            before = [b._payload if isinstance(b, Tensor) else None for b in boxes]
            inner = _new(self.plan.context)
            inner.needs_input_grad = ctx.needs_input_grad
            out = self.plan.forward(inner, *boxes)
            made = self.settle(ctx, level, inner, boxes, before, args, out)
            _note(ctx, level, inner)
        return made

    def forward_alone(self, *args):
        """`forward(*args)` of a function with `setup_context`."""
        with self.level() as level:
            boxes = _box(level, args, self.dims)
            before = [b._payload if isinstance(b, Tensor) else None for b in boxes]
            probe = _new(self.plan.context)
            probe.needs_input_grad = (False,) * len(args)
            out = self.plan.forward(*boxes)
            self.plan.setup(probe, boxes, out)  # says which arguments are overwritten
            return self.settle(None, level, probe, boxes, before, args, out)

    def setup(self, ctx, inputs, output):
        """`setup_context(ctx, inputs, output)`."""
        with self.level() as level:
            boxes = _box(level, inputs, self.dims)
            outs = output if isinstance(output, tuple) else (output,)
            boxed = list(_box(level, outs, self.out_dims))
            for i, o in enumerate(outs):  # an argument that is returned is the same box
                for a, b in zip(inputs, boxes):
                    if a is o and isinstance(o, Tensor):
                        boxed[i] = b
            inner = _new(self.plan.context)
            inner.needs_input_grad = ctx.needs_input_grad
            self.plan.setup(inner, boxes, tuple(boxed) if isinstance(output, tuple) else boxed[0])

            def original(t):
                pairs = (*zip(boxes, inputs), *zip(boxed, outs))
                return next((lower for b, lower in pairs if b is t), t)

            ctx.mark_dirty(*[original(t) for t in inner._dirty])
            ctx.mark_non_differentiable(*[original(t) for t in inner._non_differentiable])
            _note(ctx, level, inner)

    def backward(self, ctx, *grads):
        """`backward(ctx, *grads)`."""
        with self.level() as level:
            found = self.plan.backward(
                self.restore(ctx, level), *_box(level, grads, self.out_dims))
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
            return tuple([_like_input(level, g, d) for g, d in zip(found, self.dims)])

    def jvp(self, ctx, *tangents):
        """`jvp(ctx, *tangents)`."""
        with self.level() as level:
            found = self.cls.jvp(self.restore(ctx, level), *_box(level, tangents, self.dims))
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
            made = tuple([_like_output(level, t, d) for t, d in zip(found, self.out_dims)])
        return made if isinstance(self.mapped.out_dims, tuple) else made[0]

    def restore(self, ctx, level: Vmap):
        """The context of one example, from what was kept of it."""
        inner = _new(self.plan.context)
        saved = ctx.saved_tensors

        def fill(value):
            if type(value) is _Hole:
                t = saved[value.number]
                return t if value.dim is None else make(Batched(level, t, value.dim))
            if type(value) is dict:
                return {k: fill(v) for k, v in value.items()}
            return type(value)([fill(v) for v in value]) if type(value) in (list, tuple) else value

        inner.__dict__.update(fill(ctx.notes))
        inner.needs_input_grad = ctx.needs_input_grad
        inner._pushing = ctx._pushing
        return inner

    def settle(self, ctx, level: Vmap, inner, boxes, before: list, args: tuple, out):
        """Outputs of the inner function at the level below."""
        dirty, fixed, made, places = [], [], [], []
        for o in out if isinstance(out, tuple) else (out,):
            place = next((i for i, b in enumerate(boxes) if b is o), None)
            if not isinstance(o, Tensor):
                lower, dim = o, None
            elif place is not None and any(o is d for d in inner._dirty):
                lower, dim = args[place], self.dims[place]
                _write_back(lower, o._payload, before[place])
                dirty.append(lower)
            else:
                mine = level.mine(o)
                lower, dim = (o._payload.inner, o._payload.dim) if mine else (o, None)
                if any(o is n for n in inner._non_differentiable):
                    fixed.append(lower)
            made.append(lower)
            places.append(dim)
        self.mapped.out_dims = tuple(places) if isinstance(out, tuple) else places[0]
        if ctx is not None:
            ctx.mark_dirty(*dirty)
            ctx.mark_non_differentiable(*fixed)
        return tuple(made) if isinstance(out, tuple) else made[0]


def _box(level: Vmap, values, places) -> tuple:
    """Values of the level below with their batch dimensions hidden."""
    return tuple([
        type(v)(_box(level, v, d)) if type(v) in (list, tuple)
        else make(Batched(level, v, d)) if isinstance(v, Tensor) and d is not None else v
        for v, d in zip(values, places)])


def _note(ctx, level: Vmap, inner) -> None:
    """Keep the inner context: its tensors as saved ones, the rest as it is."""
    tensors: list = []

    def hole(t):
        mine = level.mine(t)
        tensors.append(t._payload.inner if mine else t)
        return _Hole(len(tensors) - 1, t._payload.dim if mine else None)

    ctx.notes = map_nested(hole, {
        k: v for k, v in inner.__dict__.items() if k not in ("_dirty", "_non_differentiable")})
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)
    ctx.set_materialize_grads(inner.materialize_grads)


def _write_back(target: Tensor, box: Batched, before: Batched) -> None:
    """Give an argument that was overwritten its new value, its batch dimension where it was."""
    if box is before:
        return
    new = box.inner
    if box.dim != before.dim:
        new = ops.movedim(new, box.dim, before.dim)
    assign(target, new)


def _like_input(level: Vmap, g, dim):
    """The gradient of an input at the level below: summed over the examples if they share it."""
    if g is None or not isinstance(g, Tensor):
        return g
    if level.mine(g):
        inner = level.front(g)
        return ops.sum(inner, [0]) if dim is None else ops.movedim(inner, 0, dim)
    return g if dim is None else ops.movedim(level.stacked(g), 0, dim)


def _like_output(level: Vmap, t, dim):
    """The tangent of an output at the level below."""
    if t is None or dim is None:
        return t
    return ops.movedim(level.stacked(t), 0, dim)
