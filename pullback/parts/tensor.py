"""`PartsTensor`, the base of tensors that are made of other tensors, and `Parts`, their payload.

A class says what its parts are called (`names`), and which of them has the history (`carrier`).
All that autograd knows about such a tensor is what it knows about its carrier: a gradient is a
tensor of the same class around the gradient of that.  Read next: `rules.py`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from .. import errors
from ..array import dtype as dt
from ..array.layout import layout
from ..array.size import Size
from ..core.handle import Box, Tensor, disabled
from . import rules

_new = object.__new__


class Parts(Box):
    """The payload of a tensor that is made of others: the facts of an array, and no memory."""

    __slots__ = ("cls", "device_name", "dtype", "owner", "shape", "strides")
    interp = None  # it belongs to no level; its parts do
    composed = True
    base, offset, symbolic = None, 0, False

    def __init__(self, owner: PartsTensor, shape: tuple, dtype: Any, device_name: str):
        self.owner = weakref.ref(owner)
        self.cls, self.shape, self.dtype, self.device_name = type(owner), shape, dtype, device_name
        self.strides = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        total = 1
        for n in self.shape:
            total = total * n
        return total

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def describe(self, handle: Tensor) -> str:
        return repr(handle)

    def kept(self, g: Tensor) -> Tensor:
        """A gradient whose memory is its own, for a leaf to keep."""
        whole = self.owner()
        _outside_of_captures()
        return g if whole is None else whole.with_carrier(whole.values_with_history.clone())

    def added(self, have: Tensor, g: Tensor) -> Tensor:
        """A leaf's gradient after one of this kind has arrived; the same tensor where it can be."""
        whole = self.owner()
        _outside_of_captures()
        whole = g if whole is None else whole
        return whole.added_to(have) if isinstance(whole, PartsTensor) else have + g

    def concrete(self, handle: Tensor, what: str) -> Tensor:
        raise errors.LayoutError(errors.text(
            f"{what} wants one array, and a {self.cls.title} tensor has none "
            f"({errors.user_line(3)})", rules.shown(handle),
            "convert it first: x.to_dense(), or ask its parts"))


def _outside_of_captures() -> None:
    """Refuse to keep a gradient of traced parts: the function runs as it is written instead."""
    from ..threads.state import state

    level = state.stack[state.mode] if state.mode else None
    if level is not None and level.adopts:
        raise level.unfollowed(errors.text(
            f"a leaf gets a gradient that is made of parts, a sparse one, inside of a captured "
            f"function ({errors.user_line(3)})",
            cure="call backward() outside of it, on what it returns"))


