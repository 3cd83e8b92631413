"""`autograd.Function`: an operation whose derivative the user writes.

`Function.apply` runs `forward` once, on the values below all transforms, with recording off; then
each level that is above makes of it what it makes of an operator: a tape records one node whose
pullback is the user's `backward`, forward mode calls `jvp` (or transposes `backward`), `vmap` calls
the user's rule, a trace sees the operators inside.  A context belongs to one level: `setup_context`
is called for each, and a context that `forward` itself filled is translated, tensor by tensor.
Read next: `../core/tape.py` for ordinary nodes, `engine.py` for who calls them.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections import namedtuple

import numpy as np

from .. import errors
from ..core import dtype as dt
from ..core.handle import Link, Tensor, cell_of, is_buffer, make
from ..core.pytree import tree_flatten, tree_unflatten
from ..core.state import _lock, count, fast, sequence, state
from ..core.surface import bump, copy_slices, may_write, refresh
from ..core.table import ops
from ..core.tape import (
    Accumulate,
    Node,
    freed,
    keep,
    level_own,
    make_node,
    modified,
    place,
    port,
)
from ..interp.box import map_tensors
from ..interp.jvp import Dual, Jvp
from ..interp.lift import Lift
from ..interp.vmap import Batched, Vmap
from .grad_mode import is_grad_enabled

__all__ = [
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "VmapInfo",
    "once_differentiable",
]

VmapInfo = namedtuple("VmapInfo", ["batch_size", "randomness"])
VmapInfo.__doc__ = "What a `vmap` static method is told: the number of examples, and randomness."

_FLOATING = {d.np for d in dt.ALL if d.category >= 2}
_ndarray = np.ndarray
_new = object.__new__
_ref = weakref.ref


class FunctionCtx:
    """What `forward` leaves for `backward` and `jvp`; take any free name for notes of your own."""

    needs_input_grad: tuple = ()
    materialize_grads = True
    _to_save: tuple = ()
    _for_forward: tuple | None = None
    _dirty: tuple = ()
    _non_differentiable: tuple = ()
    _kept: tuple | None = ()  # saved for backward: (handle, number of the output that it is or -1)
    _node = None  # weak reference to the node, once there is one
    _pushing = False  # is `jvp` reading?
    _forward_cls: type | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, where `saved_tensors` has them, guarded by their version."""
        self._to_save = _savable(tensors, "save_for_backward")

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, where `saved_tensors` has them."""
        self._for_forward = _savable(tensors, "save_for_forward")

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` overwrites; each of them must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no derivative."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Should gradients that did not arrive be zeros (the default) or None?"""
        self.materialize_grads = bool(value)

    def mark_shared_storage(self, *pairs) -> None:
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    @property
    def saved_tensors(self) -> tuple:
        """The saved tensors, as they were: one that was overwritten since is an error."""
        if self._pushing:
            return self._to_save if self._for_forward is None else self._for_forward
        node = None if self._node is None else self._node()
        kept = self._kept
        if kept is None:
            raise freed(node or self)
        if node is None:
            return tuple([t for t, _ in kept]) if kept else self._to_save
        values, stamp = [], node.stamp
        for i, (value, number) in enumerate(kept):
            if value is not None:
                cell = value._cell
                if cell is not None and cell.stamps and cell.stamps[-1] > stamp:
                    raise modified(node, f"saved_tensors[{i}]", value)
                if number >= 0:
                    again = make(value._data, port(node, number))
                    again._cell = cell
                    value = again
            values.append(value)
        return tuple(values)

    @property
    def saved_variables(self) -> tuple:
        """The old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    @property
    def dirty_tensors(self) -> tuple | None:
        return self._dirty or None

    @property
    def non_differentiable(self) -> tuple | None:
        return self._non_differentiable or None

    @property
    def to_save(self) -> tuple | None:
        return self._to_save or None

    @property
    def saved_for_forward(self) -> tuple | None:
        return self._for_forward

    @property
    def next_functions(self) -> tuple:
        """(node, output number) of each tensor input."""
        node = self._node and self._node()
        return () if node is None else node.next_functions

    @property
    def metadata(self) -> dict:
        """The dictionary of the node."""
        node = self._node and self._node()
        return {} if node is None else node.metadata

    @property
    def where(self):
        node = self._node and self._node()
        return None if node is None else node.where

    def name(self) -> str:
        """The name of the node, e.g. `SquareBackward`."""
        return type(self).__name__


def _savable(tensors: tuple, method: str) -> tuple:
    for i, t in enumerate(tensors):
        if t is not None and not isinstance(t, Tensor):
            raise errors.ArgumentError(
                errors.text(
                    f"{method} can only save variables, but argument {i} is of type "
                    f"{type(t).__name__} ({errors.user_line(2)})",
                    cure="keep other values as attributes: ctx.scale = scale",
                )
            )
    return tensors


class FunctionNode(Node):
    """A call of a `Function` on the tape."""

    __slots__ = ("ctx", "function", "outputs", "places", "spaces", "width")

    class _Rule:
        saves = ()

    def name(self) -> str:
        return type(self.ctx).__name__

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(Node.__getattribute__(self, "ctx"), name)

    @property
    def saved_tensors(self) -> tuple:
        """What `forward` saved."""
        return self.ctx.saved_tensors

    def release(self) -> None:
        self.saved = self.ctx._kept = None

    def apply(self, grads: list, needs: list) -> list:
        ctx = self.ctx
        if self.outputs > 1 and ctx.materialize_grads and any([g is None for g in grads]):
            grads = [
                _zeros(space) if g is None and space is not None else g
                for g, space in zip(grads, self.spaces)
            ]
        found = self.function(ctx, *grads)
        if found.__class__ is not tuple:
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        places = self.places
        if len(found) != self.width or len(places) != self.width:
            found = self._counted(found)
        for g in found:
            if g is not None and not isinstance(g, Tensor):
                raise errors.GradientShapeError(
                    errors.text(
                        f"expected Variable or None (got {type(g).__name__}) from the backward of "
                        f"{self._title()}",
                        cure="return tensors, and None for inputs without gradient",
                    )
                )
        return found

    def _counted(self, found: tuple) -> list:
        """The gradients of the tensor inputs among those of all inputs."""
        width, given = self.width, len(found)
        if given < width or any(g is not None for g in found[width:]):
            raise errors.GradientShapeError(
                errors.text(
                    f"function {self._title()} returned an incorrect number of gradients "
                    f"(expected {width}, got {given})",
                    cure="return one value per argument of forward, None for those without "
                    "gradient",
                )
            )
        for i, g in enumerate(found[:width]):
            if g is not None and i not in self.places:
                raise errors.GradientShapeError(
                    errors.text(
                        f"function {self._title()} returned a gradient different than None at "
                        f"position {i + 1}, but the corresponding forward input was not a Variable",
                        cure="return None there",
                    )
                )
        return [found[i] for i in self.places]

    def _title(self) -> str:
        return f"{self.name()} (called at {errors.describe_place(self.where)})"


def _space(value) -> tuple | None:
    """What is needed to make zeros like an output."""
    if not isinstance(value, Tensor):
        return None
    data = value._data
    if type(data) is _ndarray:
        return data.shape, data.dtype, None
    return data.shape, data.dtype, value.device


def _zeros(space: tuple) -> Tensor:
    shape, dtype, device = space
    if device is None and not fast["ACTIVE"]:
        return make(np.zeros(shape, dtype))
    return ops.zeros(shape, dtype=dt.of(dtype), device=device)


_RULE = FunctionNode._Rule


class Opaque(Link):
    """How an output of a `Function` shares memory with an input.

    Its history is the user's backward, which a write through either of the two would lose: writes
    are refused where gradients are at stake.
    """

    __slots__ = ()

    def refuse(self, t: Tensor, what: str) -> None:
        """Refuse a write, or the use of the view after a write to its base."""
        raise errors.ViewWriteError(
            errors.text(
                f"Output of a custom Function is a view and {what} ({errors.user_line(3)}). This "
                "view was created inside a custom Function (or because an input was returned "
                "as-is) and the autograd logic to handle view+inplace would override the custom "
                "backward associated with the custom Function, leading to incorrect gradients",
                f"tensor: {t.dtype.name}{list(t._data.shape)}",
                "clone() the output of the custom Function",
            )
        )

    def stale(self, t: Tensor) -> None:
        """The memory was written since: the values follow, a history cannot."""
        if t._edge is not None and state.record[level_own(t._data)]:
            self.refuse(t, "its base or another view of its base has been modified inplace")
        self.seen = t._cell.version


class _Plan:
    """What `apply` has to know about a class of functions, found out once."""

    __slots__ = ("backward", "context", "forward", "split", "setup")

    def __init__(self, cls: type):
        self.forward = cls.forward
        self.setup = cls.setup_context
        self.split = cls.setup_context is not Function.setup_context
        self.context = type(
            f"{cls.__name__}Backward",
            (FunctionCtx,),
            {"_forward_cls": cls, "__module__": cls.__module__},
        )
        own, other = cls.backward is not Function.backward, cls.vjp is not Function.vjp
        if own and other:
            raise errors.TransformError(
                f"Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                f"should only implement one of them: {cls.__name__} ({errors.user_line(3)})"
            )
        self.backward = cls.vjp if other else cls.backward


def _plan_of(cls: type) -> _Plan:
    """The plan of a class; made anew when one of its methods was replaced."""
    plan = cls.__dict__.get("_plan")
    if plan is None or plan.forward is not cls.forward or plan.setup is not cls.setup_context:
        plan = cls._plan = _Plan(cls)
    return plan


class _Meta(type):
    """Replacing a method of a class (as tests like to do) makes its plan obsolete."""

    def __setattr__(cls, name, value):
        super().__setattr__(name, value)
        if name != "_plan" and "_plan" in cls.__dict__:
            del cls._plan


class Function(metaclass=_Meta):
    """Base class of operations with a derivative of their own.

    A subclass has the static methods `forward(ctx, *args)` and `backward(ctx, *grads)`, or
    `forward(*args)` with `setup_context(ctx, inputs, output)`; `jvp(ctx, *tangents)` gives forward
    mode, `vmap(info, in_dims, *args)` or `generate_vmap_rule = True` gives batching.  Call it by
    `apply`.
    """

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise errors.TransformError(
            errors.text(
                f"Legacy autograd function with non-static forward method is deprecated "
                f"({errors.user_line(2)})",
                cure=f"make the methods static and call {type(self).__name__}.apply(...)",
            )
        )

    @staticmethod
    def forward(*args, **kwargs):
        """The operation itself; nothing inside is recorded."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx, inputs: tuple, output):
        """Fill the context, where `forward` does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Gradients of the inputs from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @staticmethod
    def vjp(ctx, *grad_outputs):
        """Another name of `backward`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Tangents of the outputs from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: VmapInfo, in_dims: tuple, *args):
        """The operation on a batch: returns the output and the place of its batch dimension."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run the function and put it on the tape."""
        plan = cls.__dict__.get("_plan") or _plan_of(cls)
        if kwargs or plan.split:
            args = _bound(cls, plan, args, kwargs)
        if fast["ACTIVE"]:
            return _dispatch(cls, plan, args)[0]
        edges, needs, places, tracked = [], [], [], False
        for i, a in enumerate(args):
            if isinstance(a, Tensor):
                if a._link is not None:
                    refresh(a)
                edge = a._edge
                edges.append(edge)
                places.append(i)
                if edge is None:
                    needs.append(False)
                else:
                    needs.append(True)
                    tracked = True
            else:
                needs.append(False)
        ctx = _new(plan.context)
        notes = ctx.__dict__
        notes["needs_input_grad"] = tuple(needs)
        record = state.record
        before = record[0]
        if before:
            record[0] = False
            with _lock:  # `count`, without the call
                fast["GRADOFF"] += 1
        try:
            if plan.split:
                out = plan.forward(*args)
                plan.setup(ctx, args, out)
            else:
                out = plan.forward(ctx, *args)
        finally:
            if before:
                record[0] = True
                with _lock:
                    fast["GRADOFF"] -= 1
            else:
                tracked = False
        if (
            out.__class__ is not Tensor
            or out._link is not None
            or out._edge is not None
            or "_dirty" in notes
            or "_non_differentiable" in notes
            or any([out is a for a in args])
        ):
            return _finish(plan, ctx, args, places, edges, out, tracked, 0)
        if not tracked or out._data.dtype not in _FLOATING:
            return out
        node = _new(FunctionNode)
        node.rule, node.edges, node.hooks, node.level = _RULE, tuple(edges), None, 0
        node.metas = tuple(
            [
                None if e is None else (args[i]._data.shape, args[i]._data.dtype)
                for i, e in zip(places, edges)
            ]
        )
        node.seq, node.where = sequence(), place()
        node.ctx, node.function = ctx, plan.backward
        node.places, node.width, node.outputs = places, len(args), 1
        node.spaces = None  # one output: its gradient is there whenever this is called
        notes["_node"] = _ref(node)
        if "_to_save" in notes:
            saved = notes.pop("_to_save")
            notes["_kept"] = node.saved = tuple(
                [
                    (t, -1) if t is not out and t is not None else _keep(t, {id(out): 0})
                    for t in saved
                ]
            )
        else:
            node.saved = ()
        node.stamp = fast["CLOCK"]
        out._edge = node
        return out


