"""Forward mode by hand: dual tensors inside of a `dual_level()` block.

A dual level is an ordinary level of the stack whose interpreter is `Jvp`, with three additions:
its duals share the tape of the level below (so that backward runs through them, forward over
reverse), a write to a dual writes the tensor that it was made of, and when the level ends all
duals become their primals again.  Read next: `../interp/jvp.py`, `functional.py`.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from .. import errors
from ..array.device import address, namespace, owner
from ..core import tape
from ..core.handle import Tensor, cell_of, is_buffer, make, tensors_in
from ..core.stack import bind
from ..interp.box import map_flat
from ..interp.jvp import Dual, Jvp, needs_decomposition
from ..memory.assign import assign, store
from ..memory.views import current, may_write, refresh
from ..table.packets import ops
from ..tensor.values import repr_with
from ..threads.blocks import tied
from ..threads.state import state
from . import transpose  # noqa: F401  (gives forward mode its last resort)
from .engine import edge_of
from .grad_mode import _Switch

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "set_fwd_grad_enabled",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: Tensor
    tangent: Tensor | None


class OwnDual(Dual):
    """A dual of a dual level; values saved from it notice writes to the primal's memory."""

    __slots__ = ()

    @property
    def cell(self):
        """The version cell of the memory below."""
        return self.inner._cell

    def shadow(self) -> OwnDual:
        """The same value in memory of its own."""
        data = self.inner._payload
        inner = make(data.copy() if is_buffer(data) else data, self.inner._edge)
        return OwnDual(self.interp, inner, self.tangent)

    def describe(self, handle: Tensor) -> str:
        """How a dual prints: its primal, then its tangent."""
        inner = current(self.inner)
        plain = make(inner._payload, handle._edge)
        if self.tangent is None:
            return repr(plain)
        tangent = self.tangent
        shown = repr(tangent) if tangent.ndim or not is_buffer(tangent._payload) else tangent.item()
        return repr_with(plain, (f"tangent={shown}",))


class DualLevel(Jvp):
    """The level of a `dual_level()` block."""

    title = "forward_ad.dual_level"
    continues_tape = True

    def __init__(self) -> None:
        self.handles: dict[int, weakref.ref] = {}  # all duals, to be made primals at the end
        self.origins: dict[int, Tensor] = {}  # of `make_dual`: the tensor whose memory it shares

    def wrap(self, primal: Tensor, tangent: Tensor) -> Tensor:
        return self._watched(make(OwnDual(self, primal, tangent)))

    def _watched(self, t: Tensor) -> Tensor:
        key = id(t)

        def forget(_, handles=self.handles, origins=self.origins):
            handles.pop(key, None)
            origins.pop(key, None)

        self.handles[key] = weakref.ref(t, forget)
        return t

    def process(self, ov, flat):
        if not _enabled():
            return bind(ov, map_flat(self.primal, flat))
        out = self._pushed(ov, flat, True)
        if needs_decomposition(ov) or not state.record[self.level]:
            return out
        outs = out if isinstance(out, (list, tuple)) else (out,)
        if any(self.mine(o) for o in outs) and any(t._edge is not None for t in tensors_in(flat)):
            tape.record(ov, flat, out, self.level)
        return out

    def record(self, ov, flat, out) -> None:
        """Nothing: `process` knows whether the result varies."""

    def rebound_to(self, handle: Tensor, new: Tensor) -> bool:
        """A dual is overwritten: so is the memory of the tensor that it was made of."""
        box = handle._payload
        primal = current(self.primal(new))
        tangent = self.tangent(new)
        if tangent is None:
            tangent = ops.zeros_like(box.inner)
        source = self.origins.get(id(handle))
        if source is None:
            handle._payload = OwnDual(self, primal, tangent)
            return False
        may_write(source, handle._edge is not None, self.level - 1)
        assign(source, primal)
        old = box.tangent
        if old is not None and old._edge is None and tangent._edge is None and _plain(old):
            tangent = assign(old, tangent)  # the tangent that was given sees the write, too
        handle._payload = OwnDual(self, source, tangent)
        return handle._cell is source._cell

    def note_rebinding(self, handle: Tensor, old) -> None:
        super().note_rebinding(handle, old)
        self._watched(handle)

    def restore(self, handle: Tensor, old) -> None:
        """A tensor from outside took a dual's value: its own memory takes the primal."""
        self.demote(handle)
        if is_buffer(old) and is_buffer(handle._payload) and handle._payload.shape == old.shape:
            store(old, handle._payload)
            handle._payload = old

    def demote(self, handle: Tensor) -> None:
        """A dual becomes its primal."""
        if not self.mine(handle):
            return
        inner = handle._payload.inner
        if inner._link is not None:
            refresh(inner)
        handle._payload, handle._edge = inner._payload, inner._edge
        if handle._link is not None:
            handle._link.seen = handle._cell.version

    def lost(self) -> None:
        """The level has ended, and duals with it."""
        super().lost()
        for ref in list(self.handles.values()):
            handle = ref()
            if handle is not None:
                self.demote(handle)
        self.handles.clear()
        self.origins.clear()


