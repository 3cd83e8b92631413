"""What a kernel says to arguments before it looks at data: the refusals of eager execution.

Shape rules give shapes, decompositions are made of other operators: neither has to repeat what a
kernel checks.  Where no data are at hand the kernel itself is asked, on arrays that have only
facts.  Copies, slices and elementwise functions of such arrays follow NumPy's own rules for shapes
and dtypes; at the first value that the kernel wants to see the question is answered.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .. import errors
from ..table.effects import effect_of
from ..threads.state import state
from .fake import Fake
from .size import from_data, hinted, is_symbolic

_STEPS = 64  # of a kernel: what is refused is refused near its start


class Looked(BaseException):
    """The kernel wants values: it has nothing against the arguments."""


def _look(*args, **kwargs):
    raise Looked


class _Unread(NDArrayOperatorsMixin, Fake):
    """An array whose values nobody may see."""

    __slots__ = ("steps",)

    def __init__(self, shape: tuple, dtype: np.dtype, steps: list):
        self.shape, self.dtype, self.steps = shape, dtype, steps

    def __getattr__(self, name: str):  # strides among others: nobody gave it any
        raise Looked

    def made(self, shape, dtype=None) -> _Unread:
        self.steps.append(None)
        if len(self.steps) > _STEPS:
            raise Looked
        return _Unread(shape, self.dtype if dtype is None else np.dtype(dtype), self.steps)

    def ghost(self) -> np.ndarray:
        return np.broadcast_to(np.empty((), self.dtype), self.shape)

    def astype(self, dtype, *args, **kwargs) -> _Unread:
        return self.made(self.shape, dtype)

    def copy(self, order: str = "C") -> _Unread:
        return self.made(self.shape)

    def transpose(self, *axes) -> _Unread:
        return self.made(self.ghost().transpose(*axes).shape)

    def swapaxes(self, a, b) -> _Unread:
        return self.made(self.ghost().swapaxes(a, b).shape)

    @property
    def T(self) -> _Unread:
        return self.made(self.shape[::-1])

    def reshape(self, *shape, **order) -> _Unread:
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if any(type(n) is not int for n in wanted):
            raise Looked
        known, open_ = math.prod(n for n in wanted if n >= 0), sum(n < 0 for n in wanted)
        sizes = tuple([self.size // max(known, 1) if n < 0 else n for n in wanted])
        if math.prod(sizes) != self.size or open_ > 1 or open_ and not known:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {wanted}")
        return self.made(sizes)

    def __getitem__(self, key) -> _Unread:
        if not all(map(_is_basic, key if type(key) is tuple else (key,))):
            raise Looked
        return self.made(np.asarray(self.ghost()[key]).shape)

    def __setitem__(self, key, value) -> None:
        shape, given = self[key].shape, getattr(value, "shape", ())
        while len(given) > len(shape) and given[0] == 1:
            given = given[1:]
        if len(given) > len(shape) or any(
                n not in (1, m) for n, m in zip(given[::-1], shape[::-1])):
            raise ValueError(
                f"could not broadcast input array from shape {given} into shape {shape}")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if method != "__call__" or kwargs or ufunc.signature is not None or ufunc.nout > 1:
            raise Looked
        shapes = [getattr(v, "shape", ()) for v in inputs]
        kinds = [type(v) if type(v) in (int, float, complex) else np.asarray(v).dtype
                 if not isinstance(v, _Unread) else v.dtype for v in inputs]
        into = None if out is None else out[0]
        dtypes = [*kinds, None if into is None else into.dtype]
        if any(isinstance(d, np.dtype) and not d.isbuiltin for d in dtypes):
            raise Looked  # bfloat16 and its kin have rules of their own
        dtype = ufunc.resolve_dtypes(tuple(dtypes))[-1]
        shape = np.broadcast_shapes(*shapes)
        if into is None:
            return self.made(shape, dtype)
        if np.broadcast_shapes(shape, into.shape) != into.shape:
            raise ValueError(f"non-broadcastable output operand with shape {into.shape} doesn't "
                             f"match the broadcast shape {shape}")
        return into

    __array__ = __array_function__ = view_of = _look


for _name in ("bool", "int", "float", "complex", "index", "len", "iter", "contains", "round"):
    setattr(_Unread, f"__{_name}__", _look)
_Unread.__hash__ = object.__hash__


def _is_basic(key) -> bool:
    return key is None or key is Ellipsis or type(key) is int or type(key) is slice


class _Namespace:
    """The array namespace of such arrays."""

    __name__ = "unread"

    def __init__(self, steps: list):
        self.steps = steps

    def __hash__(self) -> int:  # others keep what they find for a namespace
        return 0

    def __eq__(self, other: object) -> bool:
        return type(other) is _Namespace

    def __getattr__(self, name: str):
        value = getattr(np, name, None)
        if isinstance(value, (type, float, np.ufunc)) or value is None and hasattr(np, name):
            return value
        return value if name in ("issubdtype", "result_type", "can_cast") else _Function()

    def zeros(self, shape, dtype=float, *args, **kwargs) -> _Unread:
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(n < 0 for n in sizes):
            raise ValueError("negative dimensions are not allowed")
        return _Unread(sizes, np.dtype(dtype), self.steps)

    empty = ones = zeros

    def zeros_like(self, like, dtype=None, *args, **kwargs) -> _Unread:
        return like.made(like.shape, dtype) if isinstance(like, _Unread) else _look()

    empty_like = ones_like = ascontiguousarray = zeros_like

    def asarray(self, value, dtype=None) -> _Unread:
        if isinstance(value, (bool, int, float, complex)):
            return _Unread((), np.asarray(value, dtype).dtype, self.steps)
        return self.zeros_like(value, dtype)

    def broadcast_to(self, array, shape) -> _Unread:
        return array.made(np.broadcast_to(array.ghost(), shape).shape)


class _Function:
    __slots__ = ()
    __getattr__ = __call__ = _look


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


def _unread(value, steps: list):
    if type(value) is list:
        return [_unread(v, steps) for v in value]
    if hasattr(value, "strides"):
        return _Unread(tuple(hinted(value.shape)), value.dtype, steps)
    return hinted(value)


_ACCEPTED: set = set()
_KEPT = 4096  # answers that are remembered: the layers of a network ask the same questions


@functools.cache
def has_checks(ov) -> bool:
    """Has the kernel anything to say?  Expressions check nothing, draws must not be drawn."""
    plain = isinstance(ov.op.run, str) and ov.check is None and not (ov.same_dtype or ov.real_only)
    return not (plain or ov.custom or ov.is_random or ov.is_view or effect_of(ov) is not None)


def consult_kernel(ov, raw) -> None:
    """Raise what a kernel says to the dtypes of arguments of which some are of half precision."""
    if ov.op.or_float32 or not has_checks(ov):
        return
    steps: list = []
    try:
        ov.kernel(_Namespace(steps), *[_unread(v, steps) for v in raw])
    except Looked:
        pass


def consult(ov, raw) -> None:
    """Raise what an operator raises for arguments like these, whatever their values are."""
    if ov.is_view and (type(raw[0]) is not Fake or raw[0].symbolic or is_symbolic(raw)):
        return  # of symbols it is asked itself
    if state.fakes.sizes is not None and from_data(raw):
        return  # no example says how large they are
    key = (ov, *map(_facts, raw), raw[0].strides if ov.is_view else None)
    if key in _ACCEPTED:
        return
    from .evaluate import run_fake, run_raw, shape_of, spec

    if ov.is_view:
        run_fake(ov, raw)
        _ACCEPTED.add(key)
        return

    steps: list = []
    unread = [_unread(v, steps) for v in raw]
    try:
        if has_checks(ov):
            run_raw(ov, unread, _Namespace(steps))
    except Looked:
        pass
    if state.fakes.sizes is None:  # of symbols it is asked itself
        try:
            shape_of(ov, [spec(v) for v in unread])
        except (Looked, errors.DataDependentError):
            pass  # what asks for the shape will hear it; a decomposition may do without
    if len(_ACCEPTED) >= _KEPT:
        _ACCEPTED.clear()
    _ACCEPTED.add(key)