def _bound(cls, plan: _Plan, args: tuple, kwargs: dict) -> tuple:
    """Positional arguments, with the defaults of `forward` filled in."""
    try:
        signature = plan.context._signature
    except AttributeError:
        try:
            signature = inspect.signature(plan.forward)
            parameters = list(signature.parameters.values())
            if not plan.split:
                parameters = parameters[1:]
            positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            plain = all(p.kind in positional and p.default is p.empty for p in parameters)
            signature = signature.replace(parameters=parameters), plain and len(parameters)
        except (TypeError, ValueError):
            signature = None, False
        plan.context._signature = signature
    signature, plain = signature
    if signature is None or not kwargs and plain is not False and plain == len(args):
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise errors.ArgumentError(
            f"{cls.__name__}.apply: keyword-only arguments of forward are not supported "
            f"({errors.user_line(2)})"
        )
    return bound.args


def _finish(plan, ctx, args, places, edges, out, tracked: bool, level: int):
    """The outputs as the caller gets them, with the function as their history if it is tracked."""
    single = not isinstance(out, tuple)
    outs = (out,) if single else out
    dirty = ctx._dirty
    if dirty:
        _check_dirty(dirty, outs)
    node = None
    tracked = tracked and any([isinstance(o, Tensor) for o in outs])
    if tracked:
        metas = tuple(
            [
                None if e is None else (args[i]._data.shape, args[i]._data.dtype)
                for i, e in zip(places, edges)
            ]
        )
        node = make_node(FunctionNode, FunctionNode._Rule, tuple(edges), metas, (), level)
        node.ctx, node.function = ctx, plan.backward
        node.places, node.width, node.outputs = places, len(args), len(outs)
        ctx._node = weakref.ref(node)
    final, numbers = [], {}
    for number, o in enumerate(outs):
        if not isinstance(o, Tensor):
            final.append(o)
            continue
        source = o
        is_dirty = dirty and any(o is d for d in dirty)
        if not is_dirty:
            for i in places:
                if args[i] is o:
                    o = _alias(o)
                    break
        differentiable = (
            tracked
            and o._data.dtype in _FLOATING
            and not any(source is n for n in ctx._non_differentiable)
        )
        if is_dirty:
            _written(o, node if differentiable else None, number, level)
        elif o._link is not None and is_buffer(o._data):
            _detach_view(o, args, places, differentiable)
        if differentiable:
            if not is_dirty:
                o._edge = node if len(outs) == 1 else port(node, number)
            if o is source:
                numbers[id(o)] = number
        elif not is_dirty and o._edge is not None:
            o = make(o._data)  # a tensor from elsewhere keeps its history, the output has none
            o._cell = source._cell
        final.append(o)
    if node is not None:
        node.spaces = [_space(o) for o in final]
        to_save = ctx._to_save
        if to_save:
            ctx._kept = tuple([_keep(t, numbers) for t in to_save])
            node.saved = ctx._kept
            ctx._to_save = ()
        node.stamp = fast["CLOCK"]
    return final[0] if single else tuple(final)


