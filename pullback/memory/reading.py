"""What a handle holds now: its data, and the values behind it.

Reading is where transforms that hide values refuse, and where a capture learns that Python has
seen a number.  Read next: `views.py`, which brings views up to date.
"""

from __future__ import annotations

import numpy as np

from .. import errors
from ..array.fake import Fake
from ..array.lazy import resolved
from ..core.events import READ
from ..core.handle import Box, Tensor
from ..memory.views import refresh
from ..threads.state import state


def up_to_date(t: Tensor) -> Tensor:
    if t._link is not None:
        refresh(t)
    return t


def shown(t: Tensor):
    """The present data of a handle; real memory is up to date by itself, whatever the history."""
    if t._link is not None and isinstance(t._payload, Box):
        refresh(t)
    return t._payload


def concrete(t: Tensor, what: str) -> np.ndarray:
    """The array behind a handle; transforms that hide values refuse."""
    data = shown(t)
    while isinstance(data, Box):
        if type(data) is Fake:
            if data.constant is not None:
                return data.constant
            raise errors.DataDependentError(
                errors.text(
                    f"{what} needs the values of a tensor, but only its shape is known here "
                    f"({errors.user_line(2)})",
                    f"tensor: {t.dtype.name}{list(t.shape)}",
                    [
                        "use where() instead of a Python condition",
                        "or compute this outside of the captured function",
                    ],
                )
            )
        t = data.concrete(t, what)
        data = t._payload
    if state.mode:
        state.stack[state.mode].event(READ, t)
    return data if type(data) is np.ndarray else resolved(data)
