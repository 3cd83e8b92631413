"""A tensor's part in autograd: `requires_grad`, `grad`, `data`, hooks, `backward()`, `detach()`.

`PROPERTIES` and `METHODS` say under which names `attach` offers them.  Read next:
`autograd/engine.py`, which runs what `backward()` asks for.
"""

from __future__ import annotations

import warnings
import weakref
from typing import NamedTuple

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.device import Device
from ..array.lazy import ARRAYS
from ..array.size import Size
from ..core import events
from ..core.handle import INFERENCE, Box, Cell, Tensor, cell_of, is_wrapper_data, make, meta_of
from ..core.tape import Accumulate, Blind, Node, Port, level_own, retain
from ..memory.reading import shown, up_to_date
from ..memory.views import refresh
from ..table.packets import ops
from ..threads.state import fast as space
from ..threads.state import state, tick
from . import hooks
from .overridable import asks_in, fact, overridable, taken_over

_ndarray = np.ndarray
_asks = asks_in(globals())


def _history(self):
    """The node that gives a tensor, None of a leaf."""
    edge = up_to_date(self)._edge
    if type(edge) is Port:
        return edge.node
    return None if isinstance(edge, Accumulate) else edge


def _grad_fn(self):
    _asks_leaf(self)
    return _history(self)


def _asks_leaf(self) -> None:
    """Tell a capture that the function goes by the kind of a tensor: leaf, or with a history."""
    if state.mode:
        state.stack[state.mode].event(events.ASKS_LEAF, self)


class _Space(NamedTuple):
    """What a node says of a gradient that arrives there."""

    shape: Size
    dtype: dt.DType
    device: Device
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False
    is_tensor_subclass: bool = False


def _told_grad_fn(self):
    """The node, which learns the shape of this tensor on the way."""
    if _asks and (taken := taken_over(_told_grad_fn, (self,))):
        return taken[0]
    node = _grad_fn(self)
    if node is not None:
        number = self._edge.number if type(self._edge) is Port else 0
        node.__dict__.setdefault("_spaces", {}).setdefault(
            number, _Space(self.shape, self.dtype, self.device, is_tensor_subclass=(
                is_wrapper_data(self._payload))))
    return node


def _requires_grad(self) -> bool:
    if _asks and (taken := taken_over(_requires_grad, (self,))):
        return taken[0]
    link = self._link
    if link is None:
        return self._edge is not None
    if link.apart or isinstance(self._payload, Box):
        refresh(self)
        return self._edge is not None
    edge = self._edge
    return link.base._edge is not None or edge is not None and edge.__class__ is not Blind


def _set_requires_grad(self, value: bool = True):
    if value:
        if self._cell is INFERENCE and not state.inference:
            raise errors.InferenceTensor(
                errors.text(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                    f"allowed ({errors.user_line(2)})",
                    cure="clone() it first",
                )
            )
        if self.dtype.category < 2:
            raise errors.DTypeError(
                errors.text(
                    "only Tensors of floating point and complex dtype can require gradients, not "
                    f"{self.dtype} "
                    f"({errors.user_line(2)})",
                    cure="convert with .float() first",
                )
            )
        if up_to_date(self)._edge is None or self._edge.__class__ is Blind:
            top, link = state.stack[-1], self._link
            if top is not None and level_own(self._payload) < top.level:
                if link is None or link.apart:  # an alias without history begins one of its own
                    self._link = None
                    top.event(events.BEGINS_LEAF, self)
            self._edge = Accumulate(self)
            if self._record is not None and self._record.hooks is not None:
                self._edge.hooks = {"tensor": self._record.hooks}
    elif self._edge is not None and self._edge.__class__ is not Blind:
        _asks_leaf(self)
        if not isinstance(self._edge, Accumulate):
            raise _not_a_leaf()
        if self._edge.hooks is not None:  # they are the tensor's: back when it requires grad again
            meta_of(self).hooks = self._edge.hooks.get("tensor")
        self._edge = None


def _not_a_leaf() -> errors.NoGraph:
    return errors.NoGraph(
        errors.text(
            f"you can only change requires_grad flags of leaf variables ({errors.user_line(3)})",
            cure="use detach() to get a tensor without history",
        )
    )