def _keep(t: Tensor | None, numbers: dict) -> tuple:
    """A tensor as it is now; an output loses its history, which would be a circle."""
    if t is None:
        return None, -1
    number = numbers.get(id(t), -1)
    if number < 0:
        return keep(t), -1
    snapshot = make(t._data)
    if is_buffer(t._data):
        snapshot._cell = cell_of(t)
    return snapshot, number


def _check_dirty(dirty: tuple, outs: tuple) -> None:
    for d in dirty:
        if not any(d is o for o in outs):
            raise errors.LeafWriteError(
                errors.text(
                    "Some elements marked as dirty during the forward method were not returned as "
                    "output. The inputs that are modified inplace must all be outputs of the "
                    f"Function ({errors.user_line(3)})",
                    cure="return the tensors given to ctx.mark_dirty",
                )
            )


def _alias(t: Tensor) -> Tensor:
    """Another handle of the same memory."""
    if not is_buffer(t._data):
        return make(t._data)
    made, link = make(t._data[...]), t._link
    made._cell = cell = cell_of(t)
    base, chain, multi = (t, (), False) if link is None else (link.base, link.chain, link.multi)
    made._link = Link(base, (*chain, (_alias_overload(), (), None)), multi, False, cell.version)
    return made


@functools.cache
def _alias_overload():
    return ops.alias.default


