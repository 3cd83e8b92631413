"""`autograd.Function`: an operation whose derivative the user writes.

`Function.apply` runs `forward` once, on the values below all transforms, with recording off; then
each level that is above makes of it what it makes of an operator: a tape records one node whose
pullback is the user's `backward`, forward mode calls `jvp` (or transposes `backward`), `vmap` calls
the user's rule, a trace sees the operators inside.  A context belongs to one level: `setup_context`
is called for each, and a context that `forward` itself filled is translated, tensor by tensor.
Read next: `context.py`, `levels.py` for the transforms, `../core/tape.py` for ordinary nodes.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections import namedtuple
from typing import Any

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor, cell_of, is_buffer, keep, make
from ..core.tape import Blind, Node, level_own, make_node, port
from ..errors import freed, output_of, place
from ..interp.operator_dispatch import detach_kept
from ..memory.links import Link, one_more
from ..memory.versions import bump
from ..memory.views import copy_slices, may_write, refresh
from ..pytree import tree_flatten, tree_unflatten
from ..table.packets import ops
from ..threads.state import fast, off, sequence, state
from .context import CLEARED, FunctionCtx, KeptTensor
from .saved_values import packed

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


class FunctionNode(Node):
    """A call of a `Function` on the tape; each function has a class of its own, for its name."""

    __slots__ = ("ctx", "function", "outputs", "places", "spaces", "width")
    boxed = None  # a backward that takes the gradients in one list

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

    @property
    def _raw_saved_tensors(self) -> tuple:
        """What `forward` saved, as it is kept."""
        if self.ctx._kept is None or self.ctx._kept is CLEARED:
            raise freed(self)
        return tuple([KeptTensor(self, i) for i in range(len(self.ctx._kept))])

    def release(self) -> None:
        self.saved = self.ctx._kept = None

    def apply(self, grads: list, needs: list) -> list:
        ctx, given = self.ctx, grads
        some = self.outputs > 1 or grads[0] is None
        if some and ctx.materialize_grads and any(g is None for g in grads):
            grads = [
                _zeros(space) if g is None and space is not None else g
                for g, space in zip(grads, self.spaces)
            ]
        if self.boxed is None:
            found = self.function(ctx, *grads)
        else:  # nobody else holds them, so that it may let them go
            held = list(grads)
            if self.hooks is None or "post" not in self.hooks:
                given.clear()
            grads = None
            found = self.boxed(ctx, held)
        if found.__class__ is not tuple:
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        places = self.places
        if len(found) != self.width or len(places) != self.width:
            found = self._counted(found)
        for g in found:
            if g is not None and not isinstance(g, Tensor):
                raise errors.GradientShapeError(errors.text(
                    f"expected Variable or None (got {type(g).__name__}) from the backward of "
                    f"{self._title()}",
                    cure="return tensors, and None for inputs without gradient"))
        return found

    def undefined(self, grads: list, needs: list) -> list:
        return self.apply(grads, needs)

    def _counted(self, found: tuple) -> list:
        """The gradients of the tensor inputs among those of all inputs."""
        width, given = self.width, len(found)
        if given < width or any(g is not None for g in found[width:]):
            raise errors.GradientShapeError(errors.text(
                f"function {self._title()} returned an incorrect number of gradients "
                f"(expected {width}, got {given})",
                cure="return one value per argument of forward, None for those without "
                "gradient"))
        for i, g in enumerate(found[:width]):
            if g is not None and i not in self.places:
                raise errors.GradientShapeError(errors.text(
                    f"function {self._title()} returned a gradient different than None at "
                    f"position {i + 1}, but the corresponding forward input was not a Variable",
                    cure="return None there"))
        return [found[i] for i in self.places]

    def _title(self) -> str:
        return f"{self.name()} (called at {errors.describe_place(self.where)})"


def _space(value) -> tuple | None:
    """What is needed to make zeros like an output."""
    if not isinstance(value, Tensor):
        return None
    data = value._payload
    if type(data) is _ndarray:
        return data.shape, data.dtype, None
    return data.shape, data.dtype, value.device


def _zeros(space: tuple) -> Tensor:
    shape, dtype, device = space
    if device is None and not fast["ACTIVE"]:
        return make(np.zeros(shape, dtype))
    return ops.zeros(shape, dtype=dt.of(dtype), device=device)


_RULE = FunctionNode._Rule
BackwardCFunction = FunctionNode  # its name in PyTorch


class Opaque(Link):
    """How an output of a `Function` shares memory with an input.

    Its history is the user's backward, which a write through either of the two would lose: writes
    are refused where gradients are at stake.
    """

    __slots__ = ()

    def refuse(self, t: Tensor, what: str) -> None:
        """Refuse a write, or the use of the view after a write to its base."""
        raise errors.ViewWriteError(errors.text(
            f"Output {output_of(t)} is a view and {what} ({errors.user_line(3)}). This "
            "view was created inside a custom Function (or because an input was returned "
            "as-is) and the autograd logic to handle view+inplace would override the custom "
            "backward associated with the custom Function, leading to incorrect gradients",
            f"tensor: {t.dtype.name}{list(t._payload.shape)}",
            "clone() the output of the custom Function"))

    def stale(self, t: Tensor) -> None:
        """The memory was written since: the values follow, a history cannot."""
        if t._edge is not None and state.record[level_own(t._payload)]:
            self.refuse(t, "its base or another view of its base has been modified inplace")
        self.seen = t._cell.version


class _Plan:
    """What `apply` has to know about a class of functions, found out once."""

    __slots__ = ("backward", "context", "forward", "node", "setup", "split")

    def __init__(self, cls: type):
        self.forward = cls.forward
        self.setup = cls.setup_context
        self.split = cls.setup_context is not Function.setup_context
        self.context = type(
            f"{cls.__name__}Backward",
            (FunctionCtx,),
            {"_forward_cls": cls, "__module__": cls.__module__,
             "_clears": bool(cls.clear_saved_tensors_on_access)},
        )
        facts = {"__slots__": ()}
        if cls.boxed_grads_call:
            facts["boxed"] = staticmethod(
                cls.vjp if cls.vjp is not Function.vjp else cls.backward)
        self.node = type(self.context.__name__, (FunctionNode,), facts)
        own, other = cls.backward is not Function.backward, cls.vjp is not Function.vjp
        if own and other:
            raise errors.TransformError(
                f"Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                f"should only implement one of them: {cls.__name__} ({errors.user_line(3)})"
            )
        self.backward = cls.vjp if other else cls.backward
        if cls.boxed_grads_call:  # one list, which it may empty to let gradients go
            given = self.backward
            self.backward = lambda ctx, *grads: given(ctx, list(grads))

    def run(self, ctx: FunctionCtx, args: tuple):
        """`forward`, which fills the context itself or has `setup_context` do it."""
        if not self.split:
            return self.forward(ctx, *args)
        out = self.forward(*args)
        self.setup(ctx, args, out)
        return out


def _plan_of(cls: type) -> _Plan:
    """The plan of a class; made anew when one of its methods was replaced."""
    plan = cls.__dict__.get("_plan")
    if plan is None or plan.forward is not cls.forward or plan.setup is not cls.setup_context:
        plan = cls._plan = _Plan(cls)
    return plan


_NO_BACKWARD = ("You must implement either the backward or vjp method for your custom "
                "autograd.Function to use it with backward mode AD.")


class _Meta(type):
    """Replacing a method of a class (as tests like to do) makes its plan obsolete."""

    def __setattr__(cls, name, value):
        super().__setattr__(name, value)
        if name != "_plan":
            cls._forget()

    def _forget(cls) -> None:
        if "_plan" in cls.__dict__:
            del cls._plan
        for below in cls.__subclasses__():
            below._forget()


class Function(metaclass=_Meta):
    """Base class of operations with a derivative of their own.

    A subclass has the static methods `forward(ctx, *args)` and `backward(ctx, *grads)`, or
    `forward(*args)` with `setup_context(ctx, inputs, output)`; `jvp(ctx, *tangents)` gives forward
    mode, `vmap(info, in_dims, *args)` or `generate_vmap_rule = True` gives batching.  Call it by
    `apply`.
    """

    _emits = False  # does `forward` make a node of a capture by itself?
    _derived = False  # is `backward` known to be the derivative, and thus linear in gradients?
    _single_level = False  # does `forward` run on the level of its arguments?
    generate_vmap_rule = False
    boxed_grads_call = False  # does `backward` take the gradients in one list?
    clear_saved_tensors_on_access = False  # may `saved_tensors` be read once only?

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise errors.TransformError(errors.text(
            f"Legacy autograd function with non-static forward method is deprecated "
            f"({errors.user_line(2)})",
            cure=f"make the methods static and call {type(self).__name__}.apply(...)"))

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation itself; nothing inside is recorded."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Fill the context, where `forward` does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **kwargs: Any) -> Any:
        """Gradients of the inputs from those of the outputs."""
        raise NotImplementedError(_NO_BACKWARD)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any, **kwargs: Any) -> Any:
        """Another name of `backward`."""
        raise NotImplementedError(_NO_BACKWARD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **kwargs: Any) -> Any:
        """Tangents of the outputs from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any, **kwargs: Any) -> Any:
        """The operation on a batch: returns the output and the place of its batch dimension."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the function and put it on the tape."""
        plan = cls.__dict__.get("_plan") or _plan_of(cls)
        if kwargs or plan.split:
            args = _bound(cls, plan, args, kwargs)
        if fast["PARTS"] and carried.of_parts(args):
            return carried.applied(cls, plan, args)
        if fast["ACTIVE"]:
            return levels.dispatch(cls, plan, args)[0]
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
        record, tangents = state.record, state.forward
        before, key = record[0], id(ctx)
        try:
            state.forward = False
            if before:
                off.add(key)
                record[0] = False
            out = plan.run(ctx, args)
            state.forward = tangents
            if before:
                record[0] = True
                off.discard(key)
        except BaseException:  # `finally` would leave its own steps out
            state.forward = tangents
            if before:
                record[0] = True
                off.discard(key)
            raise
        tracked = tracked and before
        if (
            out.__class__ is not Tensor
            or out._link is not None
            or out._edge is not None
            or "_dirty" in notes
            or "_non_differentiable" in notes
            or id(out) in map(id, args)
        ):
            return _finish(plan, ctx, args, places, edges, out, tracked, 0)
        if tracked and out._payload.dtype in _FLOATING:
            _record(plan, ctx, args, places, edges, out)
        return out


