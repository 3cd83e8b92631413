"""Global settings under PyTorch's names: threads, determinism, precision, the default device.

All computation here is deterministic and in the precision of its dtype: the switches that allow
PyTorch something faster are kept and given back, so that programs which set them run, and change
nothing. `docs/compatibility.md` lists what each does.
"""

from __future__ import annotations

import warnings

from . import errors
from .array import device as dev
from .array import dtype as dt
from .tensor import legacy_types as legacy
from .threads.state import state

_kept = {"deterministic": 0, "precision": "highest"}
_DEBUG_MODES = ("default", "warn", "error")
_PRECISIONS = ("highest", "high", "medium")


# devices and dtypes


def set_default_device(device: dev.Device | str | int | None) -> None:
    """Where new tensors go that are not told; None is the CPU again."""
    chosen = None if device is None else dev.Device(device)
    if chosen is not None and chosen.type != "meta":
        dev.namespace(chosen)  # refuses what is not there, before anything changes
    if chosen is not None and chosen.type == "cpu":
        chosen = None  # as it is anyhow
    inner = state.switches.devices[1:] if state.switches.default_device else state.switches.devices
    dev.use(*(() if chosen is None else (chosen,)), *inner)
    state.switches.default_device = chosen is not None


def get_default_device() -> dev.Device:
    """Where new tensors go that are not told."""
    return dev.chosen() or dev.CPU


def set_default_tensor_type(t, /) -> None:
    """Set the default dtype by an old tensor type: `DoubleTensor`, `"torch.DoubleTensor"`."""
    dt.set_default(legacy.dtype_of(t))


# determinism and precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Kept: every operator here gives the same numbers every time."""
    _kept["deterministic"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """What was asked of `use_deterministic_algorithms`."""
    return _kept["deterministic"] > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Was it asked for with warn_only?"""
    return _kept["deterministic"] == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same by number or name: 0 "default", 1 "warn", 2 "error"."""
    if isinstance(debug_mode, str) and debug_mode in _DEBUG_MODES:
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if not isinstance(debug_mode, int):
        raise errors.ArgumentError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (0, 1, 2):
        raise errors.RefusedValue(
            f"invalid value of debug_mode, expected 0, 1 or 2, but got {debug_mode}")
    _kept["deterministic"] = debug_mode


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2; see `set_deterministic_debug_mode`."""
    return _kept["deterministic"]


def set_float32_matmul_precision(precision: str) -> None:
    """Kept: products of float32 matrices are always of the highest precision."""
    if precision not in _PRECISIONS:
        warnings.warn(f"{precision!r} is not one of {', '.join(map(repr, _PRECISIONS))}; nothing "
                      "changes", stacklevel=2)
        return
    _kept["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What was asked of `set_float32_matmul_precision`."""
    return _kept["precision"]


def set_flush_denormal(mode: bool) -> bool:
    """Would denormal numbers become zero? False: not here."""
    return False


def set_warn_always(flag: bool, /) -> None:
    """Are warnings that come once per process to come each time?  Python's filters come after."""
    if not isinstance(flag, bool):
        raise errors.ArgumentError(f"setWarnOnlyOnce expects a bool, but got {type(flag).__name__}")
    errors.warnings_repeat = flag


def is_warn_always_enabled() -> bool:
    """What was asked of `set_warn_always`."""
    return errors.warnings_repeat


# threads


def get_num_interop_threads() -> int:
    """Operators run one after another: 1."""
    return 1


def set_num_interop_threads(count: int) -> None:
    """Checked and otherwise ignored: operators run one after another."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise errors.RefusedValue(f"Expected positive number of threads, got {count}")


# numbers that may be symbols in PyTorch


OutOfMemoryError = MemoryError  # what Python raises where there is not enough
AcceleratorError = errors.DeviceError