def _detach_view(o: Tensor, args: tuple, places: list, differentiable: bool) -> None:
    """Settle what an output that is a view remembers of its base."""
    link = o._link
    bases = [args[i] if args[i]._link is None else args[i]._link.base for i in places]
    if not any(link.base is b for b in bases):
        o._link = None  # its base was made inside, nobody else has it
    elif differentiable:
        o._link = Opaque(link.base, link.chain, link.multi, False, o._cell.version)
    else:
        o._link = Link(link.base, link.chain, link.multi, False, o._cell.version)


def _written(x: Tensor, node, number: int, level: int) -> None:
    """An input that `forward` overwrote: its history is the function from now on."""
    if node is None:
        return
    may_write(x, True, level, True)
    edge = port(node, number)
    link = x._link
    bump(x)
    if link is None:
        x._edge = edge
        return
    base = link.base
    base._edge = copy_slices(base, link.chain, make(x._data, edge))
    base._edge.level = level
    x._edge = edge
    link.seen = -1


# transforms


class _silent:
    """Recording off on every level: what `forward` does is nobody's history."""

    def __enter__(self):
        self.before = list(state.record)
        state.record[:] = [False] * len(self.before)
        count("GRADOFF", 1)

    def __exit__(self, *exc):
        state.record[:] = self.before
        count("GRADOFF", -1)