def _record(plan, ctx, args: tuple, places: list, edges: list, out: Tensor) -> None:
    """Put a call with one new output on the tape: `_finish`, for what is the rule."""
    node = _new(plan.node)
    node.rule, node.edges, node.hooks, node.level = _RULE, tuple(edges), None, 0
    node.metas = _metas(args, places, edges)
    node.seq, node.where = sequence(), place(3)
    node.ctx, node.function = ctx, plan.backward
    node.places, node.width, node.outputs = places, len(args), 1
    data, notes = out._payload, ctx.__dict__
    node.spaces = ((data.shape, data.dtype, None),) if type(data) is _ndarray else (_space(out),)
    notes["_node"] = _ref(node)
    if "_to_save" in notes:
        saved = notes.pop("_to_save")
        notes["_kept"] = node.saved = tuple([
            (t, -1) if t is not out and t is not None else _keep(t, {id(out): 0}) for t in saved])
    else:
        node.saved = ()
    node.stamp = fast["CLOCK"]
    out._edge = node


def _metas(args: tuple, places: list, edges: list) -> tuple:
    """Shapes and dtypes of the arguments that gradients go to."""
    return tuple([None if e is None else (args[i]._payload.shape, args[i]._payload.dtype)
                  for i, e in zip(places, edges)])


