"""Fakes that compute with their data beside: what only the data decides is decided by them.

`aot.config.fake_tensor_propagate_real_tensors` turns it on for captures and for `FakeTensorMode`.
A number that is read from such a tensor stays a symbol, but questions about it have an answer,
which the program relies on from then on.  A fake that is not as its data is an error, or is made
anew from them where somebody collects such `Defect`s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..core.handle import Tensor
from ..threads.blocks import tied_block
from ..threads.state import state
from .fake import Fake, fake_like
from .size import Symbolic

_UNKNOWN = object()


class Defect(NamedTuple):
    """A fake that is missing (no reason), or is not as the data of its operator."""

    op: str
    reason: str | None


def wanted() -> bool:
    """Does the setting ask for it?  (It is off while nobody has loaded settings.)"""
    module = sys.modules.get(f"{__package__.partition('.')[0]}.cut.settings")
    return module is not None and module.config.fake_tensor_propagate_real_tensors


@tied_block
def computing(fake: bool = True) -> Iterator[None]:
    """Captures in this block compute with data beside fakes, where the setting asks for it."""
    before = state.fakes.reals
    state.fakes.reals = fake and wanted()
    try:
        yield
    finally:
        state.fakes.reals = before


@tied_block
def mending() -> Iterator[list[Defect]]:
    """The defects that fakes have in this block; their results are made from data."""
    before = state.fakes.defects
    found: list[Defect] = []
    state.fakes.defects = found
    try:
        yield found
    finally:
        state.fakes.defects = before


def _data(value: Any) -> Any:
    """An argument with data in the place of fakes, numbers in that of symbols."""
    if type(value) is Fake:
        return _UNKNOWN if value.real is None else value.real
    if isinstance(value, Symbolic):
        found = value.node.shape_env.value_of(value.node.expr)
        return _UNKNOWN if found is None else found
    if type(value) in (list, tuple):
        items = [_data(v) for v in value]
        return _UNKNOWN if any(v is _UNKNOWN for v in items) else type(value)(items)
    return value


def with_data(ov: Any, raw: tuple, run_fake: Callable) -> Any:
    """The fake results of an operator, told what it makes of the data."""
    from .evaluate import run_raw

    given = [_data(v) for v in raw]
    known = not any(v is _UNKNOWN for v in given)
    try:
        out = run_fake(ov, raw)
    except errors.DerivativeNotWritten:
        if state.fakes.defects is None or not known:
            raise
        _note(ov, None)
        out = None
    if not known:
        return out
    before = state.fakes
    copies = [_copied(v) for v in given] if ov.custom else given
    state.fakes.creates, state.fakes.mode = False, None
    state.fakes.sizes, state.fakes.reals = None, False
    try:
        found = run_raw(ov, given, np)
    finally:
        state.fakes = before
    written = [] if copies is given else [
        a.name for a, *values in zip(ov.schema.args, copies, given) if not _same(*values)]
    if written:
        raise errors.MetadataMismatchError(errors.text(
            f"Real tensor propagation found an argument mutation mismatch: {ov} writes, and its "
            f"schema does not say so, for argument {written[0]!r} ({errors.user_line(3)})",
            f"schema: {ov.schema}", "name what it writes in mutates_args"))
    if isinstance(found, np.ndarray):
        return _told(ov, out, found)
    fakes = [None] * len(found) if out is None else out
    return type(found)([data if data is None else _told(ov, fake, data)
                        for fake, data in zip(fakes, found, strict=True)])


def _copied(value: Any) -> Any:
    if type(value) in (list, tuple):
        return [_copied(v) for v in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def _same(a: Any, b: Any) -> bool:
    if type(b) in (list, tuple):
        return all(map(_same, a, b))
    return not isinstance(b, np.ndarray) or a.tobytes() == b.tobytes()


def _told(ov: Any, fake: Fake | None, data: np.ndarray) -> Fake:
    """A fake with its data; one that is missing or wrong is made from them where that is wanted."""
    if fake is not None:
        try:
            keep(fake, data, ov.name)
            return fake
        except errors.MetadataMismatchError as error:
            if state.fakes.defects is None:
                raise
            _note(ov, str(error).partition("(")[0].partition(": ")[2].strip())
    fake = fake_like(data)
    if state.fakes.sizes is not None:  # the data do not say how sizes depend on one another
        fake = Fake([state.fakes.sizes.unbacked() for _ in data.shape], data.dtype)
    keep(fake, data)
    return fake


def _note(ov: Any, reason: str | None) -> None:
    found = Defect(str(ov), reason)
    if found not in state.fakes.defects:
        state.fakes.defects.append(found)


def keep(fake: Fake, data: np.ndarray, name: str = "a tensor") -> None:
    """A fake gets its data; sizes that these decide get their values."""
    if len(fake.shape) != data.ndim or fake.dtype != data.dtype:
        raise _mismatch(name, fake, data)
    for n, size in zip(fake.shape, data.shape):
        if not isinstance(n, Symbolic):
            if n != size:
                raise _mismatch(name, fake, data)
        elif n.hint is None:
            n.node.shape_env.set_unbacked_var_to_val(n.node.expr, size)
    fake.real = data


def beside(t: Tensor, value: Tensor) -> None:
    """A fake of a tensor gets a copy of its data, if there are any."""
    if isinstance(value._payload, np.ndarray):
        keep(t._payload, value._payload.copy())


def write(fake: Fake, new: Fake) -> None:
    """A fake was written in place: so are its data, which views of it share."""
    if fake.real is not None and new.real is not None:
        np.copyto(fake.real, new.real, casting="unsafe")
    else:
        fake.real = None


def _mismatch(name: str, fake: Fake, data: np.ndarray) -> Exception:
    return errors.MetadataMismatchError(errors.text(
        f"Real tensor propagation found a metadata mismatch: {name} gives {data.dtype}"
        f"{list(data.shape)}, its fake is {fake.dtype}{list(fake.shape)} ({errors.user_line(3)})"))
