"""`Tensor`, the handle: the only class of the user's data.

A handle is `_data` (an array, or a box when a transform is active) plus what the tape and the
surface know about it.  This file holds the bare class and the boxes' base; `tensor/` gives it
its methods. Read next: `stack.py`.
"""

from __future__ import annotations

import weakref

from .subclass_door import Unasked, door


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
        "_data",  # array or Box
        "_edge",  # where gradients of this tensor go: Node, Port, Accumulate; None: not tracked
        "_link",  # how this view follows from its base, None if it is not a view
        "_meta",  # Meta: grad, hooks, name, ..., None until first needed
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

    def __init__(self):
        self.version = 0
        self.stamps: tuple = ()  # clock values of the last writes, newest last
        self.where = None  # the user's place of the last write


class _Uncounted(Cell):
    """The cell of tensors made in inference mode: nobody counts their versions.

    To a saved value it looks overwritten, so that the first gradient that needs it is refused.
    """

    __slots__ = ()

    def __init__(self):
        super().__init__()
        self.stamps = (float("inf"),)


INFERENCE = _Uncounted()


class Link:
    """How a view follows from its base.

    `steps` is None or (steps before, step, how many, number of the last one that changes the
    dtype); a step is (overload, arguments after self, which of several outputs).  A view of a view
    thus costs the same whatever its depth.
    """

    __slots__ = ("__weakref__", "base", "hidden", "multi", "of", "seen", "steps")
    apart = False  # does it share memory only, with a history of its own?

    def __init__(self, base, steps, multi, hidden, seen):
        self.base = base
        self.steps = steps
        self.multi = multi  # one of several outputs of one call
        self.hidden = hidden  # "no_grad" or "inference": made while recording was off, so
        self.seen = seen  # version of the base that `_data` and `_edge` reflect
        self.of = base._data  # what the steps start from; another array: the base's layout changed
        if isinstance(self.of, Box):
            cell = cell_of(base)
            if not hasattr(cell, "links"):
                cell.links = weakref.WeakSet()
            cell.links.add(self)

    @property
    def chain(self) -> tuple:
        """The steps from the base to the view."""
        found, steps = [], self.steps
        while steps is not None:
            steps, step, *_ = steps
            found.append(step)
        return tuple(reversed(found))


def one_more(steps: tuple | None, step: tuple) -> tuple:
    """Steps with another one behind; their number, that of the last cast, the first of them."""
    if steps is None:
        return None, step, 1, 1 if step[0].op.dtype is not None else 0, step
    _, _, count, cast, first = steps
    count += 1
    return steps, step, count, count if step[0].op.dtype is not None else cast, first


class Box:
    """Base of the values that transforms put in place of arrays."""

    __slots__ = ()
    cell = None  # version cell of the memory below, where that can be written
    outer = False  # does it only hold tensors that have the values?
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


_new = object.__new__


def make(data, edge=None) -> Tensor:
    """A fresh handle around an array or box."""
    t = _new(Tensor)
    t._data = data
    t._edge = edge
    t._link = t._cell = t._meta = None
    return t


def cell_of(t: Tensor) -> Cell:
    """The version cell of a handle, made on demand."""
    if t._cell is None:
        t._cell = Cell()
    return t._cell


def meta_of(t: Tensor) -> Meta:
    """The rarely needed part of a handle, made on demand."""
    if t._meta is None:
        t._meta = Meta()
    return t._meta
