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


class qscheme(_Named):
    """How a quantised tensor scales its numbers."""

    __slots__ = ()
    known: dict[str, _Named] = {}


for _cls, _names in (
    (qscheme, "per_tensor_affine per_channel_affine per_tensor_symmetric per_channel_symmetric "
              "per_channel_affine_float_qparams"),
    (layout, "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged _mkldnn"),
    (memory_format, "contiguous_format preserve_format channels_last channels_last_3d"),
):
    for _name in _names.split():
        _made = object.__new__(_cls)
        _made.name = _name
        _cls.known[_name] = _made

STRIDED = layout.known["strided"]
CONSTANTS = {**layout.known, **memory_format.known, **qscheme.known, "qscheme": qscheme,
             "legacy_contiguous_format": memory_format.known["contiguous_format"]}
_LAST = {"channels_last": 4, "channels_last_3d": 5}  # and the number of dims that it is for


def _order(array, kind):
    """The dims from the outermost in memory to the innermost; None: as they are numbered."""
    return (0, *range(2, array.ndim), 1) if wants_channels_last(kind, array.ndim) else None


def wants_channels_last(kind, ndim: int) -> bool:
    """Is it a format with channels last?  Then the number of dims has to be right."""
    wanted = _LAST.get(str(kind).removeprefix("torch."))
    if wanted not in (None, ndim):
        raise RuntimeError(f"required rank {wanted} tensor to use {str(kind)[6:]} format")
    return wanted is not None


def memory_order(array) -> tuple[int, ...] | None:
    """The dims from the outermost in memory to the innermost; None: as they are numbered."""
    return None if array.flags.c_contiguous else strides_order(array.shape, array.strides)


def strides_order(shape, strides) -> tuple[int, ...] | None:
    """The same of a shape with strides.

    Dims that were expanded say nothing: others move past them, they stay among their neighbours.
    """
    keys = [(abs(step), size) for step, size in zip(strides, shape)]
    order = list(range(len(keys)))[::-1]  # innermost first
    for i in range(1, len(keys)):
        moving = i
        for inner in range(i - 1, -1, -1):
            one, other = keys[order[inner]], keys[order[moving]]
            if one[0] and other[0]:
                if one[0] < other[0]:
                    break
                if one > other:
                    order[inner], order[moving], moving = order[moving], order[inner], inner
    order.reverse()
    return None if order == sorted(order) else tuple(order)


def order_like(array, kind=None) -> tuple[int, ...] | None:
    """The order of the dims of a tensor like another; None and `preserve_format` keep its own."""
    keeps = kind is None or str(kind).endswith("preserve_format")
    return memory_order(array) if keeps else _order(array, kind)


def ordered(make, shape, order):
    """What `make` gives for a shape, with its dims lying in memory in the given order."""
    if order is None:
        return make(tuple(shape))
    made = make(tuple([shape[d] for d in order]))
    return made.transpose(sorted(range(len(order)), key=order.__getitem__))


def arranged(array, kind):
    """A copy of an array in a memory format; None and `preserve_format` keep the order it has."""
    order = order_like(array, kind)
    if order is None:
        return array.copy("C")
    back = sorted(range(array.ndim), key=order.__getitem__)
    return array.transpose(order).copy("C").transpose(back)


def copied_like(array, other):
    """A copy that lies in memory as another array of its shape does; row-major if that has gaps."""
    order = memory_order(other)
    if order is None:
        return array.copy("C")
    back = sorted(range(array.ndim), key=order.__getitem__)
    if not is_arranged(other.transpose(order)):
        return array.copy("C")
    return array.transpose(order).copy("C").transpose(back)


def suggest_memory_format(x) -> memory_format:
    """The format in which results for a tensor are laid out: channels last only if its are.

    Strides alone decide, and a tensor may have gaps; where dims of size 1 leave both open, it is
    the contiguous one.
    """
    shape, strides = x.shape, x.stride()
    for name, ndim in _LAST.items():
        if len(shape) == ndim and _lies_channels_last(shape, strides):
            return CONSTANTS[name]
    return CONSTANTS["contiguous_format"]


def _lies_channels_last(shape, strides) -> bool:
    least = 0
    if strides[1] == 0:
        return False
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] == 0 or strides[d] < least or d == 0 and least == strides[1]:
            return False
        least = strides[d] * (shape[d] if shape[d] > 1 else 1)
    return True


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
