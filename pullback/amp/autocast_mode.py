"""`autocast`: matrix products in a 16-bit dtype, what needs precision in float32.

While it is on, `bind` hands every operator whose entry has an `autocast` class (those of PyTorch's
CPU autocast) to the `Policy` of the thread, which converts the tensors among its arguments and
calls it again with itself out of the way.  The conversions are ordinary operators: recorded, traced
and batched.  While it is off nobody looks: the eager path only leaves the beaten track where the
ACTIVE counter says so.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..core.stack import bind
from ..core.tape import Accumulate
from ..pytree import tree_map
from ..threads.blocks import tied
from ..threads.state import count, state

# device type -> dtype that it starts with; only the CPU's does anything here
DEVICES = {"cpu": dt.bfloat16, "cuda": dt.float16, "mps": dt.float16, "xpu": dt.float16,
           "hpu": dt.bfloat16, "ipu": dt.float16, "xla": dt.bfloat16}
_SUPPORTED = {"cpu": (dt.bfloat16, dt.float16)}


class Policy:
    """Autocast of one thread while it is on; `bind` calls `run`."""

    def __init__(self, dtype: dt.DType, cached: bool, kept: dict) -> None:
        self.dtype, self.cached, self.kept = dtype, cached, kept

    def __eq__(self, other):
        return isinstance(other, Policy) and self.dtype is other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def run(self, ov, flat: tuple):
        """An operator on converted arguments; what it is made of is left alone."""
        target = self.target(ov.op.autocast, flat)
        state.autocast = None
        try:
            if target is not None:
                # from the last to the first, as PyTorch's graphs show it
                flat = tuple([self.cast(v, target) for v in reversed(flat)][::-1])
            return bind(ov, flat)
        finally:
            state.autocast = self

    def target(self, kind: str, flat: tuple) -> dt.DType:
        if kind == "lower":
            return self.dtype
        if kind == "float32":
            return dt.float32
        given = [t for v in flat for t in (v if type(v) in (list, tuple) else (v,)) if eligible(t)]
        return dt.float32 if any(t.dtype is dt.float32 for t in given) else self.dtype

    def cast(self, value, target: dt.DType):
        if type(value) in (list, tuple):
            return [self.cast(v, target) for v in value]
        if not eligible(value) or value.dtype is target:
            return value
        if (not self.cached or target is not self.dtype or value.dtype is not dt.float32
                or not isinstance(value._edge, Accumulate) or value._link is not None
                or len(state.stack) > 1):  # a transform's values must not outlive it
            return value.to(target)
        # a weight: converted once per block, and again when it was written meanwhile
        key = id(value), state.record[0]
        version = value._cell.version if value._cell is not None else 0
        found = self.kept.get(key)
        if found is None or found[0]() is not value or found[1:3] != (version, target):
            found = self.kept[key] = weakref.ref(value), version, target, value.to(target)
        return found[3]


def eligible(value) -> bool:
    """Is it a tensor that autocast converts: floating, not double, on this device?"""
    return (isinstance(value, Tensor) and value.dtype.is_floating_point
            and value.dtype is not dt.float64 and value.device.type == "cpu")


class Settings:
    """What a thread has asked for: per device, whether and in what dtype.

    Others take their place as a whole, so that an interrupt meets the old ones or the new ones.
    """

    def __init__(self) -> None:
        self.enabled = dict.fromkeys(DEVICES, False)
        self.dtype = dict(DEVICES)
        self.cached, self.nesting = True, 0
        self.kept: dict = {}  # converted weights, shared by all settings of a thread

    def change(self, device: str = "cpu", **changes: Any) -> Settings:
        """Make others, of which those named differ, the settings of this thread."""
        if "enabled" in changes:
            changes["enabled"] = {**self.enabled, device: changes["enabled"]}
        if "dtype" in changes:
            changes["dtype"] = {**self.dtype, device: changes["dtype"]}
        new = object.__new__(Settings)
        new.__dict__.update(self.__dict__, **changes)
        state.switches.autocast_settings = new
        return new


def settings() -> Settings:
    """The settings of this thread."""
    if state.switches.autocast_settings is None:
        state.switches.autocast_settings = Settings()
    return state.switches.autocast_settings


def _apply() -> None:
    """Put the settings into effect."""
    now = settings()
    before = state.autocast
    state.autocast = (
        Policy(now.dtype["cpu"], now.cached, now.kept) if now.enabled["cpu"] else None
    )
    step = (state.autocast is not None) - (before is not None)
    if step:
        count("ACTIVE", step)  # off the fast path, which does not ask


def _device_type(name: str) -> str:
    if not isinstance(name, str):
        raise errors.BadValue(
            f"Expected `device_type` of type `str`, got: `{type(name)}`")
    if name not in DEVICES:
        raise errors.DeviceError(errors.text(
            f"autocast: Invalid device string: '{name}' ({errors.user_line(3)})",
            f"known are {', '.join(DEVICES)}", "use 'cpu'"))
    return name


class autocast:
    """Within the block (or the decorated function) operators choose their dtype.

    `dtype` is bfloat16 or float16, `cache_enabled` keeps converted weights until the outermost
    block ends. With `enabled=False` a block inside of another computes in the dtypes that it is
    given.
    """

    def __init__(self, device_type: str, dtype: dt.DType | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:
        self.device = _device_type(device_type)
        now = settings()
        self.fast_dtype = now.dtype[self.device] if dtype is None else dtype
        self._enabled = bool(enabled)
        self._cache = now.cached if cache_enabled is None else bool(cache_enabled)
        if self._enabled and not is_autocast_available(self.device):
            warnings.warn(f"autocast: there is no device of type '{self.device}' here, so that it "
                          "stays off", UserWarning, stacklevel=2)
            self._enabled = False
        elif self._enabled and self.fast_dtype not in _SUPPORTED[self.device]:
            warnings.warn(f"autocast on {self.device} knows float16 and bfloat16, not "
                          f"{self.fast_dtype}, and stays off", UserWarning, stacklevel=2)
            self._enabled = False

    def __enter__(self) -> autocast:
        now = settings()
        self._before = now
        self._inside = now.change(self.device, enabled=self._enabled, dtype=self.fast_dtype,
                                  cached=self._cache, nesting=now.nesting + 1)
        _apply()
        return self

    @tied
    def __exit__(self, *exc) -> None:
        now, before, device = settings(), self._before, self.device
        if now.nesting == 1:
            now.kept.clear()
        if now is self._inside:
            state.switches.autocast_settings = before
        else:  # changed inside, by calls
            now.change(device, enabled=before.enabled[device], dtype=before.dtype[device],
                       cached=before.cached, nesting=now.nesting - 1)
        _apply()

    def __call__(self, function) -> Any:
        @functools.wraps(function)
        def run(*args, **kwargs):
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache):
                return function(*args, **kwargs)

        return run


def is_autocast_available(device_type: str) -> bool:
    """Does autocast do anything for a device?"""
    return _device_type(device_type) in _SUPPORTED


def present() -> autocast:
    """A block of what holds now, for a function that will run again."""
    now = settings()
    return autocast("cpu", now.dtype["cpu"], now.enabled["cpu"], now.cached)


# autograd.Function


def _converted(value, device: str, dtype: dt.DType):
    def one(v):
        return v.to(dtype) if eligible(v) and v.device.type == device else v

    return tree_map(one, value)


def custom_fwd(fwd=None, *, device_type: str, cast_inputs: dt.DType | None = None) -> Any:
    """Decorate `forward` of a `Function`: backward will run under the same autocast.

    With `cast_inputs` floating inputs are converted, and `forward` itself runs without autocast.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    _device_type(device_type)

    @functools.wraps(fwd)
    def run(*args, **kwargs):
        now = settings()
        args[0]._dtype = now.dtype[device_type]
        enabled = now.enabled[device_type]
        if cast_inputs is None:
            args[0]._fwd_used_autocast = enabled
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        if not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_converted(args, device_type, cast_inputs),
                       **_converted(kwargs, device_type, cast_inputs))

    return run


