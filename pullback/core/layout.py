"""Layouts and memory formats: named objects that say how elements lie in memory.

All tensors are strided; the other layouts exist to be refused by name.  `arranged` gives an array a
memory format: the channels-last ones keep the shape and put dim 1 innermost.
"""

from __future__ import annotations


class _Named:
    """One of a few constants, equal only to itself."""

    __slots__ = ("name",)
    known: dict[str, _Named] = {}

    def __new__(cls, name: str):
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return _get, (type(self), self.name)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _get(cls: type, name: str) -> _Named:
    return cls.known[name]


class layout(_Named):
    """How a tensor keeps its elements: `strided`, or one of the sparse ways."""

    __slots__ = ()
    known: dict[str, _Named] = {}


class memory_format(_Named):
    """In which order a dense tensor's dims lie in memory."""

    __slots__ = ()
    known: dict[str, _Named] = {}


for _cls, _names in (
    (layout, "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged _mkldnn"),
    (memory_format, "contiguous_format preserve_format channels_last channels_last_3d"),
):
    for _name in _names.split():
        _made = object.__new__(_cls)
        _made.name = _name
        _cls.known[_name] = _made

STRIDED = layout.known["strided"]
CONSTANTS = {**layout.known, **memory_format.known}
_LAST = {"channels_last": 4, "channels_last_3d": 5}  # and the number of dims that it is for


def _order(array, kind):
    """The dims from the outermost in memory to the innermost; None: as they are numbered."""
    wanted = _LAST.get(str(kind).removeprefix("torch."))
    if wanted is None:
        return None
    if array.ndim != wanted:
        raise RuntimeError(f"required rank {wanted} tensor to use {str(kind)[6:]} format")
    return (0, *range(2, array.ndim), 1)


def _kept(array) -> str:
    """NumPy's letter for a copy with the order of the strides.

    Dims that were expanded stay where they are: NumPy would put them innermost.
    """
    if 0 not in array.strides:
        return "K"
    steps = [s for s, n in zip(array.strides, array.shape) if s and n > 1]
    return "C" if steps == sorted(steps, reverse=True) else "K"


def arranged(array, kind):
    """A copy of an array in a memory format; None and `preserve_format` keep the order it has."""
    if kind is None or str(kind).endswith("preserve_format"):
        return array.copy(_kept(array))
    order = _order(array, kind)
    if order is None:
        return array.copy("C")
    back = sorted(range(array.ndim), key=order.__getitem__)
    return array.transpose(order).copy("C").transpose(back)


def is_arranged(array, kind=None) -> bool:
    """Do the elements lie in this memory format, without gaps?"""
    try:
        order = _order(array, kind)
    except RuntimeError:
        return False
    shape, strides, step = array.shape, array.strides, array.dtype.itemsize
    for d in reversed(order or range(array.ndim)):
        if shape[d] != 1 and strides[d] != step:
            return 0 in shape
        step *= shape[d]
    return True