class _SingleLevelFunction(Function):
    """A function whose `forward` gets the tensors of a transform as they are.

    For rules of `torch._ops.HigherOrderOperator`: it takes the level off and puts it on again.
    """

    _single_level = True


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
            positional = (
                inspect.Parameter.POSITIONAL_ONLY,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
            )
            full = len(parameters) if all(p.kind in positional for p in parameters) else -1
            if not any(p.default is not p.empty for p in parameters) and any(
                p.kind is p.VAR_POSITIONAL for p in parameters
            ):
                full = None  # any number, and nothing to fill in
            signature = signature.replace(parameters=parameters), full
        except (TypeError, ValueError):
            signature = None, None
        plan.context._signature = signature
    signature, full = signature
    if signature is None and kwargs:
        raise errors.ArgumentError(f"{cls.__name__}.apply takes no keyword arguments")
    if not kwargs and (full is None or full == len(args)):
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        text = (f"{cls.__name__}.apply: keyword-only arguments of forward are not supported, "
                f"kwarg-only Tensor args in particular ({errors.user_line(2)})")
        if fast["ACTIVE"] and len(state.stack) > 1:
            raise NotImplementedError(text)  # as PyTorch under transforms
        raise errors.ArgumentError(text)
    return bound.args


def _finish(plan, ctx, args, places, edges, out, tracked: bool, level: int, kind=None):
    """The outputs as the caller gets them, with the function as their history if it is tracked."""
    single = not isinstance(out, tuple)
    outs = (out,) if single else out
    dirty = ctx._dirty
    if dirty:
        _check_dirty(dirty, outs, args)
    node = None
    tracked = tracked and any(isinstance(o, Tensor) for o in outs)
    if tracked:
        metas = _metas(args, places, edges)
        node = make_node(kind or plan.node, _RULE, tuple(edges), metas, (), level)
        node.ctx, node.function = ctx, plan.backward
        node.places, node.width, node.outputs = places, len(args), len(outs)
        ctx._node = weakref.ref(node)
    call = _Outputs(ctx, args, places, node, len(outs), level)
    final = [call.settled(o, number) if isinstance(o, Tensor) else o
             for number, o in enumerate(outs)]
    if node is not None:
        node.spaces = [_space(o) for o in final]
        to_save = ctx._to_save
        if to_save:
            ctx._kept = tuple([_keep(t, call.numbers) for t in to_save])
            node.saved = ctx._kept
            ctx._to_save = ()
        node.stamp = fast["CLOCK"]
        if state.observers.checkpoint is not None and state.observers.checkpoint.level == level:
            state.observers.checkpoint.noted(node)
        if fast["DISPATCHES"]:
            detach_kept(node)
    return final[0] if single else tuple(final)