def custom_bwd(bwd=None, *, device_type: str) -> Any:
    """Decorate `backward` of a `Function` whose `forward` has `custom_fwd`."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    _device_type(device_type)

    @functools.wraps(bwd)
    def run(*args, **kwargs):
        with autocast(device_type, args[0]._dtype, args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return run


# the functions of `torch` itself


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Is autocast on for a device?"""
    return settings().enabled[_device_type(device_type)]


def set_autocast_enabled(device_type, enabled: bool | None = None) -> None:
    """Switch autocast for a device."""
    if enabled is None:  # the old form, for CUDA
        device_type, enabled = "cuda", device_type
    settings().change(_device_type(device_type), enabled=bool(enabled))
    _apply()


def get_autocast_dtype(device_type: str) -> dt.DType:
    """The 16-bit dtype of a device."""
    return settings().dtype[_device_type(device_type)]


def set_autocast_dtype(device_type: str, dtype: dt.DType) -> None:
    """Choose the 16-bit dtype of a device."""
    settings().change(_device_type(device_type), dtype=dtype)
    _apply()


def is_autocast_cache_enabled() -> bool:
    """Are converted weights kept?"""
    return settings().cached


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep converted weights, or convert them at every use."""
    settings().change(cached=bool(enabled))
    _apply()


def clear_autocast_cache() -> None:
    """Forget converted weights."""
    settings().kept.clear()


def autocast_increment_nesting() -> int:
    """One more block; returns how many."""
    settings().change(nesting=settings().nesting + 1)
    return settings().nesting


def autocast_decrement_nesting() -> int:
    """One block less; returns how many are left."""
    settings().change(nesting=settings().nesting - 1)
    return settings().nesting


def _per_device() -> dict:
    """`is_autocast_cpu_enabled` and its like: the functions above for one device."""
    made = {}
    for old, device in {"cpu": "cpu", "gpu": "cuda", "ipu": "ipu", "xla": "xla"}.items():
        made[f"get_autocast_{old}_dtype"] = functools.partial(get_autocast_dtype, device)
        made[f"set_autocast_{old}_dtype"] = functools.partial(set_autocast_dtype, device)
        if old != "gpu":
            made[f"is_autocast_{old}_enabled"] = functools.partial(is_autocast_enabled, device)
            made[f"set_autocast_{old}_enabled"] = functools.partial(set_autocast_enabled, device)
    return made


globals().update(_per_device())