class _below:
    """Operators without operands, random ones above all, mean the levels below a transform."""

    def __init__(self, interp):
        self.interp = interp

    def __enter__(self):
        self.before = state.random
        if state.random == self.interp.level:
            state.random = self.interp.previous[1]

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
            ctx.__dict__[name] = _mapped(up, value)
        ctx._non_differentiable = tuple(
            [made.get(id(t), t) for t in self.notes.get("_non_differentiable", ())]
        )
        ctx.needs_input_grad = needs
        return ctx


def _dispatch(cls, plan: _Plan, args: tuple, above: tuple = ()) -> tuple:
    """A call at the highest level among its arguments: (output, what the level above needs).

    `above` says which arguments are differentiated on a level above.
    """
    level = state.mode
    owner = state.stack[level] if level else None
    adopts = owner is not None and owner.adopts
    for t in _tensors(args):
        if t._link is not None:
            refresh(t)
        if adopts and type(t._data) is _ndarray:
            owner.adopt(t)
        level = max(level, _level(cls, t._data))
    interp = state.stack[level]
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    edges = [args[i]._edge if level_own(args[i]._data) == level else None for i in places]
    tracked = state.record[level] and any(e is not None for e in edges)
    needs = list(above) if above and not plan.split else [False] * len(args)
    for i in places:
        needs[i] = needs[i] or args[i]._edge is not None
    needs = tuple(needs)
    rule = next((r for kind, r in _RULES.items() if isinstance(interp, kind)), _run)
    out, ctx = rule(cls, plan, args, interp, needs)
    if ctx is None and tracked:
        ctx = _context(plan, args, out, needs)
    if ctx is None:
        return out, None
    low = None if plan.split else _Low(ctx, out)
    return _finish(plan, ctx, args, places, edges, out, tracked, level), low


def _level(cls, data) -> int:
    """The level of a handle's data, which must not have outlived it."""
    interp = getattr(data, "interp", None)
    if interp is None:
        return 0
    if not interp.alive:
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


def _mapped(function, value):
    if type(value) is dict:
        return {k: _mapped(function, v) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_mapped(function, v) for v in value])
    return function(value) if isinstance(value, Tensor) else value


def _raised(out, lower: tuple, upper: tuple, wrap):
    """Outputs of the level below as outputs of this one; arguments stay arguments."""
    given = {id(a): b for a, b in _pairs(lower, upper)}
    return map_tensors(lambda t: given[id(t)] if id(t) in given else wrap(t), out)


def _run(cls, plan, args, interp, needs) -> tuple:
    """`forward` on the values of this level."""
    ctx = _new(plan.context)
    ctx.needs_input_grad = needs
    with _silent():
        if plan.split:
            out = plan.forward(*args)
            plan.setup(ctx, args, out)
        else:
            out = plan.forward(ctx, *args)
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
    out, low = _dispatch(cls, plan, lower, needs)
    outs = _raised(out, lower, args, interp.wrap)
    ctx = None if low is None else low.context(needs, lower, args, outs, interp.wrap)
    return outs, ctx


