"""Devices: where arrays live, and the array namespace that computes there.

A device is a name, an array type and a namespace with NumPy's functions.  `cpu` is NumPy, `cuda`
is CuPy (registered on first use), and tests register a stand-in.  Kernels get the namespace as
`xp`.
"""

from __future__ import annotations

import numpy as np

from .. import errors
from ..threads.blocks import tied
from ..threads.state import count, state


class Device:
    """A device such as `cpu` or `cuda:0`."""

    __slots__ = ("index", "type")

    def __init__(self, type: str | Device = "cpu", index: int | None = None):
        if isinstance(type, Device):
            type, index = type.type, type.index
        elif isinstance(type, int):
            type, index = "cuda", type
        elif ":" in type:
            type, _, number = type.partition(":")
            index = int(number)
        if type not in KNOWN:
            raise errors.DeviceError(
                errors.text(
                    f"there is no device type '{type}' ({errors.user_line(2)})",
                    cure="use one of " + ", ".join(sorted(KNOWN)),
                )
            )
        self.type, self.index = type, index

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (
            f", index={self.index})" if self.index is not None else ")"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other) -> bool:
        return (
            isinstance(other, Device)
            and self.type == other.type
            and (self.index or 0) == (other.index or 0)
        )

    def __hash__(self) -> int:
        return hash((self.type, self.index or 0))

    def __reduce__(self):
        return (Device, (self.type, self.index))

    def __enter__(self) -> Device:
        """New tensors are made here unless they are told where."""
        use(*state.switches.devices, self)
        return self

    @tied
    def __exit__(self, *exc) -> None:
        use(*state.switches.devices[:-1])


# The last ones can be named, but nothing is there
KNOWN = {"cpu", "cuda", "meta", "mps", "xpu", "hpu", "ipu", "xla", "mtia", "vulkan"}
CPU = None  # set below, once Device can be made
_BY_TYPE: dict[type, tuple[str, object] | None] = {np.ndarray: ("cpu", np), np.generic: ("cpu", np)}
_NAMESPACES: dict[str, object] = {"cpu": np}


def register(name: str, array_type: type, namespace) -> None:
    """Make an array type a device."""
    KNOWN.add(name)
    for kind in [k for k, place in _BY_TYPE.items() if place is None]:
        del _BY_TYPE[kind]  # asked before: may be a subclass of the new type
    _BY_TYPE[array_type] = (name, namespace)
    _NAMESPACES[name] = namespace


def _load_cuda() -> None:
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except ImportError as error:
        raise errors.DeviceError(
            errors.text(
                f"device 'cuda' was asked for ({errors.user_line(3)}), but CuPy is not installed",
                cure="pip install 'pullback[cuda]'",
            )
        ) from error
    except Exception as error:
        raise errors.DeviceError(
            errors.text(
                f"device 'cuda' was asked for ({errors.user_line(3)}), but no GPU answers",
                str(error).splitlines()[0],
            )
        ) from error
    register("cuda", cupy.ndarray, cupy)


def namespace(device: Device | str | None):
    """The array namespace of a device."""
    if device is None:
        return np
    name = device.type if isinstance(device, Device) else Device(device).type
    if name == "cuda" and name not in _NAMESPACES:
        _load_cuda()
    if name not in _NAMESPACES:
        raise errors.DeviceError(errors.text(
            f"device '{name}' was asked for ({errors.user_line(3)}), but there is none here",
            cure=f"use one of {', '.join(_NAMESPACES)}"))
    return _NAMESPACES[name]


def use(*devices: Device) -> None:
    """Where new tensors go that are not told, innermost last; the fast ways do not ask."""
    step = bool(devices) - bool(state.switches.devices)
    state.switches.devices = devices
    if step:
        count("ACTIVE", step)


def chosen(device: Device | None = None) -> Device | None:
    """Where a new tensor goes: as told, else the innermost `with device`, else the default."""
    return device or (state.switches.devices[-1] if state.switches.devices else None)


def lookup(array) -> tuple[str, object] | None:
    """(device name, namespace) of a raw array, or None if it is not one."""
    kind = type(array)
    try:
        return _BY_TYPE[kind]
    except KeyError:
        found = next((_BY_TYPE[base] for base in kind.__mro__[1:] if base in _BY_TYPE), None)
        _BY_TYPE[kind] = found
        return found


def address(array) -> int:
    """Where the first element of a raw array is in its device's memory."""
    interface = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return interface["data"][0]


def owner(array):
    """The array whose memory this one shows."""
    base, kind = array.base, np.ndarray if isinstance(array, np.ndarray) else type(array)
    while base is not None:  # as_strided puts a helper object between an array and its base
        if isinstance(base, kind):
            array = base
        base = getattr(base, "base", None)
    return array


def transfer(array, device: Device):
    """A raw array on another device; itself if it is there already."""
    source, xp = lookup(array)
    if source == device.type:
        return array
    host = array if xp is np else xp.asnumpy(array)
    return host if device.type == "cpu" else namespace(device).asarray(host)


def device_of(array) -> Device:
    """The device that a raw array lives on."""
    name = lookup(array)[0]
    return CPU if name == "cpu" else Device(name, 0 if name == "cuda" else None)


CPU = Device("cpu")