class _Outputs:
    """The outputs of a call: which are arguments, which were overwritten, which have history."""

    def __init__(self, ctx, args: tuple, places: list, node, count: int, level: int):
        self.ctx, self.args, self.places, self.node = ctx, args, places, node
        self.count, self.level = count, level
        self.numbers: dict = {}  # outputs that may be saved, by identity: which

    def settled(self, o: Tensor, number: int) -> Tensor:
        """An output as the caller gets it."""
        source, node, tracked = o, self.node, self.node is not None
        if any(o is d for d in self.ctx._dirty):
            differentiable = tracked and self.varies(o, source)
            if tracked or o._edge is None:
                _written(o, node if differentiable else None, number, self.level)
            else:
                bump(o)
            if differentiable:
                self.numbers[id(o)] = number
            return o
        if any(self.args[i] is o for i in self.places):
            o = _alias(o, tracked)
        differentiable = tracked and self.varies(o, source)
        if o._link is not None:
            _detach_view(o, self.args, self.places, differentiable)
        if differentiable:
            o._edge = node if self.count == 1 else port(node, number)
            if o is source:
                self.numbers[id(o)] = number
        elif o._edge is not None and (tracked or o._edge.__class__ is not Blind):
            o = make(o._payload)  # a tensor from elsewhere keeps its history, the output has none
            o._cell = source._cell
        return o

    def varies(self, o: Tensor, source: Tensor) -> bool:
        """Has an output a derivative?"""
        return o._payload.dtype in _FLOATING and not any(
            source is n for n in self.ctx._non_differentiable)


def _keep(t: Tensor | None, numbers: dict) -> tuple:
    """A tensor as it is now; an output loses its history, which would be a circle."""
    if t is None:
        return None, -1
    number = numbers.get(id(t), -1)
    if state.observers.saved_hooks:
        return packed(t, number >= 0), number
    if number < 0:
        return keep(t), -1
    snapshot = make(t._payload)
    if is_buffer(t._payload):
        snapshot._cell = cell_of(t)
    return snapshot, number


def _check_dirty(dirty: tuple, outs: tuple, args: tuple) -> None:
    for d in dirty:
        if not any(d is a for a in args):
            warnings.warn(
                "ctx.mark_dirty() received a tensor that was not an input; only inputs that "
                "forward overwrites need it",
                stacklevel=4,
            )
        if not any(d is o for o in outs):
            raise errors.LeafWriteError(errors.text(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the "
                f"Function ({errors.user_line(3)})",
                cure="return the tensors given to ctx.mark_dirty"))


def _alias(t: Tensor, tracked: bool) -> Tensor:
    """Another handle of the same memory: a view, unless a history is being left behind."""
    if not is_buffer(t._payload):
        return make(t._payload)
    made, link = make(t._payload[...]), t._link
    made._cell = cell = cell_of(t)
    if t._edge is not None and not tracked:
        return made
    base, steps, multi = (t, None, False) if link is None else (link.base, link.steps, link.multi)
    steps = one_more(steps, (_alias_overload(), (), None))
    made._link = Link(base, steps, multi, None, cell.version)
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
        o._link = Opaque(link.base, link.steps, link.multi, None, o._cell.version)
    else:
        o._link = Link(link.base, link.steps, link.multi, "no_grad", o._cell.version)


def _written(x: Tensor, node, number: int, level: int) -> None:
    """An input that `forward` overwrote: its history is the function from now on, or nothing."""
    bump(x)
    if node is not None:
        may_write(x, True, level, True)
    link = x._link
    if link is None:
        x._edge = None if node is None else port(node, number)
    elif node is not None:
        base = link.base
        x._edge = port(node, number)
        base._edge = copy_slices(base, x, make(x._payload, x._edge))
        base._edge.level = level
        link.seen = -1


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


from . import carried, levels  # noqa: E402  (they need the names above)

once_differentiable = levels.once_differentiable