def _push(cls, plan, args, interp, needs) -> tuple:
    """Forward mode: the call below, and the tangents by `jvp` or by transposing `backward`."""
    lower = map_tensors(interp.primal, args)
    tangents = [interp.tangent(a) if isinstance(a, Tensor) else None for a in args]
    moving = tuple([t is not None or n for t, n in zip(tangents, needs)])
    out, low = _dispatch(cls, plan, lower, moving)
    if low is not None:
        ctx = low.context(moving, (), (), out, lambda t: t)
    else:
        ctx = _context(plan, lower, out, moving)
    outs = out if isinstance(out, tuple) else (out,)
    varies = [
        isinstance(o, Tensor)
        and o._data.dtype in _FLOATING
        and not any(o is n for n in ctx._non_differentiable)
        for o in outs
    ]
    if cls.jvp is not Function.jvp:
        found = _user_tangents(cls, ctx, lower, tangents, outs)
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
            target._data = Dual(interp, o, t)
            made.append(target)
    made = tuple(made) if isinstance(out, tuple) else made[0]
    ctx = None if low is None else low.context(needs, lower, args, made, lambda t: t)
    return made, ctx


def _user_tangents(cls, ctx, lower: tuple, tangents: list, outs: tuple) -> tuple:
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
        if t is not None and (not isinstance(t, Tensor) or tuple(t.shape) != tuple(o.shape)):
            what = list(t.shape) if isinstance(t, Tensor) else type(t).__name__
            raise errors.GradientShapeError(
                f"{cls.__name__}.jvp returned {what} for output {i}, whose shape is "
                f"{list(o.shape)} ({errors.user_line(2)})"
            )
    return found


def _floats(t: Tensor) -> bool:
    return t._data.dtype in _FLOATING


def _transposed(cls, plan, ctx, lower, tangents, outs, varies) -> list:
    """J t from a linear `backward`: it is the pullback of v -> <backward(v), t>."""
    from ..core.project import project
    from .engine import grad

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
            pulled.append(project(g, a._data.shape, a._data.dtype))
            directions.append(level.wrap(t))
        sources = [s for s in seeds if s is not None]
        pushed = grad(pulled, sources, directions, allow_unused=True) if pulled else [None] * len(
            sources
        )
        rest = iter([None if p is None else level.unwrap(p) for p in pushed])
    return [next(rest) if v else None for v in varies]


def _is_zero(t: Tensor) -> bool:
    data = t._data
    while hasattr(data, "inner"):
        data = data.inner._data
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
    dims = _mapped(lambda t: t._data.dim if interp.mine(t) else None, args)
    dims = tuple([_nothing(d, a) for d, a in zip(dims, args)])
    lower = map_tensors(lambda t: t._data.inner if interp.mine(t) else t, args)
    with _below(interp):
        if own:
            result = cls.vmap(VmapInfo(interp.size, interp.randomness), dims, *lower)
            if not isinstance(result, tuple) or len(result) != 2:
                raise errors.TransformError(
                    errors.text(
                        f"Expected the {cls.__name__}.vmap staticmethod to have two returns, an "
                        f"output and out_dims with pytree structure compatible with the output, "
                        f"got {type(result).__name__} ({errors.user_line(3)})",
                        cure="return (output, out_dims)",
                    )
                )
            out, out_dims = result
        elif cls.generate_vmap_rule:
            mapped = _mapped_function(cls, plan, interp.size, interp.randomness, dims)
            out = _dispatch(mapped, _plan_of(mapped), lower, needs)[0]
            out_dims = mapped.out_dims
        else:
            raise errors.TransformError(
                errors.text(
                    f"You tried to vmap over {cls.__name__}, but it does not have vmap support "
                    f"({errors.user_line(3)})",
                    cure=[
                        "implement the vmap staticmethod: vmap(info, in_dims, *args) -> (output, "
                        "out_dims)",
                        "or set generate_vmap_rule = True, if forward, backward and jvp are made "
                        "of tensor operators",
                    ],
                )
            )
    given = {id(a): b for a, b in _pairs(lower, args)}
    single = not isinstance(out, tuple)
    places = (out_dims,) if single else out_dims
    if not single and not isinstance(places, (tuple, list)):
        places = (out_dims,) * len(out)
    outs = (out,) if single else out
    if len(places) != len(outs):
        raise errors.TransformError(
            f"{cls.__name__}.vmap returned {len(outs)} outputs and {len(places)} out_dims "
            f"({errors.user_line(3)})"
        )
    made = tuple([_boxed(interp, o, d, given) for o, d in zip(outs, places)])
    return made[0] if single else made, None


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
    target._data = box  # an argument that was overwritten
    return target


class _Hole:
    """A tensor's place in the notes of a context: its number, and its batch dimension."""

    __slots__ = ("dim", "number")

    def __init__(self, number: int, dim: int | None):
        self.number, self.dim = number, dim


