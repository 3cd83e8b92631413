"""The unroller: writes statements out as a Python function with its constants.

What a generated function does comes from `steps.py` and `pullbacks.py`.  All of them have the same
globals, `space`: counters of `core/state.py`, what they call, and the constants of each.
"""

from __future__ import annotations

import itertools
import math
import re
import sys

import numpy as np

from ..array import dtype as dt
from ..array.evaluate import _HALF, _arrays_only, _finish, in_rows, wrap, wrap_all
from ..core import stack, surface, tape
from ..core.expression import fact_value
from ..core.handle import INFERENCE, Link, Tensor, cell_of, make, one_more
from ..core.state import fast as space
from ..core.state import sequence, state

_CONSTANT = re.compile(r"\$(\w+)")


def indented(lines: list[str]) -> list[str]:
    """Statements one level deeper."""
    return ["    " + line for line in lines]


_number = itertools.count().__next__  # of generated functions


def unrolled(title: str, heading: str, lines: list[str], constants: dict):
    """The function `name(parameters)` of these statements, where `$kernel` is a constant `kernel`.

    Constants are globals under names of their own: reading them is faster than a closure.
    """
    number, found = _number(), {}
    text = _CONSTANT.sub(rf"\1_{number}", "\n".join([f"def {heading}:", *indented(lines)]))
    space.update({f"{name}_{number}": value for name, value in constants.items()})
    exec(compile(text, f"<pullback {title}>", "exec"), space, found)
    (function,) = found.values()
    constants["number"] = number
    return function


def set_constant(constants: dict, name: str, value) -> None:
    """Give a constant of a function that was made another value."""
    space[f"{name}_{constants['number']}"] = value


def strides(t: Tensor) -> tuple[int, ...]:
    """The steps between elements of a tensor."""
    data = t._data
    if type(data) is not np.ndarray:
        return t.stride()
    size, steps = data.itemsize, data.strides
    if len(steps) == 2:
        return steps[0] // size, steps[1] // size
    return (*[step // size for step in steps],)


_COMPLEX = {np.dtype(np.complex64), np.dtype(np.complex128)}
space.update(
    F32=np.dtype(np.float32),
    F64=np.dtype(np.float64),
    I64=np.dtype(np.int64),
    BOOL=np.dtype(np.bool_),
    REAL={np.dtype(c) for c in "fdlihbB?"},
    FLOATING={d.np for d in dt.ALL if d.category >= 2},
    HALF=_HALF,
    COMPLEX=_COMPLEX,
    ODD={*_HALF, *_COMPLEX},
    INTS={int},
    INFERENCE=INFERENCE,
    Blind=tape.Blind,
    Link=Link,
    Tensor=Tensor,
    arrays_only=_arrays_only,
    as_saved=tape.as_saved,
    asarray=np.asarray,
    bump=surface.bump,
    cell_of=cell_of,
    copyto=np.copyto,
    dtype_of=dt.of,
    fact_value=fact_value,
    failure=stack.failure,
    filled=surface.filled,
    finish=_finish,
    freed=tape.freed,
    getframe=sys._getframe,
    in_rows=in_rows,
    keep=tape.keep,
    math=math,
    link_views=surface.link_views,
    make=make,
    mark_inference=surface.mark_inference,
    modified=tape.modified,
    ndarray=np.ndarray,
    new=object.__new__,
    np=np,
    one_more=one_more,
    place=tape.place,
    port=tape.port,
    record=tape.record,
    refresh=surface.refresh,
    refuse=tape.refuse_unlisted,
    sequence=sequence,
    state=state,
    strides=strides,
    users=tape.users,
    wrap=wrap,
    wrap_all=wrap_all,
)
