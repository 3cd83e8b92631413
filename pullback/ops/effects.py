"""Entries that are called for what they do: they return nothing, and graphs keep them.

`table/effects.py` says which operators of the user's do so, too.
"""

from __future__ import annotations

from ..array.size import Symbolic
from ..core.op import Op
from ..errors import RefusedValue, named
from ..symbolic.queries import question


class _print(Op):
    """Print a line."""

    schema = "_print(str s) -> ()"
    effect = "ordered"
    kept = "effect"
    promote, method, pure = "keep", False, False

    def run(xp, s):
        print(s, flush=True)

    def shape(s):
        return []

    def dtype(s):
        return []


def _refuse_unless_true(self, text):
    if self.size != 1:
        raise named(RefusedValue, "_assert_async", "Boolean value of Tensor with "
                    f"{'no values' if not self.size else 'more than one value'} is ambiguous")
    if not self.reshape(-1)[0]:
        raise RefusedValue(text)


class _assert_async(Op):
    """Refuse a tensor of one element that is not true."""

    schema = "_assert_async(Tensor self) -> ()"
    kept = "effect"
    promote, method, pure = "keep", False, False
    nondiff = ("self",)

    def run(xp, self):
        _refuse_unless_true(self, "Expected Tensor with single nonzero value, but got zero")

    def shape(self):
        return []

    def dtype(self):
        return []


class _assert_async_msg(Op):
    """Refuse a tensor of one element that is not true, with a message."""

    schema = "_assert_async.msg(Tensor self, str assert_msg) -> ()"
    kept = "effect"
    promote, method, pure = "keep", False, False
    nondiff = ("self",)

    def run(xp, self, assert_msg):
        _refuse_unless_true(self, assert_msg)

    def shape(self, assert_msg):
        return []

    def dtype(self, assert_msg):
        return []


class _assert_scalar(Op):
    """Refuse a number that is not true, with a message: numbers are known where tensors are not."""

    schema = "_assert_scalar(Scalar self, str assert_msg) -> ()"
    kept = "effect"
    promote, method, pure = "keep", False, False

    def run(xp, self, assert_msg):
        if not self:
            raise RefusedValue(assert_msg)

    def shape(self, assert_msg):
        if isinstance(self, Symbolic):
            found = question(self)
            holds = found is None or found[0].assume(found[1])  # a fact of the capture from now on
        else:
            holds = self
        if not holds:
            raise RefusedValue(assert_msg)
        return []

    def dtype(self, assert_msg):
        return []
