"""A stand-in for a second device: arrays of another namespace that refuse every NumPy function.

`xp` offers NumPy's functions for `DeviceArray`s, as CuPy does for its arrays.  Handing a
`DeviceArray` to a NumPy function, or a NumPy array to a function of `xp`, raises
`WrongNamespace`: code that works here uses only the namespace of its arguments.  Nothing leaves
the device but by `xp.asnumpy`, `item()` and conversions to numbers.
"""

from __future__ import annotations

import functools
import types

import numpy as np

import pullback as torch
from pullback.array import device
from pullback.parts.tensor import PartsTensor
from pullback.pytree import tree_leaves, tree_map_only


class WrongNamespace(TypeError):
    """An array of one device met a function or an array of another."""


def _unwrap(value):
    """NumPy's view of a value; refuses NumPy arrays."""
    if isinstance(value, DeviceArray):
        return value._host
    if isinstance(value, np.ndarray):
        raise WrongNamespace("a NumPy array was given to a function of the second device")
    if isinstance(value, list):
        return [_unwrap(v) for v in value]
    if isinstance(value, tuple):
        return (
            type(value)(*map(_unwrap, value))
            if hasattr(value, "_fields")
            else tuple(_unwrap(v) for v in value)
        )
    return value


def _wrap(value):
    if isinstance(value, (np.ndarray, np.generic)):
        return DeviceArray(np.asarray(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_wrap(v) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_wrap(v) for v in value)
    return value


def _lifted(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        kwargs = {k: _unwrap(v) for k, v in kwargs.items()}
        with np.errstate(all="ignore"):  # devices do not warn
            return _wrap(function(*map(_unwrap, args), **kwargs))

    return call


class DeviceArray:
    """An array of the second device."""

    __array_priority__ = 500

    def __init__(self, host: np.ndarray):
        self._host = host

    def __array__(self, dtype=None, copy=None):
        raise WrongNamespace("an array of the second device was converted to NumPy implicitly")

    __array_ufunc__ = None  # NumPy refuses; a NumPy number times an array comes to __rmul__

    def __array_function__(self, function, *args):
        raise WrongNamespace(f"NumPy's {function.__name__} was called on the second device")

    def __array_namespace__(self, **kwargs):
        return xp

    @property
    def __cuda_array_interface__(self):
        """Only the address: where the memory is, not what is in it."""
        return {"data": self._host.__array_interface__["data"]}

    @property
    def base(self):
        return None if self._host.base is None else _wrap(self._host.base)

    def __bool__(self):
        return bool(self._host)

    def __int__(self):
        return int(self._host)

    def __float__(self):
        return float(self._host)

    def __complex__(self):
        return complex(self._host)

    def __index__(self):
        return self._host.__index__()

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        return iter([_wrap(v) for v in self._host])

    def __getitem__(self, key):
        host = self._host[_unwrap(key)]
        return DeviceArray(host if isinstance(host, np.ndarray) else np.asarray(host))

    def __setitem__(self, key, value):
        self._host[_unwrap(key)] = _unwrap(value)

    def __repr__(self):
        return f"DeviceArray({self._host!r})"

    def __deepcopy__(self, memo):
        return DeviceArray(self._host.copy())


for _name in ("shape", "dtype", "ndim", "size", "strides", "itemsize", "nbytes", "flags"):
    setattr(DeviceArray, _name, property(lambda self, n=_name: getattr(self._host, n)))
for _name in ("T", "mT", "real", "imag"):
    setattr(DeviceArray, _name, property(lambda self, n=_name: _wrap(getattr(self._host, n))))
for _name in (
    "astype",
    "reshape",
    "copy",
    "transpose",
    "swapaxes",
    "ravel",
    "flatten",
    "squeeze",
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "any",
    "all",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
    "argsort",
    "conj",
    "conjugate",
    "repeat",
    "take",
    "clip",
    "nonzero",
    "view",
    "round",
    "std",
    "var",
    "diagonal",
    "dot",
    "fill",
    "sort",
    "trace",
):
    setattr(DeviceArray, _name, _lifted(getattr(np.ndarray, _name)))
for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
):
    for _form in (f"__{_name}__", f"__r{_name}__", f"__i{_name}__"):
        setattr(DeviceArray, _form, _lifted(getattr(np.ndarray, _form)))
for _name in ("neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(DeviceArray, f"__{_name}__", _lifted(getattr(np.ndarray, f"__{_name}__")))
DeviceArray.__hash__ = None
DeviceArray.item = lambda self, *args: self._host.item(*args)
DeviceArray.tolist = lambda self: self._host.tolist()


class _Function:
    """A function of the namespace, with the methods of a ufunc where NumPy's is one."""

    def __init__(self, function):
        self._call = _lifted(function)
        for name in ("at", "reduce", "accumulate", "outer", "reduceat"):
            if isinstance(function, np.ufunc):
                setattr(self, name, _lifted(getattr(function, name)))
        self.__name__ = function.__name__

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)


class _Namespace(types.ModuleType):
    """NumPy's names (or a module's) for device arrays."""

    def __init__(self, name: str, host):
        super().__init__(name)
        self._host = host

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._host, name)
        if isinstance(value, types.ModuleType):
            value = _Namespace(f"{self.__name__}.{name}", value)
        elif not isinstance(value, type) and callable(value):
            value = _Function(value)
        self.__dict__[name] = value
        return value