def _mapped_function(cls, plan: _Plan, size: int, randomness: str, dims: tuple) -> type:
    """The function on a batch as a function of its own: every static method under `vmap`."""

    def enter():
        return Vmap(size, randomness)

    def box(level, values, places):
        return tuple(
            [
                type(v)(box(level, v, d))
                if type(v) in (list, tuple)
                else make(Batched(level, v, d))
                if isinstance(v, Tensor) and d is not None
                else v
                for v, d in zip(values, places)
            ]
        )

    def note(ctx, level, inner, boxes, args):
        """Keep the inner context: its tensors as saved ones, the rest as it is."""
        tensors: list = []

        def hole(t):
            mine = level.mine(t)
            tensors.append(t._data.inner if mine else t)
            return _Hole(len(tensors) - 1, t._data.dim if mine else None)

        notes = {k: v for k, v in inner.__dict__.items() if k not in ("_dirty", "_non_differentiable")}
        ctx.notes = _mapped(hole, notes)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(inner.materialize_grads)

    def restore(ctx, level):
        inner = _new(plan.context)
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

    def settle(ctx, level, inner, boxes, before, args, out):
        """Outputs of the inner function at the level below."""
        from ..core.surface import assign

        outs = out if isinstance(out, tuple) else (out,)
        dirty, fixed, made, places = [], [], [], []
        for o in outs:
            if not isinstance(o, Tensor):
                made.append(o)
                places.append(None)
                continue
            i = next((i for i, b in enumerate(boxes) if b is o), None)
            if i is not None and any(o is d for d in inner._dirty):
                target, box_ = args[i], o._data
                if box_ is not before[i]:
                    new = box_.inner
                    if box_.dim != before[i].dim:
                        new = ops.movedim(new, box_.dim, before[i].dim)
                    assign(target, new)
                dirty.append(target)
                made.append(target)
                places.append(dims[i])
                continue
            mine = level.mine(o)
            lower = o._data.inner if mine else o
            made.append(lower)
            places.append(o._data.dim if mine else None)
            if any(o is n for n in inner._non_differentiable):
                fixed.append(lower)
        mapped.out_dims = tuple(places) if isinstance(out, tuple) else places[0]
        if ctx is not None:
            ctx.mark_dirty(*dirty)
            ctx.mark_non_differentiable(*fixed)
        return tuple(made) if isinstance(out, tuple) else made[0]

    def forward(ctx, *args):
        with enter() as level:
            boxes = box(level, args, dims)
            before = [b._data if isinstance(b, Tensor) else None for b in boxes]
            inner = _new(plan.context)
            inner.needs_input_grad = ctx.needs_input_grad
            out = plan.forward(inner, *boxes)
            made = settle(ctx, level, inner, boxes, before, args, out)
            note(ctx, level, inner, boxes, args)
        return made

    def forward_alone(*args):
        with enter() as level:
            boxes = box(level, args, dims)
            before = [b._data if isinstance(b, Tensor) else None for b in boxes]
            probe = _new(plan.context)
            probe.needs_input_grad = (False,) * len(args)
            out = plan.forward(*boxes)
            plan.setup(probe, boxes, out)  # says which arguments are overwritten
            return settle(None, level, probe, boxes, before, args, out)

    def setup(ctx, inputs, output):
        with enter() as level:
            boxes = box(level, inputs, dims)
            outs = output if isinstance(output, tuple) else (output,)
            places = mapped.out_dims if isinstance(output, tuple) else (mapped.out_dims,)
            boxed = box(level, outs, places)
            for i, o in enumerate(outs):  # an argument that is returned is the same box
                for a, b in zip(inputs, boxes):
                    if a is o and isinstance(o, Tensor):
                        boxed = (*boxed[:i], b, *boxed[i + 1 :])
            inner = _new(plan.context)
            inner.needs_input_grad = ctx.needs_input_grad
            plan.setup(inner, boxes, boxed if isinstance(output, tuple) else boxed[0])

            def original(t):
                pairs = (*zip(boxes, inputs), *zip(boxed, outs))
                return next((lower for b, lower in pairs if b is t), t)

            ctx.mark_dirty(*[original(t) for t in inner._dirty])
            ctx.mark_non_differentiable(*[original(t) for t in inner._non_differentiable])
            note(ctx, level, inner, boxes, inputs)

    def backward(ctx, *grads):
        with enter() as level:
            places = mapped.out_dims if isinstance(mapped.out_dims, tuple) else (mapped.out_dims,)
            found = plan.backward(restore(ctx, level), *box(level, grads, places))
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
            return tuple([_like_input(level, g, d) for g, d in zip(found, dims)])

    def jvp(ctx, *tangents):
        with enter() as level:
            found = cls.jvp(restore(ctx, level), *box(level, tangents, dims))
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
            places = mapped.out_dims if isinstance(mapped.out_dims, tuple) else (mapped.out_dims,)
            made = tuple([_like_output(level, t, d) for t, d in zip(found, places)])
        return made if isinstance(mapped.out_dims, tuple) else made[0]

    methods = {
        "forward": staticmethod(forward_alone if plan.split else forward),
        "generate_vmap_rule": True,
        "out_dims": None,
    }
    if plan.split:
        methods["setup_context"] = staticmethod(setup)
    if plan.backward is not Function.backward:
        backward._once = getattr(plan.backward, "_once", False)
        methods["backward"] = staticmethod(backward)
    if cls.jvp is not Function.jvp:
        methods["jvp"] = staticmethod(jvp)
    mapped = _Meta(f"Vmapped{cls.__name__}", (Function,), methods)
    return mapped


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
        top = max((level_own(t._data) for t in _tensors(args)), default=0)
        if not fast["ACTIVE"] and not is_grad_enabled():
            return out
        edges: dict = {}
        _collect(args, edges, top)
        if fast["ACTIVE"] and top:  # transforms below this one: what was saved counts too
            _collect([t._data.inner for t in _saved(ctx) if hasattr(t._data, "inner")], edges, top)
        if not edges:
            return out
        return map_tensors(lambda t: _raised_to(_refusing(t, edges), edges), out)

    wrapper._once = True
    return wrapper