class PartsTensor(Tensor):
    """A tensor that is made of other tensors."""

    __torch_function__ = disabled  # operators come here by their payload (`rules.py`)
    title: ClassVar[str] = "composed"  # in messages
    names: ClassVar[tuple[str, ...]] = ()  # of its parts, which are attributes
    facts: ClassVar[tuple[str, ...]] = ()  # further attributes, which follow from parts and `meta`
    carrier: ClassVar[str] = "_values"  # the part that has the history
    rules: ClassVar[dict] = {}  # operator -> function: see `rules.rule`
    cure: ClassVar[str] = "convert it first: x.to_dense()"  # of operators that there are not
    own_layout: ClassVar[Any] = layout.known["strided"]
    map_parts: Any = None  # `vmap` over dim 0, where examples have different sizes
    is_shown_grad = False  # is the carrier the gradient of another one, to be written in place?

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.rules = dict(cls.rules) if "rules" not in vars(cls) else cls.rules

    def __init__(self, *args, **kwargs):  # made by `take_form`
        pass

    def take_form(self, shape: tuple, dtype: Any, device_name: str = "cpu") -> None:
        """Give the handle its payload: its parts have been set."""
        rules.install()
        self._payload = Parts(self, shape, dtype, device_name)
        self._edge = self._link = self._cell = self._record = None

    @classmethod
    def bare(cls):
        """A handle without parts."""
        t = _new(cls)
        t._edge = t._link = t._cell = t._record = None
        return t

    # what subclasses give ---------------------------------------------------------------------

    def meta(self) -> Any:
        """Facts that, with the parts, make the tensor; compared with `==` by transforms."""
        raise NotImplementedError

    @classmethod
    def join(cls, parts: dict[str, Tensor], meta: Any) -> PartsTensor:
        """The tensor that has these parts."""
        raise NotImplementedError

    @classmethod
    def over(cls, other: type) -> bool:
        """Does this class answer calls with arguments of both?"""
        return issubclass(cls, other)

    def opened_parts(self, names: tuple, seen: list) -> dict[str, Tensor]:
        """The parts with these names, for transforms; `seen` is theirs who are opened together."""
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}

    def of_each(self, dim: int, function: Callable[[Tensor, int], Tensor]) -> PartsTensor:
        """What `vmap` makes of the tensor: `function` of each part and the dim of examples in it,
        one example at the beginning and all at the end."""
        raise errors.MappingError(errors.text(
            f"vmap: a {self.title} tensor has no dim of examples ({errors.user_line(4)})",
            rules.shown(self), "pass it with None in in_dims, and map over its values"))

    def answered(self, ov, flat: tuple, out: Any) -> Any:
        """What an operator gives, once a rule has made it."""
        return out

    def any_operator(self, ov, flat: tuple):
        """What operators do that have no rule of their own; NotImplemented: they are refused."""
        return NotImplemented

    @classmethod
    def write_operator(cls, ov, flat: tuple):
        """What `x.op_(...)` does that has no rule of its own; NotImplemented: it is the operator,
        whose result the tensor becomes."""
        return NotImplemented

    def write_all(self, new: Any, name: str) -> None:
        """Become the result of an operator, in place; a leaf that requires grad may not."""
        from ..threads.state import state

        leaf = self.is_leaf and self.requires_grad
        if leaf and state.record[state.mode]:
            raise errors.LeafWriteError(errors.text(
                "a leaf Variable that requires grad is being used in an in-place operation: "
                f"{name}_ ({errors.user_line(3)})", rules.shown(self)))
        if type(new) is not type(self):
            raise errors.LayoutError(errors.text(
                f"{name}_: the result would be a {type(new).__name__} ({errors.user_line(3)})",
                rules.shown(self), "use the operator without underscore"))
        if new is self:
            return
        if self.holds_as(new):  # so that views of the carrier, and gradients, see it
            self.values_with_history.copy_(new.values_with_history)
        elif self.is_shown_grad:
            raise errors.LayoutError(errors.text(
                f"{name}_: a gradient keeps the pattern of its tensor ({errors.user_line(3)})",
                rules.shown(self), f"give it another one: x.grad = x.grad.{name}(...)"))
        else:
            self.become(new)
            if leaf:
                self.requires_grad_()

    def holds_as(self, other: PartsTensor) -> bool:
        """Are all parts but the carrier those of another tensor?"""
        ours, theirs = self.values_with_history, other.values_with_history
        if ours is theirs or ours.shape != theirs.shape or ours.dtype is not theirs.dtype or (
                self.meta() != other.meta()):
            return False
        parts = [(getattr(self, n), getattr(other, n)) for n in self.names if n != self.carrier]
        return all(a is b or a is not None and b is not None and a._payload is b._payload
                   for a, b in parts)

    def with_carrier(self, values: Tensor) -> PartsTensor:
        """The same around other values: a gradient, a tangent, the result of a function of each."""
        parts = {name: getattr(self, name) for name in self.names}
        parts[self.carrier] = values
        return type(self).join(parts, self.meta())

    def become(self, other: PartsTensor) -> None:
        """Become another tensor, in place."""
        for name in self.names:
            setattr(self, name, getattr(other, name))
        data = other._payload
        self._payload = Parts(self, data.shape, data.dtype, data.device_name)

    # autograd ---------------------------------------------------------------------------------

    @property
    def values_with_history(self) -> Tensor:
        """The part that autograd follows."""
        return getattr(self, self.carrier)

    @property
    def requires_grad(self) -> bool:
        return self.values_with_history.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True):
        self.values_with_history.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        found = self.values_with_history.grad
        if found is None:
            return None
        known = self.__dict__.get("_shown_grad")
        if known is None or known.values_with_history is not found:
            known = self.__dict__["_shown_grad"] = self.with_carrier(found)
            known.is_shown_grad = True
        return known

    @grad.setter
    def grad(self, value) -> None:
        if value is not None:
            value = self.same_kind(value, "grad").values_with_history
        self.values_with_history.grad = value

    @property
    def grad_fn(self):
        return self.values_with_history.grad_fn

    @property
    def is_leaf(self) -> bool:
        return self.values_with_history.is_leaf

    @property
    def retains_grad(self) -> bool:
        return self.values_with_history.retains_grad

    @property
    def output_nr(self) -> int:
        return self.values_with_history.output_nr

    @property
    def _version(self) -> int:
        return self.values_with_history._version

    def elements(self) -> Tensor:
        """A dense tensor with what checks of derivatives compare."""
        return self.values_with_history

    def retain_grad(self) -> None:
        self.values_with_history.retain_grad()

    def register_hook(self, hook):
        def around(g):
            out = hook(self.with_carrier(g))
            return None if out is None else self.carried(out, "a hook", g)

        return self.values_with_history.register_hook(around)

    def register_post_accumulate_grad_hook(self, hook):
        return self.values_with_history.register_post_accumulate_grad_hook(lambda _: hook(self))

    def detach(self):
        return self.with_carrier(self.values_with_history.detach())

    def detach_(self):
        carrier = self.values_with_history
        if carrier._link is None:
            carrier.detach_()
        else:  # a view, which keeps what it shows
            setattr(self, self.carrier, carrier.detach())
        return self

    @property
    def data(self):
        return self.with_carrier(self.values_with_history.data)

    @data.setter
    def data(self, value) -> None:
        """Become another tensor, and stay the leaf that it is."""
        carrier = self.values_with_history
        carrier.data = self.same_kind(value, "data").values_with_history
        self.become(value.with_carrier(carrier))

    def own_values(self) -> Tensor:
        """All numbers that count, each once; to write them is to write this tensor."""
        return self.values_with_history

    def same_kind(self, value, what: str) -> PartsTensor:
        """A gradient, or the like, on the same pattern."""
        if type(value) is not type(self) or value.shape != self.shape:
            raise errors.GradientShapeError(errors.text(
                f"{what} of a {self.title} tensor has to be one as well ({errors.user_line(3)})",
                f"got {type(value).__name__}{list(getattr(value, 'shape', ()))}, wanted "
                f"{rules.shown(self)}"))
        return value

    def added_to(self, have: Tensor) -> Tensor:
        """The sum of a leaf's gradient and this one."""
        new = have + self
        if isinstance(have, PartsTensor) and type(new) is type(have):
            have.become(new)
            return have
        return new

    def cotangent(self, g: Tensor) -> Tensor:
        """A gradient of this tensor as one of its carrier."""
        return self.carried(g, "the gradient")

    def carried(self, value, what: str, before: Tensor | None = None) -> Tensor:
        """A gradient of this tensor as one of its carrier, which had another one before."""
        return self.same_kind(value, what).values_with_history

    def further_cotangents(self, g: Tensor) -> list[tuple]:
        """(Tensor, its gradient) where the carrier does not have all of the history."""
        return []

    # facts --------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        return Size(self._payload.shape)

    @property
    def dtype(self):
        return dt.of(self._payload.dtype)

    @property
    def device(self):
        return self.values_with_history.device

    @property
    def layout(self) -> Any:
        return self.own_layout

    @property
    def ndim(self) -> int:
        return len(self._payload.shape)

    def dim(self) -> int:
        return len(self._payload.shape)

    def size(self, dim: int | None = None):
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return self._payload.size

    nelement = numel

    def __len__(self) -> int:
        return self.shape[0]

    def is_contiguous(self, memory_format=None) -> bool:
        return True

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def __hash__(self) -> int:
        return id(self)

    # copies ---------------------------------------------------------------------------------------

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return list(self.names), self.meta()

    @classmethod
    def __tensor_unflatten__(cls, parts: dict, meta: Any, size: Any = None, stride: Any = None):
        return cls.join(parts, meta)

    def __deepcopy__(self, memo: dict):
        import copy

        if id(self) not in memo:
            parts = {name: copy.deepcopy(getattr(self, name), memo) for name in self.names}
            new = memo[id(self)] = type(self).join(parts, self.meta())
            _take_on(new, copy.deepcopy(self.attributes(), memo))
        return memo[id(self)]

    def __copy__(self):
        parts = {name: getattr(self, name) for name in self.names}
        return _joined(type(self), parts, self.meta(), self.attributes())

    def __reduce_ex__(self, protocol: int):
        parts = {name: getattr(self, name) for name in self.names}
        return _joined, (type(self), parts, self.meta(), self.attributes())

    def attributes(self) -> dict:
        """What users have put into the tensor, and what is not made of its parts."""
        made = (*self.names, *self.facts, "_shown_grad", "is_shown_grad")
        return {k: v for k, v in self.__dict__.items() if k not in made}


def _take_on(t: PartsTensor, attributes: dict) -> None:
    for name, value in attributes.items():
        t.__dict__.setdefault(name, value)


def _joined(cls: type[PartsTensor], parts: dict, meta: Any, attributes: dict) -> PartsTensor:
    t = cls.join(parts, meta)
    _take_on(t, attributes)
    return t
