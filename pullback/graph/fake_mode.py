"""`FakeTensorMode`: programs on tensors that have shapes, dtypes and devices, but no data.

Inside of the mode everything that is made is fake, and operators give fakes; what needs values is
refused with the line and the remedy.  `make_fx(tracing_mode="fake")` and `compile` use the same
tensors without the mode.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import errors
from ..array import device as dev
from ..array import reals
from ..array.device import Device
from ..array.fake import Fake, fake_like, is_fake, setting
from ..autograd.grad_mode import enable_grad
from ..core.handle import Tensor, disabled, make
from ..pytree import tree_leaves
from ..threads.blocks import tied, tied_block
from ..threads.state import Fakes, count, state

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake", "maybe_get_fake_mode",
           "unset_fake_temporarily"]

DataDependentOutputException = errors.DataDependentError
DynamicOutputShapeException = errors.DynamicOutputShapeException
UnsupportedFakeTensorException = errors.DataDependentError
UnsupportedOperatorException = errors.DerivativeNotWritten  # no rule for shapes
MetadataMismatchError = errors.MetadataMismatchError


class Asking(type):
    """The kind of classes that ask a function, `_has`, what their instances are."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls._has(instance)


class FakeTensor(Tensor, metaclass=Asking):
    """What `isinstance` asks for: a tensor without data, wherever it was made."""

    _has = staticmethod(is_fake)

    __torch_function__ = disabled

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        raise TypeError("make fake tensors with FakeTensorMode().from_tensor(t), or inside of one")


def _is_tensor_constructor(func: Any) -> bool:
    """Does an operator make a tensor from no other one?"""
    schema = func._schema
    return not any(a.is_tensor for a in schema.arguments) and [
        r.type_text() for r in schema.returns] == ["Tensor"]


def _pair(memo: dict, key: Any, value: Any) -> None:
    """Remember something by something else, as long as both are there."""
    place = id(key)

    def forget(_: Any) -> None:
        memo.pop(place, None)

    memo[place] = weakref.ref(key, forget), weakref.ref(value, forget)


class FakeTensorConverter:
    """Which fake stands for which tensor, as long as both are there."""

    def __init__(self, **ignored: Any) -> None:
        self.tensor_memo: dict[int, tuple[weakref.ref, weakref.ref]] = {}
        self.storage_memo: dict[int, tuple[weakref.ref, weakref.ref]] = {}
        self.count = 0  # tensors so far

    @property
    def meta_converter(self) -> FakeTensorConverter:
        """The same object, which PyTorch has two of."""
        return self

    def remember(self, tensor: Tensor, fake: Tensor) -> None:
        """A fake was made."""
        self.count += 1
        _pair(self.tensor_memo, tensor, fake)

    def lay(self, fake: Fake, array: np.ndarray) -> None:
        """Tell a fake whose memory it shares: fakes of tensors that share theirs share it, too."""
        owner = dev.owner(array)
        known = self.storage_memo.get(id(owner))
        root = None if known is None else known[1]()
        if root is None:
            root = fake if owner is array else fake_like(owner)
            _pair(self.storage_memo, owner, root)
        if root is not fake:
            fake.base, fake.offset = root, dev.address(array) - dev.address(owner)

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Tensor, device: Any) -> Tensor:
        """The fake on a device of a tensor without one, remembered here."""
        known = self.tensor_memo.get(id(t))
        fake = None if known is None or known[0]() is not t else known[1]()
        if fake is None:
            fake = self.from_real_tensor(fake_mode, make(fake_like(t._payload)))
            fake._payload.device_name = str(Device(device))
            self.remember(t, fake)
        return fake

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Tensor, **options: Any) -> Tensor:
        """The fake of a tensor in a mode, remembered here."""
        before, fake_mode.fake_tensor_converter = fake_mode.fake_tensor_converter, self
        try:
            return fake_mode.from_tensor(t, **options)
        finally:
            fake_mode.fake_tensor_converter = before


