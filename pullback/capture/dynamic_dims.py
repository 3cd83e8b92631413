"""Which sizes and numbers of calls become symbols, and what tells calls apart that differ in these.

A size varies if a second value of it has been seen, or if the user says so.  Read next:
`dynamic.py`, the programs that are captured then.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..array.fake import Fake, contiguous_strides
from ..array.size import Symbolic, hinted
from ..core.handle import Tensor
from ..cut.settings import dynamo
from ..graph.sizes import UNBACKED
from ..pytree import keystr, tree_flatten_with_path


def layout(data: Any) -> tuple | None:
    """What a symbolic capture needs to know of an array's strides; None if they are odd."""
    if isinstance(data, Fake):
        own = contiguous_strides(hinted(data.shape), data.itemsize)
        return () if tuple(hinted(data.strides)) == own else None
    if data.flags.c_contiguous:
        return ()
    order = sorted(range(data.ndim), key=lambda d: (-data.strides[d], d))
    return tuple(order) if data.transpose(order).flags.c_contiguous else None


def is_number(value: Any, kinds: tuple) -> bool:
    """May an argument be a symbol, or is one?  A flag may not, nor what is no number."""
    if isinstance(value, Symbolic):
        return value.node.pytype in kinds and value.hint is not None
    return type(value) in kinds and math.isfinite(value)


def loose_key(value: Any, kinds: tuple) -> tuple:
    """What a symbolic graph depends on, for one argument: not its sizes, nor a number."""
    if is_number(value, kinds):
        return (value.node.pytype if isinstance(value, Symbolic) else type(value),)
    if isinstance(value, Tensor):
        data = value._payload
        order = layout(data)
        sizes = data.ndim if order is not None else data.shape
        return sizes, data.dtype, value._edge is not None, order
    try:
        hash(value)
    except TypeError:
        return ("id", id(value))
    return (type(value), value)


def names_of(function: Callable, args: Sequence, kwargs: dict) -> list[str]:
    """What the function calls its arguments, one name for each tensor or other value in them."""
    if hasattr(function, "titles"):  # of tensors inside of wrappers
        return function.titles
    try:
        parameters = list(inspect.signature(
            getattr(function, "forward", function)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    found = []
    for i, value in enumerate(args):
        name = plain[i] if i < len(plain) else f"{rest}[{i - len(plain)}]"
        found += [name + keystr(path) for path, _ in tree_flatten_with_path(value)[0]]
    for name in kwargs:
        found += [name + keystr(path) for path, _ in tree_flatten_with_path(kwargs[name])[0]]
    return found


def local(name: str) -> str:
    """The name of an argument as PyTorch says where a size is found: `xs[0]` is `L['xs'][0]`."""
    first, bracket, path = name.partition("[")
    return f"L['{first}']{bracket}{path}"


class DynamicDims:
    """Which dims of the arguments, and which numbers, are symbolic, and between which bounds."""

    def __init__(self, tensors: list[Tensor], dynamic: bool | None, captured: list[tuple],
                 numbers: Sequence = ()):
        self.numbers = [bool(dynamic) if dynamic is not None else
                        any(_other(before[k], n) for _, before in captured)
                        for k, n in enumerate(numbers)]
        if dynamo.specialize_int:
            self.numbers = [w and type(n) is not int for w, n in zip(self.numbers, numbers)]
        self.dims: list[list] = []
        self.demanded: list[tuple[int, int]] = []  # the user says that they must not be fixed
        for i, t in enumerate(tensors):
            data = t._payload
            marks = t.__dict__ if t.__dict__ else {}
            static = marks.get("_dynamo_static_indices", ())
            own: list = []
            for d, n in enumerate(data.shape):
                if d in marks.get("_dynamo_unbacked_indices", ()):
                    wanted: Any = UNBACKED
                elif d in marks.get("_dynamo_dynamic_indices", ()):
                    wanted = next(((low, high) for dim, low, high in marks.get(
                        "_dynamo_dynamic_range", ()) if dim == d), True)
                    self.demanded.append((i, d))
                elif d in marks.get("_dynamo_weak_dynamic_indices", ()):
                    wanted = True
                elif d in marks.get("_dynamo_propagated_dynamic_indices", ()) and (
                        d not in static and dynamic is not False):
                    wanted = layout(data) is not None
                elif d in static or dynamic is False or layout(data) is None:
                    wanted = False
                elif dynamic:
                    wanted = True
                else:
                    wanted = any(shapes[i][d] != n for shapes, _ in captured)
                own.append(wanted)
            self.dims.append(own)

    def __bool__(self) -> bool:
        return any(self.numbers) or any(w is not False for own in self.dims for w in own)


def _other(a: Any, b: Any) -> bool:
    return a != b and not (a != a and b != b)


def check_demands(env: Any, dynamic_dims: DynamicDims, shapes: list, names: list) -> None:
    """Refuse a capture that has fixed a size which the user marked as dynamic."""
    for i, d in dynamic_dims.demanded:
        n = shapes[i][d]
        if not isinstance(n, Symbolic):  # 0 and 1 have programs of their own
            continue
        number = n.node.maybe_as_int()
        if number is None:
            wanted = dynamic_dims.dims[i][d]
            low, high = wanted if wanted is not True else (2, None)
            if not low <= n.hint <= (n.hint if high is None else high):
                raise errors.ConstraintViolationError(
                    f"Constraints violated ({names[i]}.size()[{d}])! It is {n.hint}, and was "
                    f"marked to be at least {low}" + ("" if high is None else f", at most {high}")
                    + f" ({errors.user_line(2)})")
            continue
        guard = next(g for g in reversed(env.guards)
                     if n.node.raw.symbol in g.relation.symbols())
        why = f"{guard} was needed at {guard.where}: {guard.reason}"
        raise errors.ConstraintViolationError(errors.text(
            f"Constraints violated ({names[i]}.size()[{d}])! It was marked as dynamic, but the "
            f"captured function is right for {number} only ({errors.user_line(2)})",
            why,
            ["do not mark it with mark_dynamic (maybe_mark_dynamic does not insist)",
             "or change the line so that it does not depend on the number"]))