def _plain(t: Tensor) -> bool:
    """Memory of which every element is met once."""
    data = t._payload
    return is_buffer(data) and not any(s == 0 and n > 1 for s, n in zip(data.strides, data.shape))


def _levels() -> list[DualLevel]:
    return [i for i in state.stack if isinstance(i, DualLevel)]


def _innermost(what: str) -> DualLevel:
    found = _levels()
    if not found:
        raise errors.TransformError(errors.text(
            f"Trying to {what} but no level exists, make sure to enter_dual_level() first "
            f"({errors.user_line(2)})",
            cure="do it inside of `with forward_ad.dual_level():`"))
    return found[-1]


def enter_dual_level() -> int:
    """Begin a forward-mode level; `dual_level()` does so for a block."""
    if _levels():
        raise errors.TransformError(errors.text(
            "Nested forward mode AD is not supported at the moment: a dual level is entered "
            f"already ({errors.user_line()})",
            cure=[
                "use func.jvp inside of func.jvp, which nests",
                "or exit the other level first",
            ]))
    DualLevel().__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the forward-mode level: its duals become plain tensors, their primals."""
    found = _levels()
    if not found and level is None:
        raise errors.TransformError(
            f"Dual level must be a positive number: no level was entered ({errors.user_line()})"
        )
    if not found or level not in (None, 0) or state.stack[-1] is not found[-1]:
        raise errors.TransformError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            f"is not supported ({errors.user_line()})"
        )
    found[-1].__exit__(None, None, None)


class dual_level(_Switch):
    """A block in which tensors can carry tangents; works as a decorator, too."""

    def __init__(self) -> None:
        self.entered: DualLevel | None = None

    def __enter__(self) -> int:
        number = enter_dual_level()
        self.entered = state.stack[-1]
        return number

    @tied
    def __exit__(self, *exc) -> None:
        exit_dual_level(level=0)

    def lost(self) -> None:
        """Duals become their primals."""
        if self.entered is not None:
            self.entered.lost()


def _floating(value: Any, what: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise errors.ArgumentError(
            f"make_dual: the {what} must be a tensor, got {type(value).__name__} "
            f"({errors.user_line(2)})"
        )
    if value.dtype.category < 2:
        raise errors.BadValue(errors.text(
            f"Expected {what} to be floating point or complex, but got: {value.dtype} "
            f"({errors.user_line(2)})",
            cure="convert with .float() first"))
    return value


def _check_level(level: int | None, what: str) -> None:
    if level not in (None, 0):
        raise errors.TransformError(
            f"Invalid level given to {what}: there is only level 0, got {level} "
            f"({errors.user_line(2)})"
        )


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor: a view of `tensor` that carries a tangent.

    The tangent is taken as it is, not copied.
    """
    _check_level(level, "make_dual")
    own = _innermost("create a dual Tensor for forward AD")
    tensor, tangent = _floating(tensor, "primal"), _floating(tangent, "tangent")
    if own.mine(tensor) and tensor._payload.tangent is not None:
        raise errors.TransformError(errors.text(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at "
            f"the same level 0 is not supported ({errors.user_line()})",
            cure="take unpack_dual(tensor).primal"))
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise errors.TransformError(errors.text(
            "Trying to set a forward gradient that has a different size than that of the "
            f"original Tensor, this is not supported ({errors.user_line()})",
            f"Tensor is of size {list(tensor.shape)} while the given forward gradient is of "
            f"size {list(tangent.shape)}",
            "give a tangent of the tensor's shape"))
    if own.mine(tangent) and tangent._payload.tangent is not None:
        raise errors.TransformError(errors.text(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is "
            f"not supported ({errors.user_line()})",
            cure="take unpack_dual(tangent).primal, or nest func.jvp"))
    source = own.primal(tensor)
    dual = own.wrap(source, _laid_out(own.primal(tangent), source))
    own.origins[id(dual)] = source
    dual._cell = cell_of(source)
    if edge_of(source) is not None:  # a view of it: a leaf's dual is no leaf
        dual._edge = ops.view_as(source, source)._edge
    return dual