xp = _Namespace("fake_gpu", np)
xp.ndarray = DeviceArray
xp.asnumpy = lambda array: _unwrap(array).copy()


def _receive(function):
    """`asarray` and `array` are the way onto the device: they take NumPy arrays too."""

    def call(value, *args, **kwargs):
        host = value._host if isinstance(value, DeviceArray) else value
        return DeviceArray(np.asarray(function(host, *args, **kwargs)))

    return call


xp.asarray = _receive(np.asarray)
xp.array = _receive(np.array)


def _special():
    import scipy.special

    return _Namespace("fake_gpu.special", scipy.special)


xp.special = _special()


def install() -> str:
    """Register the device; returns its name."""
    device.register("fake_gpu", DeviceArray, xp)
    return "fake_gpu"


def moved(value, place: str):
    """Arguments on a device; lists, tuples and dicts of them, too."""
    if isinstance(value, torch.Tensor):
        new = value.detach().to(place)
        return new.requires_grad_() if value.requires_grad else new
    return tree_map_only(torch.Tensor, lambda t: moved(t, place), value)


def same_there(program, *given, place: str = "fake_gpu") -> None:
    """A program gives on a device what it gives on the CPU: results and gradients, and all of
    their parts are there."""
    ours = moved(given, place)
    expected, found = _results(program, moved(given, "cpu")), _results(program, ours)
    assert len(expected) == len(found)
    for a, b in zip(found, expected):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert a.layout is b.layout and a.dtype is b.dtype and a.device.type == place
        if not isinstance(b, PartsTensor):
            _compare(a, b, place)
            continue
        assert a.meta() == b.meta()
        for name in b.names:
            x, y = getattr(a, name), getattr(b, name)
            assert (x is None) == (y is None), name
            if y is not None and y.ndim and y.numel():  # numbers and sizes may be anywhere
                _compare(x, y, place)


def _compare(x, y, place: str) -> None:
    assert x.device.type == place and x.shape == y.shape and x.dtype is y.dtype
    there, here = x.detach().cpu().numpy(), y.detach().numpy()
    off = 100 * np.finfo(here.dtype).eps if here.dtype.kind in "fc" else 0
    np.testing.assert_allclose(there, here, rtol=off, atol=off)


def _results(program, given) -> list:
    """What a program returns, and the gradients of its arguments."""
    out = tree_leaves(program(*given))
    leaves = [t for t in tree_leaves(given) if isinstance(t, torch.Tensor) and t.requires_grad]
    total = sum(_square(o) for o in out if isinstance(o, torch.Tensor) and o.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    return out + [leaf.grad for leaf in leaves]


def _square(out):
    """A number that depends on all elements of a result."""
    values = out.values_with_history if isinstance(out, PartsTensor) else out
    return (values * values.conj()).real.sum()
