"""Transforms by hand: levels, their boxes and the switches that PyTorch has in `_C._functorch`.

`vmap`, `grad` and `jvp` are made of these; rules of custom operators (`torch/higher_order.py`) and
programs that look inside of a transform use them directly.  Read next: `../interp/`.
"""

from __future__ import annotations

import enum

from .. import errors
from ..core.handle import Tensor, make
from ..core.stack import outlived
from ..interp import vmap as batching
from ..interp.functionalize import Functional, Functionalize
from ..interp.interpreter import Interpreter
from ..interp.jvp import Dual, Jvp
from ..interp.lift import Lift, Lifted
from ..interp.vmap import Batched, Vmap
from ..table.packets import ops
from ..threads.state import state

TransformType = enum.Enum("TransformType", "Torch Vmap Grad Jvp Functionalize", module=__name__)
_KINDS = {Vmap: TransformType.Vmap, Lift: TransformType.Grad, Jvp: TransformType.Jvp,
          Functionalize: TransformType.Functionalize}


def kind_of(interp: Interpreter) -> TransformType | None:
    """Which transform a level belongs to; None for a capture."""
    return next((kind for cls, kind in _KINDS.items() if isinstance(interp, cls)), None)


# what a tensor is

def is_batchedtensor(t: Tensor) -> bool:
    """Is a dimension of it hidden by `vmap`?"""
    return isinstance(t._payload, Batched)


def is_gradtrackingtensor(t: Tensor) -> bool:
    """Is it differentiated by a transform?"""
    return isinstance(t._payload, (Lifted, Dual))


def is_functionaltensor(t: Tensor) -> bool:
    """Does it belong to `functionalize`?"""
    return isinstance(t._payload, Functional)


def is_functorch_wrapped_tensor(t: Tensor) -> bool:
    """Does it belong to a transform?"""
    return isinstance(t._payload, (Batched, Lifted, Dual, Functional))


def is_dead_tensor_wrapper(t: Tensor) -> bool:
    """Did it outlive its transform?"""
    return is_functorch_wrapped_tensor(t) and not t._payload.interp.alive


def unwrap_if_dead(t: Tensor) -> Tensor:
    """What is left of a tensor that outlived its transform: the value below."""
    return outlived(t)


def maybe_get_level(t: Tensor) -> int:
    """The level of a tensor, -1 outside of all transforms, -2 if it outlived its own."""
    if not is_functorch_wrapped_tensor(t):
        return -1
    return t._payload.interp.level if t._payload.interp.alive else -2


def dlevel(t: Tensor) -> int:
    """The level of a tensor, 0 outside of all transforms, -1 if it outlived its own."""
    return maybe_get_level(t) + (maybe_get_level(t) < 0)


def maybe_get_bdim(t: Tensor) -> int:
    """The dimension that `vmap` hides, -1 if there is none."""
    return t._payload.dim if is_batchedtensor(t) else -1


