"""`Tensor`, the handle: the only class of the user's data.

A handle is `_payload` (an array, or a box when a transform is active) plus what the tape and the
surface know about it.  This file holds the bare class and the boxes' base; `tensor/` gives it
its methods.  Read next: `schema.py`.
"""

from __future__ import annotations

from ..threads.asking import Unasked
from .subclass_door import door


def disabled(function, types, args=(), kwargs=None):
    """The value of `__torch_function__`, or `__torch_dispatch__`, of classes that take no part."""
    with Unasked():
        return function(*args, **(kwargs or {}))


class Tensor:
    """A multi-dimensional array that knows where it came from."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_cell",  # version cell shared with views of the same memory, None until first needed
        "_payload",  # array or Box
        "_edge",  # where gradients of this tensor go: Node, Port, Accumulate; None: not tracked
        "_link",  # how this view follows from its base, None if it is not a view
        "_record",  # Meta: grad, hooks, name, ..., None until first needed
    )

    # NumPy hands mixed expressions over to Tensor's reflected operators
    __array_priority__ = 1000

    __torch_dispatch__ = disabled

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Results of functions of a subclass are of that class."""
        return door.inherited(cls, func, types, args, kwargs or {})

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__torch_function__ is not disabled or cls.__torch_dispatch__ is not disabled:
            door.class_made(cls)


class Meta:
    """The rarely needed part of a handle."""

    __slots__ = ("detached", "grad", "grad_dtype", "hooks", "name", "post_hooks", "retains")

    def __init__(self):
        self.detached = None  # (node, output, time): the history that detach_() ended
        self.grad = None
        self.grad_dtype = None  # of gradients, where it is not the dtype of the tensor
        self.hooks = None
        self.post_hooks = None
        self.retains = False
        self.name = None


class Cell:
    """Version counter of a piece of memory, shared by all its views."""

    __slots__ = (
        "links",  # set of those of views, where the memory is that of a box; not there before
        "stamps",
        "version",
        "where",
    )

    KEPT = 16  # stamps kept, to tell which version a saved value had
    counted = True  # are writes counted?

    def __init__(self):
        self.version = 0
        self.stamps: tuple = ()  # clock values of the last writes, newest last
        self.where = None  # the user's place of the last write


class _Uncounted(Cell):
    """The cell of tensors made in inference mode: nobody counts their versions.

    To a saved value it looks overwritten, so that the first gradient that needs it is refused.
    """

    __slots__ = ()
    counted = False

    def __init__(self):
        super().__init__()
        self.stamps = (float("inf"),)


INFERENCE = _Uncounted()


class Box:
    """Base of the values that transforms put in place of arrays."""

    __slots__ = ()
    cell = None  # version cell of the memory below, where that can be written
    outer = False  # does it only hold tensors that have the values?
    composed = False  # is the tensor made of others (`parts/`)?
    hides = False  # does it have a dimension that the program does not see?
    __array_ufunc__ = None  # NumPy must refuse boxes: the fast path then takes the long way

    def rewritten(self, new, everywhere: bool):
        """`new`, which was written here, with the histories that this has on levels below.

        They stay where recording is off, or `everywhere`, with tangents: behind a detached alias.
        """
        return new


def is_buffer(data) -> bool:
    """Is this real memory, of whatever device?"""
    return not isinstance(data, Box)


def is_wrapper_data(data) -> bool:
    """Is this the data of a wrapper subclass: facts, and no memory?"""
    return getattr(data, "outer", False)


def is_composed(t) -> bool:
    """Is a tensor made of others, a sparse one for instance?"""
    return getattr(t._payload, "composed", False)


_new = object.__new__


def make(data, edge=None) -> Tensor:
    """A fresh handle around an array or box."""
    t = _new(Tensor)
    t._payload = data
    t._edge = edge
    t._link = t._cell = t._record = None
    return t


def cell_of(t: Tensor) -> Cell:
    """The version cell of a handle, made on demand."""
    if t._cell is None:
        t._cell = Cell()
    return t._cell


def meta_of(t: Tensor) -> Meta:
    """The rarely needed part of a handle, made on demand."""
    if t._record is None:
        t._record = Meta()
    return t._record


def tensors_in(flat):
    """All handles among flat arguments, those in lists included."""
    for v in flat:
        if isinstance(v, Tensor):
            yield v
        elif type(v) is list or type(v) is tuple:
            for item in v:
                if isinstance(item, Tensor):
                    yield item


def keep(value):
    """An input as it is now: boxed handles may be rebound later, so they are copied."""
    if isinstance(value, Tensor) and not is_buffer(value._payload):
        copy = make(value._payload, value._edge)
        copy._cell = value._payload.cell
        return copy
    return value
