"""The unroller: writes statements out as a Python function with its constants.

What a generated function does comes from `steps.py` and `pullbacks.py`.  All of them have the same
globals, `space`: counters of `threads/state.py`, what they call, and the constants of each.  Read
next: `plan.py`.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import sys

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array import evaluate, native
from ..array.failures import failure
from ..core import handle, surface, tape
from ..memory import links, versions, views
from ..table.expression import fact_value
from ..threads.state import fast as space
from ..threads.state import sequence, state

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
    if any("CALLER" in line for line in lines):
        lines = ["global CALLER", *lines]
    text = _CONSTANT.sub(rf"\1_{number}", "\n".join([f"def {heading}:", *indented(lines)]))
    space.update({f"{name}_{number}": value for name, value in constants.items()})
    exec(compile(text, f"<pullback {title}>", "exec"), space, found)
    (function,) = found.values()
    constants["number"] = number
    ov = constants.get("ov")
    if ov is not None and ov.op.native is not None and constants.get("kernel") is not None:
        native.renewed(ov, functools.partial(set_constant, constants, "kernel"))
    return function


def set_constant(constants: dict, name: str, value) -> None:
    """Give a constant of a function that was made another value."""
    space[f"{name}_{constants['number']}"] = value


def strides(t: handle.Tensor) -> tuple[int, ...]:
    """The steps between elements of a tensor."""
    data = t._payload
    if type(data) is not np.ndarray:
        return t.stride()
    size, steps = data.itemsize, data.strides
    if len(steps) == 2:
        return steps[0] // size, steps[1] // size
    return (*[step // size for step in steps],)


_COMPLEX = {np.dtype(np.complex64), np.dtype(np.complex128)}
_CALLED = {  # what generated functions call
    tape: ["Blind", "Port", "as_saved", "record"],
    surface: ["filled"],
    versions: ["bump", "mark_inference"],
    views: ["link_views", "refresh"],
    handle: ["INFERENCE", "Cell", "Tensor", "cell_of", "keep", "make"],
    links: ["Link", "one_more"],
    errors: ["freed", "modified", "place", "users"],
    evaluate: ["in_rows", "wrap", "wrap_all"],
    np: ["asarray", "copyto", "ndarray"],
}
space.update({name: getattr(module, name) for module, names in _CALLED.items() for name in names})
space.update(
    F32=np.dtype(np.float32), F64=np.dtype(np.float64), I64=np.dtype(np.int64),
    BOOL=np.dtype(np.bool_), INTS={int}, REAL={np.dtype(c) for c in "fdlihbB?"},
    HALF=evaluate._HALF, COMPLEX=_COMPLEX, ODD={*evaluate._HALF, *_COMPLEX},
    FLOATING={d.np for d in dt.ALL if d.category >= 2},
    arrays_only=evaluate._arrays_only, dtype_of=dt.of, fact_value=fact_value,
    failure=failure, finish=evaluate._finish, getframe=sys._getframe, math=math,
    new=object.__new__, np=np, refuse=tape.refuse_unlisted, sequence=sequence, state=state,
    strides=strides, CALLER=None,  # the code object of the user's that called last
)  # fmt: skip