def get_unwrapped(t: Tensor) -> Tensor:
    """The tensor one level below."""
    if not is_functorch_wrapped_tensor(t):
        raise errors.TransformError(
            f"get_unwrapped() takes tensors of transforms, this one belongs to none "
            f"({errors.user_line()})")
    return t._payload.inner


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor below a transform, below all of them if `recurse`: for looking at it."""
    while is_functorch_wrapped_tensor(tensor):
        tensor = tensor._payload.inner
        if not recurse:
            break
    return tensor


# boxes

def _level(number: int) -> Interpreter:
    return state.stack[number]


def _add_batch_dim(t: Tensor, bdim: int, level: int) -> Tensor:
    """The tensor with a dimension hidden on a level of `vmap`."""
    return make(Batched(_level(level), t, bdim % t.ndim))


def _unwrap_batched(t: Tensor, level: int) -> tuple[Tensor, int | None]:
    """The tensor below a level of `vmap` and the dimension that it hides there."""
    return (t._payload.inner, t._payload.dim) if _level(level).mine(t) else (t, None)


def _remove_batch_dim(t: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """The tensor below a level of `vmap`, with the hidden dimension at `out_dim`."""
    inner, dim = _unwrap_batched(t, level)
    if dim is None:
        inner, dim = inner.unsqueeze(0).expand(batch_size, *inner.shape), 0
    return ops.movedim(inner, dim, out_dim)


def _wrap_for_grad(t: Tensor, level: int) -> Tensor:
    """The tensor on a level of `grad` or `jvp`."""
    interp = _level(level)
    return interp.wrap(t) if isinstance(interp, Lift) else t  # without tangent: it is its own dual


def _unwrap_for_grad(t: Tensor, level: int) -> Tensor:
    """The tensor below a level of `grad` or `jvp`."""
    return t._payload.inner if _level(level).mine(t) else t


def reshape_dim_into(src: int, dst: int, t: Tensor) -> Tensor:
    """Dimension `src` merged into dimension `dst` of the result, in front of what is there."""
    src, dst = src % t.ndim, dst % (t.ndim - 1)
    t = ops.movedim(t, src, dst)
    return t.reshape(*t.shape[:dst], t.shape[dst] * t.shape[dst + 1], *t.shape[dst + 2:])


def reshape_dim_outof(src: int, size1: int, t: Tensor) -> Tensor:
    """Dimension `src` split in two, the first of them of size `size1`."""
    src %= t.ndim
    rest = t.shape[src] // size1 if size1 else 0
    if size1 * rest != t.shape[src]:
        raise errors.ShapeError(f"reshape_dim_outof: {t.shape[src]} cannot be split into "
                                f"{size1} parts ({errors.user_line()})")
    return t.reshape(*t.shape[:src], size1, rest, *t.shape[src + 1:])


# the stack

def get_dynamic_layer_stack_depth() -> int:
    """How many levels are open."""
    return len(state.stack) - 1


def maybe_current_level() -> int | None:
    """The number of the innermost level, None outside of all."""
    return get_dynamic_layer_stack_depth() or None


def current_level() -> int:
    """The number of the innermost level."""
    return get_dynamic_layer_stack_depth()


def _opened(interp: Interpreter) -> int:
    return interp.__enter__().level


def _closed(kind: type) -> int:
    """End the innermost level, which must be of this kind."""
    interp = state.stack[-1]
    if not isinstance(interp, kind):
        raise errors.TransformError(
            f"the innermost level is no {kind.__name__}: levels end in the order in which they "
            f"began, the last one first ({errors.user_line(2)})")
    interp.__exit__(None, None, None)
    return interp.level


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Begin a level of `vmap`; returns its number."""
    return _opened(Vmap(batch_size, randomness))


def _vmap_decrement_nesting() -> int:
    """End the innermost level, one of `vmap`."""
    return _closed(Vmap)


def _grad_increment_nesting() -> int:
    """Begin a level of `grad`; returns its number."""
    return _opened(Lift())


def _grad_decrement_nesting() -> int:
    """End the innermost level, one of `grad`."""
    return _closed(Lift)


def _jvp_increment_nesting() -> int:
    """Begin a level of `jvp`; returns its number."""
    return _opened(Jvp())


def _jvp_decrement_nesting() -> int:
    """End the innermost level, one of `jvp`."""
    return _closed(Jvp)


def pop_dynamic_layer_stack_and_undo_to_depth(depth: int) -> None:
    """End the innermost levels until so many are left: after an error that left them open."""
    while get_dynamic_layer_stack_depth() > depth:
        state.stack[-1].__exit__(None, None, None)


# the loop over examples, for operators without a batching rule

def _is_vmap_fallback_enabled() -> bool:
    """May operators without a batching rule run once per example?"""
    return batching.fallback.allowed


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Let operators without a batching rule run once per example, or refuse them."""
    batching.fallback.allowed = enabled


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    """Warn when an operator runs once per example?"""
    batching.fallback.warns = enabled