def _assign_requires_grad(self, value: bool) -> None:
    if _asks and (taken := taken_over(_assign_requires_grad, (self, value))):
        return taken[0]
    if not isinstance(value, (bool, np.bool_)):
        raise errors.RefusedValue(
            f"requires_grad must be a bool, not {type(value).__name__} ({errors.user_line()})"
        )
    if _grad_fn(self) is not None:
        raise _not_a_leaf()
    _set_requires_grad(self, value)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Start (or stop) collecting gradients for this leaf."""
    if _asks and (taken := taken_over(requires_grad_, (self, requires_grad))):
        return taken[0]
    _set_requires_grad(self, requires_grad)
    return self


def _get_grad(self):
    if _asks and (taken := taken_over(_get_grad, (self,))):
        return taken[0]
    if state.mode:
        _tell_of_grad(self, False)
    if self._record is None:
        if self._edge is not None and not isinstance(self._edge, Accumulate):
            _warn_of_grad(self)
        return None
    if self._record.grad is None and not self._record.retains and _history(self) is not None:
        _warn_of_grad(self)
    return self._record.grad


def _tell_of_grad(t: Tensor, replaced: bool) -> None:
    """Tell a capture that the gradient of a tensor is being read or replaced."""
    level = state.stack[state.mode]
    if level.adopts:
        level.met_gradient(t, replaced)


def _warn_of_grad(t: Tensor) -> None:
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        f"attribute won't be populated during autograd.backward() ({errors.user_line(3)}). "
        "Call .retain_grad() on it before that, or look at the leaf instead.",
        UserWarning,
        stacklevel=3,
    )


def _set_grad(self, value):
    if _asks and (taken := taken_over(_set_grad, (self, value))):
        return taken[0]
    if state.mode:
        _tell_of_grad(self, True)
    if value is None:
        if self._record is not None:
            self._record.grad = None
        return
    from ..autograd.gradients import as_gradient

    meta_of(self).grad = as_gradient(value, self)


def _get_grad_dtype(self):
    """The dtype of the gradients that a leaf collects."""
    wanted = None if self._record is None else self._record.grad_dtype
    return dt.of(self._payload.dtype if wanted is None else wanted)


def _set_grad_dtype(self, dtype) -> None:
    if _grad_fn(self) is not None:
        raise errors.NoGraph(
            errors.text(
                f"grad_dtype can only be set on leaf tensors ({errors.user_line(2)})",
                cure="set it on the leaf whose gradient is collected",
            )
        )
    meta = meta_of(self)
    if meta.grad is not None and meta.grad.dtype is not dt.as_dtype(dtype):
        raise errors.DTypeError(
            errors.text(
                f"the tensor has a gradient of dtype {meta.grad.dtype} already "
                f"({errors.user_line(2)})",
                cure="set .grad to None first",
            )
        )
    meta.grad_dtype = dt.as_dtype(dtype).np


def _version(self) -> int:
    """How often the memory was written; views share the count."""
    cell = self._cell
    if cell is INFERENCE:
        raise errors.InferenceTensor(
            f"Inference tensors do not track version counter ({errors.user_line(2)})"
        )
    return 0 if cell is None else cell.version


def _backward_hooks(self):
    """The hooks of a tensor by their numbers, None where there are none."""
    edge = self._edge
    node, number = (edge.node, edge.number) if type(edge) is Port else (edge, 0)
    tables = None if node is None or node.hooks is None else node.hooks.get("tensor")
    return (tables or {}).get(number) or None


def _get_data(self) -> Tensor:
    """An alias without history; writes to it are not tracked by the version counter."""
    if _asks and (taken := taken_over(_get_data, (self,))):
        return taken[0]
    _meet(self)
    data = shown(self)
    if data.__class__ is not _ndarray and isinstance(data, Box) and data.hides:
        raise errors.TransformError(errors.text(
            f"accessing `data` under vmap transform is not allowed ({errors.user_line()})",
            cure="use detach()"))
    own = getattr(data, "interp", None)
    if is_wrapper_data(data) or own is not None and not _is_dual(own):
        out = ops.detach(self)
        if is_wrapper_data(out._payload) and not state.mode:  # versions of its own
            out._link, out._cell = None, Cell()
            out._payload.cell = out._cell
        elif out._link is not None:
            out._link.counts = False
        return out
    if self._dispatched and not state.dispatch.no_subclasses and not state.mode:
        out = ops.detach(self)
        out._link = out._cell = None
        return out
    return make(_primal(data))


def _meet(t: Tensor) -> None:
    """Let a capture know of a tensor from outside, as an operator on it would."""
    if state.mode and type(t._payload) in ARRAYS and state.stack[state.mode].adopts:
        state.stack[state.mode].adopt(t)


def _primal(data):
    """The data without a tangent of `forward_ad`."""
    own = getattr(data, "interp", None)
    return data.inner._payload if own is not None and _is_dual(own) else data


def _is_dual(level) -> bool:
    """Is this a level of `forward_ad`, whose tensors have memory?"""
    return level.continues_tape and not level.modal


def _set_data(self, value: Tensor) -> None:
    """Point the handle at other memory; history, base and version counter stay."""
    if _asks and (taken := taken_over(_set_data, (self, value))):
        return taken[0]
    if not isinstance(value, Tensor):
        raise errors.ArgumentError(
            f"Variable data has to be a tensor, but got {type(value).__name__} "
            f"({errors.user_line()})"
        )
    if isinstance(self._payload, Box) and self._payload.hides:
        raise errors.TransformError(errors.text(
            "mutating directly with `.data` under vmap transform is not allowed "
            f"({errors.user_line()})", cure="use copy_()"))
    _meet(self)
    _meet(value)
    old, data = self._payload, _primal(shown(value))
    leaf = isinstance(self._edge, Accumulate)
    if self._edge is not None and dt.of(data.dtype).category < 2:
        raise errors.DTypeError(
            errors.text(
                "data set to a tensor that requires gradients must be floating point or complex "
                f"dtype ({errors.user_line()})",
                f"tensor: {self.dtype.name}{list(self.shape)}, data: {value.dtype.name}",
                "set requires_grad to False first",
            )
        )
    other = data.shape != old.shape or data.dtype != old.dtype
    interp = getattr(old, "interp", None)
    if leaf and other and interp is not None and interp.adopts:
        raise errors.DataDependentError(errors.text(
            f"a captured function replaces the data of a leaf by {value.dtype.name}"
            f"{list(value.shape)} ({errors.user_line()}): where gradients go then is in no graph",
            f"tensor: {self.dtype.name}{list(self.shape)}, requires grad",
            "assign `.data` outside of the function"))
    if old is not _primal(old) and old.shape == data.shape:  # a dual: its tangent stays
        data = type(old)(old.interp, make(data), old.tangent)
    if is_wrapper_data(data):
        data = data.taken_by(self)
    self._payload = data
    if interp is not None:
        interp.event(events.TOOK_DATA, self, value)
    if leaf and other:  # gradients of the old shape go where they went; new ones arrive here
        hooked, self._edge = self._edge.hooks, Accumulate(self)
        self._edge.hooks = hooked


def _kept(name: str):
    """What `del tensor.name` does: it is refused."""

    def delete(self) -> None:
        raise errors.RefusedValue(errors.text(
            f"{name} of a tensor cannot be deleted ({errors.user_line()})",
            cure="delete the tensor, or assign another value"))

    return fact(delete)

_run_backward = None  # the engine's, once it is there


def backward(
    self: Tensor, gradient=None, retain_graph=None, create_graph: bool = False, inputs=None
) -> None:
    """Accumulate the gradients of this tensor into the leaves."""
    if _asks and (taken := taken_over(backward, locals())):
        return taken[0]
    global _run_backward
    if gradient is None and inputs is None and not create_graph:
        edge = self._edge
        if edge is not None and edge.at_once is not None and edge.at_once(self, retain_graph):
            return
    if _run_backward is None:
        from ..autograd.gradients import backward as _run_backward

    seeds = None if gradient is None else [gradient]
    _run_backward([self], seeds, retain_graph, create_graph, inputs=inputs)


def detach(self: Tensor) -> Tensor:
    """The same memory without history."""
    t = make(shown(self))
    t._cell = cell_of(self)
    return t


def _detach(self: Tensor) -> Tensor:
    """The same memory without history."""
    if _asks and (taken := taken_over(_detach, (self,))):
        return taken[0]
    if space["ACTIVE"] or self._payload.__class__ not in ARRAYS:
        return ops.detach(self)
    return detach(self)


def detach_(self: Tensor) -> Tensor:
    """Forget the history."""
    if _asks and (taken := taken_over(detach_, (self,))):
        return taken[0]
    interp = getattr(self._payload, "interp", None)
    if self._link is not None and not self._link.apart:
        if interp is None or not interp.adopts or id(self) not in interp.memory.views:
            raise errors.ViewWriteError("Can't detach views in-place. Use detach() instead.")
        self._link.base._edge = None  # what it was before it changed its shape in place
    edge = self._edge
    node, number = (edge.node, edge.number) if type(edge) is Port else (edge, None)
    if isinstance(node, Node) and not isinstance(node, Accumulate):
        meta_of(self).detached = weakref.ref(node), number, tick()
    if interp is not None and not interp.adopts:  # tangents end, and so do those of its graph
        self._payload = ops.detach(make(self._payload))._payload
    elif interp is not None and self._link is None and id(self) not in interp.first:
        self._payload = interp.cut(self)._payload
    self._edge, self._payload = None, _primal(self._payload)
    return self


@overridable
def register_hook(self: Tensor, hook) -> hooks.RemovableHandle:
    """Call `hook(grad)` when this tensor's gradient is computed; it may return another gradient."""
    if up_to_date(self)._edge is None:
        raise errors.NoGraph(
            errors.text(
                "cannot register a hook on a tensor that doesn't require gradient "
                f"({errors.user_line(2)})",
                cure="call requires_grad_() on it before computing",
            )
        )
    return hooks.on_tensor(self, hook)


