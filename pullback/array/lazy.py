"""Conjugates and negatives that are put off: arrays that show the memory of others.

NumPy's arrays have strides and no signs.  A `Lazy` array has the memory of another one, and its
class says how the elements are meant.  Views of it are of its class, what is written into it is
turned first, and kernels get the numbers: `evaluate.py` asks `run` where such an array is among
the arguments, which all fast ways take for no array of theirs.  Functions of NumPy that get one
compute with the numbers as well; only what reads memory by its address must ask `resolved`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import device as dev
from . import dtype as dt

CONJ, NEG = 1, 2  # marks: the elements are conjugates, negatives, or both of what is in memory
in_use = False  # has there been one yet?
_ndarray = np.ndarray


class Lazy(np.ndarray):
    """Memory whose elements are meant otherwise than they stand there."""

    marks = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        given = kwargs.get("out", ())
        if given:
            kwargs["out"] = tuple([resolved(o) for o in given])
        out = getattr(ufunc, method)(*map(resolved, inputs), **kwargs)
        for o, made in zip(given, kwargs.get("out", ())):
            if o is not made:
                write(o, made)
        return given[0] if len(given) == 1 else given or out

    def __array_function__(self, function, types, args, kwargs):
        if function is np.copyto and isinstance(args[0], Lazy) and "where" not in kwargs:
            return write(*args[:2])
        if function is np.shares_memory or function is np.may_share_memory:
            return function(*[remarked(a, 0) for a in args], **kwargs)
        return function(*resolved(args), **resolved(kwargs))

    def __getitem__(self, key):
        return remarked(self.view(_ndarray)[key], self.marks)

    def __setitem__(self, key, values):
        values = np.asarray(resolved(values)).astype(self.dtype, copy=False)
        self.view(_ndarray)[key] = _turned(values, self.marks)


_NUMBERS = {"__bool__", "__complex__", "__copy__", "__deepcopy__", "__float__", "__index__",
            "__int__", "__iter__", "__reduce__", "__reduce_ex__"}  # fmt: skip


def _of_numbers(name: str) -> Callable:
    def method(self, *args, **kwargs):
        numbers = resolved(self)
        numbers.flags.writeable = False  # a method that writes would write into nothing
        return getattr(numbers, name)(*args, **kwargs)

    return method


for _name in dir(np.ndarray):
    if _name in _NUMBERS or not _name.startswith("_") and _name != "view" and callable(
            getattr(np.ndarray, _name)):
        setattr(Lazy, _name, _of_numbers(_name))
for _name in ("real", "imag"):
    setattr(Lazy, _name, property(lambda self, name=_name: getattr(resolved(self), name)))


class Conjugate(Lazy):
    """Conjugates of what is in memory."""

    marks = CONJ


class Negative(Lazy):
    """Negatives of what is in memory."""

    marks = NEG


class NegativeConjugate(Lazy):
    """Negatives of the conjugates of what is in memory."""

    marks = CONJ | NEG


_CLASSES = {0: np.ndarray, CONJ: Conjugate, NEG: Negative, CONJ | NEG: NegativeConjugate}
ARRAYS = frozenset(_CLASSES.values())  # of tensors that no class is to be asked about


def marks_of(array: Any) -> int:
    """The marks of what a tensor holds: a raw array, real or fake, or a box of a transform."""
    return 0 if type(array) is _ndarray else getattr(array, "marks", 0)


def remarked(array: Any, marks: int) -> Any:
    """The same memory with other marks; each of a list of arrays."""
    if type(array) in (list, tuple):
        return type(array)([remarked(a, marks) for a in array])
    if not isinstance(array, np.ndarray):  # an element
        return resolved(np.asarray(array).view(_CLASSES[marks]))[()] if marks else array
    global in_use
    in_use = in_use or bool(marks)
    kind = _CLASSES[marks]
    return array if type(array) is kind else array.view(kind)


def turned(xp: Any, array: Any, by: int) -> Any:
    """The memory of an array with one more mark, or one less; on other devices a copy."""
    if by is NEG and array.dtype.kind == "b":
        raise NotImplementedError('"neg" not implemented for \'Bool\'')
    if by is CONJ and not dt.of(array.dtype).is_complex:
        by = 0
    if isinstance(array, np.ndarray):
        return remarked(array[...], marks_of(array) ^ by)
    if not by or dev.lookup(array) is None:  # one of symbolic sizes
        return array[...]
    return xp.conj(array) if by is CONJ else xp.negative(array)


def resolved(value: Any) -> Any:
    """The numbers that an array is meant to have, in memory of their own; what is no such array as
    it is, each of several."""
    if isinstance(value, Lazy):
        return _turned(value.view(_ndarray), value.marks)
    if type(value) in (list, tuple):
        return type(value)([resolved(v) for v in value])
    return {k: resolved(v) for k, v in value.items()} if type(value) is dict else value


def _turned(array: np.ndarray, marks: int) -> np.ndarray:
    if marks & CONJ:
        array = np.asarray(np.conjugate(array))
    return np.asarray(np.negative(array)) if marks & NEG else array


def write(array: Lazy, values: Any) -> None:
    """Give the elements other values: memory gets what they are turned to."""
    array[...] = values


def among(raw: Any) -> bool:
    """Is there such an array among raw arguments?"""
    return any(isinstance(v, Lazy) or type(v) is list and among(v) for v in raw)


def run(ov: Any, raw: Any, xp: Any, go: Callable) -> Any:
    """An operator on raw arguments with such an array among them: a view on the memory of its
    source, anything else on numbers."""
    if not ov.is_view:
        return go(ov, resolved(tuple(raw)), xp)
    source, rest = raw[0], resolved(tuple(raw[1:]))
    marks = through(ov, source)
    return remarked(go(ov, (remarked(source, 0), *rest), xp), marks)


def turns(ov: Any) -> bool:
    """Does an operator show elements as conjugates or negatives?"""
    return ov.op.marks is not None and bool(ov.op.marks(0))


def through(ov: Any, source: Any) -> int:
    """The marks that a view of an array has, real or fake."""
    marks = marks_of(source) if ov.op.marks is None else ov.op.marks(marks_of(source))
    return marks if dt.of(source.dtype).is_complex else marks & NEG
