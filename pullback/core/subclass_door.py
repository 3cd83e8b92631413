"""The door from the core to subclasses and modes: `__torch_function__`, `__torch_dispatch__`.

Who answers a call is decided in `interp/` (`function_overrides.py`, `operator_dispatch.py`,
`wrapper_subclass.py`), which is above the core and puts its functions here when it is loaded.
Until then nobody takes part.  The core comes here only where `fast["OVERRIDES"]` or
`fast["DISPATCHES"]` says that there is a class or a mode that does.  The blocks of
`threads/asking.py` keep calls of a thread from asking.  Read next: `handle.py`.
"""

from __future__ import annotations

UNASKED = object()  # nobody takes part in the call


class NobodyAnswers(TypeError):
    """All who were asked have declined."""


class Door:
    """What the core asks; these are the answers where nobody takes part."""

    def class_made(self, cls: type) -> None:
        """Told of a class of tensors that takes part in calls."""

    def inherited(self, cls: type, function, kinds: tuple, args: tuple, kwargs: dict):
        """What a class does that has `__torch_function__` from Tensor."""
        return function(*args, **kwargs)

    def asked(self, public, args: tuple, kwargs: dict):
        """What somebody else makes of a call of a function, `UNASKED` if all arguments are plain.

        `public` gives the function that users know.
        """
        return UNASKED

    def answered(self, public, given, args: tuple, kwargs: dict):
        """The same for arguments that are known to take part."""
        return UNASKED

    def members(self, values) -> list:
        """The values that are to be asked."""
        return []

    def taken_over(self, function, given, named=None) -> tuple:
        """(What somebody else makes of a call of a function that is written in Python,), or ()."""
        return ()

    def ask_from_now_on(self) -> None:
        """From now on functions that are written in Python ask their arguments."""

    def operator(self, ov, flat: tuple):
        """What a class or a mode makes of an operator, NotImplemented if none is asked."""
        return NotImplemented

    def composite(self, ov, flat: tuple):
        """What a class makes of an operator that is made of others, before it is taken apart."""
        return NotImplemented

    def write(self, ov, flat: tuple):
        """The same for `x.op_(...)`."""
        return NotImplemented

    def write_out(self, ov, flat: tuple, outs: list) -> bool:
        """The same for `op(..., out=)`: was it done?"""
        return False

    def item(self, t):
        """The only element of a tensor as a mode gives it, NotImplemented if none looks."""
        return NotImplemented

    def lifted(self, t):
        """A tensor that was just made from Python values, as a mode gives it."""
        return t

    def refuse_wrapper(self, cls: type, data) -> None:
        """Refuse to show the memory of a wrapper, which has none, as another class."""


door = Door()