def _laid_out(tangent: Tensor, primal: Tensor) -> Tensor:
    """The tangent itself if its elements lie as the primal's do, else a copy of which they do."""
    new, like = tangent._payload, primal._payload
    if not (is_buffer(new) and is_buffer(like)):
        return tangent
    if _layout(new) == _layout(like):
        return tangent
    copied = ops.clone(tangent)
    data = namespace(primal.device).empty_like(like, dtype=new.dtype)
    store(data, new)
    copied._payload = data
    return copied


def _layout(data) -> tuple:
    """Steps in elements, the first element's place in its memory, and how large that is."""
    size, whole = data.itemsize, owner(data)
    steps = [s // size for s, n in zip(data.strides, data.shape) if n > 1]
    return steps, data.size and (address(data) - address(whole)) // size, whole.nbytes // size


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a tensor; the tangent of a plain tensor is None."""
    found = _levels()
    if not isinstance(tensor, Tensor):
        raise errors.ArgumentError(
            f"unpack_dual wants a tensor, got {type(tensor).__name__} ({errors.user_line()})"
        )
    if not found:
        return UnpackedDualTensor(tensor, None)
    _check_level(level, "unpack_dual")
    if tensor._link is not None:
        refresh(tensor)
    own = found[-1]
    if not own.mine(tensor):
        return UnpackedDualTensor(tensor, None)
    inner = tensor._payload.inner
    if inner._link is not None:
        refresh(inner)
    return UnpackedDualTensor(_alias(inner), tensor._payload.tangent if _enabled() else None)


def _alias(t: Tensor) -> Tensor:
    """A handle of the same memory with the same history: what is written to it shows in both."""
    alias = make(t._payload, t._edge)
    alias._link, alias._cell = t._link, cell_of(t)
    return alias


def _enabled() -> bool:
    return state.forward and not state.inference


def _is_fwd_grad_enabled() -> bool:
    """Do tangents propagate?"""
    return state.forward


class set_fwd_grad_enabled(_Switch):
    """Switch the propagation of tangents by a flag; acts at once, and restores on exit."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = bool(mode), _is_fwd_grad_enabled()
        state.forward = self.mode

    def __enter__(self) -> None:
        state.forward = self.mode

    @tied
    def __exit__(self, *exc) -> None:
        state.forward = self.before

    def clone(self) -> set_fwd_grad_enabled:
        """The same switch again, for a decorated function."""
        return set_fwd_grad_enabled(self.mode)

    def __call__(self, function):
        state.forward = self.before
        return super().__call__(function)


_set_fwd_grad_enabled = set_fwd_grad_enabled


def __getattr__(name: str):
    if name == "_current_level":  # PyTorch's name for how deep levels are nested; -1: no level
        return len(_levels()) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
