"""DLPack for the dtypes that NumPy does not exchange: bfloat16 and the 8-bit floats.

NumPy writes and reads the capsule as unsigned integers of the same size; the two bytes that name
the dtype are changed in between.
"""

from __future__ import annotations

import ctypes

import numpy as np

from . import dtype as dt

# dtype -> number of its kind in DLPack's header
CODES = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12,
         "float8_e5m2fnuz": 13, "float8_e8m0fnu": 14}
_KINDS = {code: getattr(dt, name, None) or dt.by_name(name) for name, code in CODES.items()}
_UNSIGNED = 1
# where the dtype (kind and bits, a byte each) lies in the two structs that capsules hold
_OFFSET = {b"dltensor": 20, b"dltensor_versioned": 52}


def _field(capsule) -> tuple[bytes | None, ctypes.Array | None]:
    """(name of a capsule, its bytes that say kind and bits); the second None if it is used up."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = (
        ctypes.c_char_p, [ctypes.py_object])
    api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = (
        ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p])
    name = api.PyCapsule_GetName(capsule)
    if name not in _OFFSET:
        return name, None
    address = api.PyCapsule_GetPointer(capsule, name) + _OFFSET[name]
    return name, (ctypes.c_uint8 * 2).from_address(address)


def export(array: np.ndarray, options: dict):
    """The capsule of an array."""
    code = CODES.get(array.dtype.name)
    if code is None:
        return array.__dlpack__(**options)
    capsule = array.view(f"u{array.dtype.itemsize}").__dlpack__(**options)
    _field(capsule)[1][0] = code
    return capsule


class _Relabelled:
    """A source whose capsule says unsigned integers where NumPy would not know the dtype."""

    def __init__(self, source):
        self.source, self.found, self.silent = source, None, False

    def __dlpack__(self, **options):
        capsule = self.source
        if hasattr(capsule, "__dlpack__"):
            try:
                capsule = capsule.__dlpack__(**options)
            except TypeError:  # a producer of the time before versions
                capsule = capsule.__dlpack__()
        name, field = _field(capsule)
        self.silent = name == b"dltensor"  # the old kind cannot say whether it may be written
        if field is not None and field[0] in _KINDS:
            self.found, field[0] = _KINDS[field[0]], _UNSIGNED
        return capsule

    def __dlpack_device__(self):
        ask = getattr(self.source, "__dlpack_device__", None)
        return (1, 0) if ask is None else ask()


class _Writable:
    """The memory of an array without its flag."""

    def __init__(self, array: np.ndarray):
        self.array = array
        facts = dict(array.__array_interface__)
        self.__array_interface__ = {**facts, "data": (facts["data"][0], False)}


def receive(source) -> np.ndarray:
    """The array of an object with `__dlpack__`, or of a capsule."""
    if not hasattr(source, "__dlpack__") and type(source).__name__ != "PyCapsule":
        raise RuntimeError("it has no __dlpack__ method")
    relabelled = _Relabelled(source)
    array = np.from_dlpack(relabelled)
    if relabelled.silent:  # NumPy takes it for memory that must not be
        array = np.asarray(_Writable(array))
    return array if relabelled.found is None else array.view(relabelled.found.np)
