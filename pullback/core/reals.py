"""Fakes that compute with their data beside: what only the data decides is decided by them.

`aot.config.fake_tensor_propagate_real_tensors` turns it on for captures and for `FakeTensorMode`.
A number that is read from such a tensor stays a symbol, but questions about it have an answer,
which the program relies on from then on.  A fake that is not as its data is an error.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import errors
from .fake import Fake
from .size import Symbolic
from .state import state

_UNKNOWN = object()


def wanted() -> bool:
    """Does the setting ask for it?  (It is off while nobody has loaded settings.)"""
    module = sys.modules.get(f"{__package__.partition('.')[0]}.aot.context")
    return module is not None and module.config.fake_tensor_propagate_real_tensors


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


def with_data(ov: Any, raw: tuple, out: Any) -> Any:
    """The fake results of an operator, told what it makes of the data."""
    from .evaluate import run_raw

    given = [_data(v) for v in raw]
    if any(v is _UNKNOWN for v in given):
        return out
    before = state.fake, state.faking, state.sizes, state.reals
    state.fake, state.faking, state.sizes, state.reals = False, None, None, False
    try:
        found = run_raw(ov, given, np)
    finally:
        state.fake, state.faking, state.sizes, state.reals = before
    if type(out) is Fake:
        keep(out, found, ov.name)
    else:
        for fake, data in zip(out, found, strict=True):
            if fake is not None:
                keep(fake, data, ov.name)
    return out


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