class FakeTensorMode:
    """A context in which tensors have no data.

    `from_tensor` gives the fake of a tensor.  Operators refuse tensors with data unless
    `allow_non_fake_inputs`; numbers in tensors without dims may always come along.
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False,
                 shape_env: Any = None, static_shapes: bool | None = None,
                 export: bool = False) -> None:
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env, self.static_shapes = shape_env, static_shapes
        self.allow_meta = setting("fake_tensor_allow_meta")
        self.propagate_real_tensors = reals.wanted()
        self._before: list[Fakes] = []
        self.fake_tensor_converter = FakeTensorConverter()

    def __enter__(self) -> FakeTensorMode:
        self._before.append(state.fakes)
        state.fakes.creates, state.fakes.mode, state.fakes.sizes = True, self, self.shape_env
        state.fakes.reals = self.propagate_real_tensors
        count("ACTIVE", 1)
        return self

    @tied
    def __exit__(self, *exc: Any) -> None:
        count("ACTIVE", -1)
        state.fakes = self._before.pop()

    def from_tensor(self, tensor: Tensor, *, static_shapes: bool | None = None,
                    source: Any = None, symbolic_context: Any = None) -> Tensor:
        """The fake of a tensor: of the same class, it requires grad if that does, as a leaf or not.
        """
        made = self.fake_tensor_converter
        known = made.tensor_memo.get(id(tensor))
        fake = None if known is None or known[0]() is not tensor else known[1]()
        if fake is not None:
            return fake
        self._check_device(tensor.device)
        if is_fake(tensor) and tensor._payload.mode in (None, self):
            return tensor
        new = object.__new__(type(tensor))
        blank = make(fake_like(tensor._payload))
        static = self.static_shapes if static_shapes is None else static_shapes
        if self.shape_env is not None and not static:
            from .sizes import symbolic_input

            count = made.count
            name = f"__meta_utils_unknown_tensor{count}" if source is None else str(source)
            wanted = None if symbolic_context is None else [
                wish.name != "STATIC" for wish in symbolic_context.dynamic_sizes]
            blank = symbolic_input(self.shape_env, blank, name, count, wanted)
        new._payload = blank._payload
        if not blank._payload.symbolic and type(tensor._payload) is np.ndarray:
            made.lay(blank._payload, tensor._payload)
        new._edge = new._link = new._record = new._cell = None
        if tensor.requires_grad:
            new.requires_grad_(True)
            if not tensor.is_leaf:  # which may be written in place
                with enable_grad():
                    new = new.clone()
        new._payload.mode = self
        if self.propagate_real_tensors:
            reals.beside(new, tensor)
        made.remember(tensor, new)
        grad = tensor.grad if tensor.is_leaf else None
        if grad is not None:
            new.grad = self.from_tensor(grad, static_shapes=static_shapes)
        return new

    def _check_device(self, device: Any) -> None:
        if not self.allow_meta and device.type == "meta":
            raise AssertionError(
                "a tensor of the device 'meta' meets a FakeTensorMode, and "
                "aot.config.fake_tensor_allow_meta is False: name the device that it stands for")

    def check_modes(self, ov: Any, raw: Any) -> None:
        """Refuse fake tensors of several modes."""
        modes = {id(v.mode) for v in raw if type(v) is Fake and v.mode is not None}
        if len(modes) > 1:
            raise AssertionError(errors.text(
                f"Mixing fake modes: {ov.name} got fake tensors of {len(modes)} modes "
                f"({errors.user_line(3)})", cure="make all of them with one FakeTensorMode"))

    def check(self, ov: Any, raw: Any) -> None:
        """Refuse tensors with data among the arguments of an operator."""
        self.check_modes(ov, raw)
        if not self.allow_meta:
            for value in raw:
                if isinstance(value, Device):
                    self._check_device(value)
        if self.allow_non_fake_inputs:
            return
        for value in raw:
            for array in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(array, np.ndarray) and array.ndim:
                    raise errors.TransformError(errors.text(
                        "Please convert all Tensors to FakeTensors first: a tensor with data meets "
                        f"ones without in {ov.name} ({errors.user_line(3)})",
                        f"tensor: {array.dtype}{list(array.shape)}",
                        ["use mode.from_tensor(t) in its place",
                         "or FakeTensorMode(allow_non_fake_inputs=True)"]))


@tied_block
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """Real tensors for a while, inside of a mode."""
    before = state.fakes
    state.fakes.creates, state.fakes.mode = False, None
    try:
        yield before.mode
    finally:
        state.fakes = before


def maybe_get_fake_mode(t: Any) -> FakeTensorMode | None:
    """The mode of a fake tensor, or the one that is active."""
    return (t._payload.mode or state.fakes.mode) if is_fake(t) else None


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The mode of the fake tensors among inputs, or the one that is active."""
    modes = [t._payload.mode for t in tree_leaves(inputs) if is_fake(t)]
    return next((mode for mode in modes if mode is not None), state.fakes.mode)