@overridable
def register_post_accumulate_grad_hook(self: Tensor, hook) -> hooks.RemovableHandle:
    """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`."""
    if self._edge is None:
        raise errors.NoGraph("cannot register a hook on a tensor that doesn't require gradient")
    _asks_leaf(self)
    if not isinstance(self._edge, Accumulate):
        raise errors.NoGraph("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return hooks.on_accumulated(self, hook)


@overridable
def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this non-leaf in `.grad`."""
    edge = up_to_date(self)._edge
    if edge is None:
        raise errors.NoGraph("can't retain_grad on Tensor that has requires_grad=False")
    _asks_leaf(self)
    if not isinstance(edge, Accumulate) and not meta_of(self).retains:
        retain(self)


PROPERTIES = {
    "requires_grad": property(_requires_grad, _assign_requires_grad, _kept("requires_grad")),
    "is_leaf": property(fact(lambda t: _grad_fn(t) is None)),
    "grad_fn": property(_told_grad_fn),
    "_grad_fn": property(fact(_grad_fn), None, _kept("_grad_fn")),
    "grad": property(_get_grad, _set_grad, fact(lambda t: _set_grad(t, None))),
    "_grad": property(_get_grad, _set_grad, fact(lambda t: _set_grad(t, None))),
    "data": property(_get_data, _set_data, _kept("data")),
    "grad_dtype": property(fact(_get_grad_dtype), overridable(_set_grad_dtype)),
    "_version": property(fact(_version)),
    "_backward_hooks": property(fact(_backward_hooks), None, _kept("_backward_hooks")),
    "output_nr": property(fact(lambda t: t._edge.number if type(t._edge) is Port else 0)),
    "retains_grad": property(fact(lambda t: t._record is not None and t._record.retains)),
    "name": property(fact(lambda t: None if t._record is None else t._record.name)),
}
METHODS = {
    "requires_grad_": requires_grad_,
    "backward": backward,
    "detach": _detach,
    "detach_": detach_,
    "register_hook": register_hook,
    "retain_grad": retain_grad,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
}