def _saved(ctx) -> list:
    kept = ctx._kept or ()
    return [t for t, _ in kept if t is not None] + [t for t in ctx._to_save if t is not None]


def _collect(tensors, edges: dict, top: int) -> None:
    """The edges of handles on every level."""
    for t in _tensors(tensors):
        while True:
            level = level_own(t._data)
            if t._edge is not None and state.record[level]:
                edges.setdefault(level, []).append(t._edge)
            if not hasattr(t._data, "inner"):
                break
            t = t._data.inner


def _refusing(t: Tensor, edges: dict) -> Tensor:
    """A copy of a handle that refuses to be differentiated on the given levels."""
    import copy

    data, level = t._data, level_own(t._data)
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
        if level > level_own(t._data) and isinstance(state.stack[level], Lift):
            t = state.stack[level].wrap(t)
            if t._data.dtype in _FLOATING:
                _refuse(t, edges, level)
    return t


def _refuse(t: Tensor, edges: dict, level: int) -> None:
    found = tuple(edges[level])
    t._edge = make_node(Once, Once._Rule, found, (None,) * len(found), (), level)


class InplaceFunction(Function):
    """The base class of old functions that could work in place; new ones use `mark_dirty`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """A function whose arguments and outputs are nested lists, tuples and dictionaries of tensors.

    A subclass has the static methods `forward_extended(ctx, *args)` and
    `backward_extended(ctx, *grads)`: the gradients come in the structure of the outputs and go in
    the structure of the arguments.
    """

    @staticmethod
    def forward_extended(ctx, *args):
        raise NotImplementedError

    @staticmethod
    def backward_extended(ctx, *grads):
        raise NotImplementedError

    @classmethod
    def apply(cls, *args):
        flat, spec = tree_flatten(args)
        shape: list = []

        def forward(ctx, *leaves):
            out, out_spec = tree_flatten(cls.forward_extended(ctx, *tree_unflatten(leaves, spec)))
            shape[:] = [out_spec]
            return tuple(out)

        def backward(ctx, *grads):
            found = cls.backward_extended(ctx, *_children(tree_unflatten(grads, shape[0])))
            return tuple(_spread(found if isinstance(found, tuple) else (found,), args))

        body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        flattened = _Meta(cls.__name__, (Function,), body)
        return tree_unflatten(list(flattened.apply(*flat)), shape[0])


def _children(tree) -> tuple:
    return tuple(tree) if isinstance(tree, (tuple, list)) else (tree,)


def _spread(grads, args) -> list:
    """Gradients in the structure of the arguments, flat; None stands for a whole structure."""
    found = []
    for g, a in zip(grads, args):
        if g is None:
            found += [None] * len(tree_flatten(a)[0])
        elif isinstance(a, dict):
            found += _spread([g[k] for k in a], list(a.values()))
        elif isinstance(a, (list, tuple)):
            found += _spread(g, a)
        else:
            found.append(g)
    return found
