"""Where NaN and infinities come from: `debug.nans()` stops at the first operator that makes one.

Forward it takes the place of the function that runs kernels, backward it watches the nodes of a
sweep; outside of the block neither is there.  Read next: `autograd/anomaly_mode.py`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

import numpy as np

from . import errors
from .autograd.anomaly_mode import Watcher, array_of, source_line, unwatch, watch
from .core import stack, surface
from .core.handle import Tensor
from .core.tape import Port
from .errors import place
from .table import lists as foreach
from .table.derivative import DEFAULT
from .threads.state import count, renewed, state

__all__ = ["nans"]


class _Here(threading.local):
    """What one thread wants."""

    forward = 0  # how many blocks want forward operators looked at
    backward = 0
    inside = 0  # formulas may pass through infinities: their result counts


_here = _Here()
_lock = renewed(threading.Lock())
_blocks = 0
_run_plain = stack.run_raw


class nans:
    """Stop at the first operator that turns finite numbers into infinities or NaN.

    A context manager, a decorator, and a function of a function: `with nans(): ...`,
    `nans(step)(batch)`.  Numbers that came in infinite, such as a mask of -inf, are let through.
    """

    def __new__(cls, function: Callable | None = None, *, forward=True, backward=True):
        self = super().__new__(cls)
        self.forward, self.backward = bool(forward), bool(backward)
        return self if function is None else self(function)

    def __enter__(self) -> nans:
        global _blocks
        with _lock:
            _blocks += 1
            if _blocks == 1:
                stack.run_raw = surface.run_raw = foreach.run_raw = _run_looking
                watch(_watcher)
        state.switches.watched += 1
        _here.forward += self.forward
        _here.backward += self.backward
        count("ACTIVE", 1)  # off the fast path, which calls kernels itself
        return self

    def __exit__(self, *exc) -> None:
        global _blocks
        count("ACTIVE", -1)
        state.switches.watched -= 1
        _here.forward -= self.forward
        _here.backward -= self.backward
        with _lock:
            _blocks -= 1
            if not _blocks:
                stack.run_raw = surface.run_raw = foreach.run_raw = _run_plain
                unwatch(_watcher)
                _watcher.senders.clear()

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with nans(forward=self.forward, backward=self.backward):
                return function(*args, **kwargs)

        return wrapped


# arrays


def _host(value) -> np.ndarray | None:
    """An array that can be looked at, None if it is none or holds no floats."""
    if isinstance(value, Tensor):
        value = array_of(value)
    if hasattr(value, "__cuda_array_interface__"):
        value = value.get()
    if not isinstance(value, np.ndarray):
        return None
    return value if value.dtype.kind in "fc" or _narrow(value.dtype) else None


def _narrow(dtype: np.dtype) -> bool:
    return dtype.kind == "V" and dtype.names is None and "float" in dtype.name


def _finite(array: np.ndarray) -> np.ndarray:
    return np.isfinite(array.astype(np.float32) if array.dtype.kind == "V" else array)


def _number(value) -> str:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (float, complex)):
        return f"{value:.6g}"
    return str(value)


def _at(array: np.ndarray, index: tuple, shape: tuple):
    """The element that belongs to an index of a result, None if that cannot be told."""
    try:
        return np.broadcast_to(array, shape)[index]
    except ValueError:
        return None


def _summary(name: str, value, index: tuple | None, shape: tuple) -> str:
    """One line about an input."""
    array = array_of(value) if isinstance(value, Tensor) else value
    if not isinstance(array, np.ndarray):
        return f"{name} = {_number(array)}"
    text = f"{name}: {array.dtype.name}{list(array.shape)}"
    if array.size and array.dtype.kind in "fiu":
        text += f", from {_number(array.min())} to {_number(array.max())}"
        if array.dtype.kind == "f" and (zeros := int((array == 0).sum())):
            text += f", {zeros} zero{'s' if zeros > 1 else ''}"
    found = _at(array, index, shape) if index is not None and array.ndim else None
    if found is not None:
        text += f"; there it is {_number(found)}"
    return text


def _first(bad: np.ndarray) -> tuple:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def _outcome(array: np.ndarray, bad: np.ndarray, index: tuple) -> str:
    where = f" at index {list(index)}" if index else ""
    rest = f" ({int(bad.sum())} of {bad.size} elements are not finite)" if bad.size > 1 else ""
    return f"it gives {_number(array[index])}{where}{rest}"


# forward

_HIDDEN = (
    "if a where() discards this element later: where(mask, f(where(mask, x, 1.0)), 0.0), since "
    "the gradient of what is discarded would still be nan"
)


def _run_looking(ov, raw, xp=None):
    """Takes the place of `evaluate.run_raw`."""
    out = _run_plain(ov, raw, xp)
    if not _here.forward or _here.inside or ov.is_view or ov.kind in ("creation", "random"):
        return out
    for o in out if isinstance(out, (list, tuple)) else (out,):
        array = _host(o)
        if array is not None and array.size and not _finite(array).all():
            if _finite_inputs(ov, raw):
                raise _made_forward(ov, raw, array)
            break
    return out


def _finite_inputs(ov, raw) -> bool:
    """Were all arguments finite, and is there a tensor among them at all?"""
    tensors = False
    for value in raw:
        for v in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(v, (float, complex)) and not np.isfinite(v):
                return False
            array = _host(v)
            if array is not None and not _finite(array).all():
                return False
            tensors = tensors or hasattr(v, "dtype")
    return tensors


def _made_forward(ov, raw, array: np.ndarray) -> errors.NotFinite:
    where, name = place(), ov.op.base_name
    bad = ~_finite(array)
    index = _first(bad)
    state_ = [source_line(where), _outcome(array, bad, index)]
    for a, value in zip(ov.schema.args, raw):
        for v in value if isinstance(value, (list, tuple)) else (value,):
            if a.is_tensor and hasattr(v, "dtype"):
                state_.append(_summary(a.name, v, index, array.shape))
            elif isinstance(v, (int, float, complex)) and not isinstance(v, bool):
                state_.append(f"{a.name} = {v}")
    cures = [] if ov.op.cure is None else [ov.op.cure]
    return errors.NotFinite(
        errors.text(
            f"{name} ({errors.describe_place(where)}) made {_kind(array, bad)} out of finite "
            "numbers",
            state_,
            [*cures, _HIDDEN],
        )
    )


def _kind(array: np.ndarray, bad: np.ndarray) -> str:
    return "nan" if np.isnan(array.astype(complex)[bad]).any() else "infinity"


# backward

_MASKS = ("WhereBackward", "MaskedFillBackward", "MaskedScatterBackward", "IndexPutBackward")


class _Looking(Watcher):
    """Looks at every node of a sweep."""

    def __init__(self):
        self.senders: dict = {}  # node -> the node that sent it its gradient
        self.task = None

    def applies(self) -> bool:
        return bool(_here.backward or _here.forward)

    def before(self, node, grads: list) -> None:
        _here.inside += 1
        if state.task is not self.task:
            self.senders.clear()
            self.task = state.task

    def done(self) -> None:
        _here.inside -= 1

    def after(self, node, grads: list, needs, results) -> None:
        if not _here.backward:
            return
        for edge in node.edges:
            if edge is not None:
                self.senders.setdefault(edge.node if type(edge) is Port else edge, node)
        for i, g in enumerate(results):
            array = None if g is None else _host(g)
            if array is None or not array.size or _finite(array).all():
                continue
            arrays = [None if g is None else _host(g) for g in grads]
            if all(a is None or _finite(a).all() for a in arrays):
                raise self.report(node, i, arrays, array)

    def report(self, node, i: int, grads: list, array: np.ndarray) -> errors.NotFinite:
        bad, shape = ~_finite(array), array.shape
        discarded = self.discarded(grads, array)
        index = _first(bad if discarded is None else discarded)
        name = node.name().partition("Backward")[0]
        operator, formula = _formula(node, i)
        state_ = [
            source_line(node.where),
            f"{node.name()}, the gradient of `{operator}`" + (f": {formula}" if formula else ""),
            _outcome(array, bad, index),
        ]
        for k, g in enumerate(grads):
            if g is not None:
                state_.append(_summary("grad" if len(grads) == 1 else f"grad {k}", g, index, shape))
        state_ += _saved(node, index, shape)
        what = f"the gradient of {name.lower()} ({errors.describe_place(node.where)}) became "
        what += f"{_kind(array, bad)}, though the gradient that came in was finite"
        if discarded is None:
            cure = (
                "its derivative has no finite value there: keep the argument away from that point, "
                "for instance by clamp() or by adding a small number"
            )
            return errors.NotFinite(errors.text(what, state_, cure))
        mask = self.mask_above(node)
        if mask is not None:
            state_.append(
                f"{mask.name().partition('Backward')[0].lower()} at "
                f"{errors.describe_place(mask.where)} discards this element: the gradient there "
                "is 0 * inf = nan"
            )
        else:
            state_.append("the element is not used, yet its gradient is 0 * inf = nan")
        call = name.lower()
        cure = (
            "make the argument safe before the operator, not its result after it: "
            f"where(mask, {call}(where(mask, x, 1.0)), 0.0)"
        )
        return errors.NotFinite(errors.text(what, state_, cure))

    @staticmethod
    def discarded(grads: list, array: np.ndarray) -> np.ndarray | None:
        """Elements that are NaN though the gradient that came in is zero; None: there are none."""
        nan = np.isnan(array.astype(complex))
        for g in grads:
            try:
                zero = None if g is None else np.broadcast_to(g == 0, array.shape) & nan
            except ValueError:
                continue
            if zero is not None and zero.any():
                return zero
        return None

    def mask_above(self, node):
        """The node that discards elements, among those that the gradient came through."""
        for _ in range(20):
            node = self.senders.get(node)
            if node is None or node.name().startswith(_MASKS):
                return node
        return None


_watcher = _Looking()


def _formula(node, i: int) -> tuple[str, str]:
    """(name of the argument, text of its gradient formula) of a node's i-th gradient."""
    rule = node.rule
    names = getattr(rule, "input_names", None)
    if not names or node.grouped or i >= len(names):
        return "its input", ""
    for formula in rule.formulas.get(DEFAULT, ()):
        if names[i] in formula.names:
            return names[i], formula.text
    return names[i], ""


def _saved(node, index: tuple, shape: tuple) -> list[str]:
    """Lines about the saved values."""
    try:
        values = node.unpack() if node.saved and getattr(node.rule, "saves", ()) else ()
    except RuntimeError:  # overwritten meanwhile: it has other troubles
        return []
    lines = []
    for (local, kind, _, _), value in zip(getattr(node.rule, "saves", ()), values):
        if kind in ("arg", "out") and isinstance(value, Tensor):
            lines.append(_summary(local, value, index, shape))
        elif kind == "value" and isinstance(value, (int, float)):
            lines.append(f"{local} = {value}")
    return lines
