"""What a kernel says to arguments before it looks at data: the refusals of eager execution.

Shape rules give shapes, decompositions are made of other operators: neither has to repeat what a
kernel checks.  Where no data are at hand the kernel itself is asked, on arrays that have only
facts.  It runs up to the first value that it wants to see.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import errors
from .effects import effect_of
from .fake import Fake
from .size import hinted
from .state import state


class Looked(BaseException):
    """The kernel wants values: it has nothing against the arguments."""


def _look(*args, **kwargs):
    raise Looked


class _Unread(Fake):
    """An array whose values nobody may see."""

    __slots__ = ()
    __array_ufunc__ = _look

    def __init__(self, shape: tuple, dtype: np.dtype):
        self.shape, self.dtype = shape, dtype

    def __getattr__(self, name: str):  # strides among others: nobody gave it any
        raise Looked

    def astype(self, dtype, *args, **kwargs) -> _Unread:
        return _Unread(self.shape, np.dtype(dtype))

    copy = ghost = view_of = _look


for _name in (
    "array bool int float complex index len iter getitem setitem contains invert neg pos abs "
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul "
    "rmatmul and rand or ror xor rxor lshift rlshift rshift rrshift eq ne lt le gt ge iadd isub "
    "imul itruediv round divmod rdivmod"
).split():
    setattr(_Unread, f"__{_name}__", _look)
_Unread.__hash__ = object.__hash__


class _Namespace:
    """The array namespace of such arrays: it knows dtypes, and nothing else."""

    __name__ = "unread"

    def __getattr__(self, name: str):
        value = getattr(np, name, None)
        if isinstance(value, (type, float)) or value is None and hasattr(np, name):
            return value
        return value if name in ("issubdtype", "result_type", "can_cast") else _Function()


class _Function:
    __slots__ = ()
    __getattr__ = __call__ = _look


XP = _Namespace()


def _facts(value):
    """What the answer depends on, to be looked up; lists cannot be."""
    kind = type(value)
    if kind is Fake:
        shape = value.shape
        return shape if type(shape) is tuple else hinted(shape), value.dtype.num
    if kind in _PLAIN:
        return kind, value  # 1, 1.0 and True are different questions
    if kind is list or kind is tuple:
        return tuple([_facts(v) for v in value])
    if hasattr(value, "strides"):
        return tuple(hinted(value.shape)), value.dtype.num
    return kind, hinted(value)


_PLAIN = {int, float, bool, type(None), str}


def _unread(value):
    if type(value) is list:
        return [_unread(v) for v in value]
    if hasattr(value, "strides"):
        return _Unread(tuple(hinted(value.shape)), value.dtype)
    return hinted(value)


_ACCEPTED: set = set()
_KEPT = 4096  # answers that are remembered: the layers of a network ask the same questions


@functools.cache
def has_checks(ov) -> bool:
    """Has the kernel anything to say?  Expressions check nothing, draws must not be drawn."""
    return not (isinstance(ov.op.run, str) or ov.custom or ov.is_random or ov.is_view
                or effect_of(ov) is not None)


def consult(ov, raw) -> None:
    """Raise what an operator raises for arguments like these, whatever their values are."""
    key = (ov, *map(_facts, raw))
    if key in _ACCEPTED:
        return
    from .evaluate import run_raw, spec

    unread = [_unread(v) for v in raw]
    if has_checks(ov):
        try:
            run_raw(ov, unread, XP)
        except Looked:
            pass
    if ov.shape_rule is not None and state.sizes is None:  # of symbols it is asked itself
        try:
            ov.shape_rule(*map(spec, unread))
        except errors.DataDependentError:
            pass  # what asks for the shape will hear it; a decomposition may do without
    if len(_ACCEPTED) >= _KEPT:
        _ACCEPTED.clear()
    _ACCEPTED.add(key)
