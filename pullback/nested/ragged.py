"""`Ragged`: the size of a dim whose length differs from part to part; it stands in shapes.

Two of them are equal where the lengths of the parts are: that is asked of the numbers once, and
then known.  What else follows from the offsets (which element is of which part, the largest length)
is found once as well, where the offsets are numbers and not values of a transform.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ..core.handle import Box, Tensor
from ..symbolic.number import SymInt
from ..table.packets import ops

_numbers = itertools.count()


def is_plain(t: Tensor) -> bool:
    """Are the numbers of a tensor known, outside of all transforms and captures?"""
    return not isinstance(t._payload, Box) and not getattr(t._payload, "is_fake", False)


class Ragged(SymInt):
    """A size that is a list of lengths.  It can be compared, and multiplied by numbers."""

    __slots__ = ("factor", "holder")
    hint = 2  # any size, for who asks for an example
    is_ragged = True
    __class__ = property(lambda self: Ragged)  # type: ignore[assignment]

    def __init__(self, holder: Lengths, factor: Any = 1):
        self.holder, self.factor = holder, factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ragged) and self.factor == other.factor and (
            self.holder.alike(other.holder))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(Ragged)

    def __mul__(self, other: Any) -> Ragged:
        return Ragged(self.holder, self.factor * other) if not isinstance(
            other, (Ragged, float)) else NotImplemented

    __rmul__ = __mul__

    def _refused(self, *other: Any) -> Any:
        raise TypeError(f"the size {self!r} of a nested tensor is a list of lengths: it can be "
                        "compared, and multiplied by numbers; x.offsets() has the numbers")

    __add__ = __radd__ = __sub__ = __rsub__ = __floordiv__ = __truediv__ = __mod__ = _refused
    __int__ = __index__ = __neg__ = __pow__ = _refused

    def _order(self, other: Any) -> bool:
        if isinstance(other, int) and other <= 1:
            return True
        raise ValueError("relation is indeterminate")

    def __ge__(self, other: Any) -> bool:
        return self == other or self._order(other)

    def __gt__(self, other: Any) -> bool:
        return self._order(other)

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other

    def clamped(self, low: int) -> Ragged:
        """At least a number: what is asked of sizes."""
        return self

    def whole(self) -> Ragged:
        return self

    def __reduce__(self):
        return _size, (self.holder.offsets, self.holder.given, self.factor)

    def __repr__(self) -> str:
        own = f"j{self.holder.number}"
        return own if self.factor.__class__ is int and self.factor == 1 else f"{self.factor}*{own}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __deepcopy__(self, memo: dict) -> Ragged:
        return self

    def __bool__(self) -> bool:
        return True


class Lengths:
    """What is known of the lengths of parts: offsets, and lengths where parts have gaps behind."""

    def __init__(self, offsets: Tensor, lengths: Tensor | None):
        self.offsets, self.given = offsets, lengths
        self.number = next(_numbers)
        self.versions = _version(offsets), _version(lengths)
        self.found: dict[str, Any] = {}
        self.like: Lengths | None = None  # another with the same lengths
        self.size = Ragged(self)

    def root(self) -> Lengths:
        """The first that was found to have these lengths."""
        while self.like is not None:
            self = self.like
        return self

    def alike(self, other: Lengths) -> bool:
        """Have all parts the same lengths?"""
        a, b = self.root(), other.root()
        if a is b:
            return True
        if a.offsets is b.offsets and a.given is b.given:
            return True
        if a.count != b.count:
            return False
        # (a capture that does not know the numbers refuses: the function runs as it is written)
        ours, theirs = a.lengths, b.lengths
        if ours.device != theirs.device:
            theirs = theirs.to(ours.device)
        same = bool((ours == theirs).all())
        if same and a.plain and b.plain:
            b.like = a
        return same

    @property
    def plain(self) -> bool:
        """Are the numbers known?"""
        return is_plain(self.offsets) and (self.given is None or is_plain(self.given))

    def once(self, name: str, find: Callable[[], Any]) -> Any:
        """What `find()` gives, kept if it consists of numbers."""
        if name in self.found:
            return self.found[name]
        value = find()
        if self.plain and (not isinstance(value, Tensor) or is_plain(value)):
            self.found[name] = value
        return value

    @property
    def count(self) -> Any:
        """The number of parts."""
        return self.offsets.shape[0] - 1

    @property
    def starts(self) -> Tensor:
        return self.offsets[:-1]

    @property
    def lengths(self) -> Tensor:
        """The length of each part."""
        if self.given is not None:
            return self.given
        return self.once("lengths", lambda: self.offsets[1:] - self.offsets[:-1])

    def listed(self) -> list[int]:
        """The lengths as numbers."""
        return self.once("listed", lambda: self.lengths.tolist())

    def longest(self) -> Any:
        """The largest length."""
        return self.once("longest", lambda: self.lengths.max().item() if self.count else 0)

    def shortest(self) -> Any:
        """The smallest length."""
        return self.once("shortest", lambda: self.lengths.min().item() if self.count else 0)

    def numbers(self, total: Any) -> Tensor:
        """For each of all elements the part that it is in; in gaps that of the part before."""
        def find() -> Tensor:
            places = ops.arange(total, device=self.offsets.device)
            return ops.searchsorted(self.offsets[1:].contiguous(), places, right=True).clamp(
                max=self.count - 1)

        return self.once("numbers", find)

    def positions(self, total: Any) -> Tensor:
        """For each of all elements its place in its part."""
        return self.once("positions", lambda: ops.arange(
            total, device=self.offsets.device) - self.starts[self.numbers(total)])

    def places(self) -> Tensor:
        """Where the elements of all parts are, without the gaps."""
        def find() -> Tensor:
            ends = self.lengths.cumsum(0)
            each = ops.repeat_interleave(self.starts - (ends - self.lengths), self.lengths)
            return each + ops.arange(each.shape[0], device=each.device)

        return self.once("places", find)


def _size(offsets: Tensor, lengths: Tensor | None, factor: Any) -> Ragged:
    return Ragged(lengths_of(offsets, lengths), factor)


def _version(t: Tensor | None) -> int:
    return -1 if t is None else t._version


def lengths_of(offsets: Tensor, lengths: Tensor | None = None) -> Lengths:
    """What is known of offsets; for the same tensors the same object."""
    key = None if lengths is None else id(lengths)
    known = offsets.__dict__.setdefault("_ragged", {})
    found = known.get(key)
    if found is None or found.given is not lengths or found.versions != (
            _version(offsets), _version(lengths)):
        found = known[key] = Lengths(offsets, lengths)
    return found


def summed(lengths: Tensor) -> Tensor:
    """Offsets of parts with these lengths, one behind the other."""
    ends = lengths.cumsum(0)
    return ops.cat([ops.zeros_like(ends[:1]) if lengths.shape[0] else ends.new_zeros(1), ends])
