"""Stand-ins for operators, dtypes and example tensors, so that graphs are tested on their own.

`aten.mul.Tensor` is a callable with `str()` "aten.mul.Tensor" and an `op` that carries cost and
purity, as entries of the operator table have them. It computes with NumPy.
"""

import math

import numpy as np

from pullback.core.op import Op

KERNELS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sin": np.sin,
    "cos": np.cos,
    "neg": np.negative,
    "exp": np.exp,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "mm": np.matmul,
    "sum": lambda x, dim=None, keepdim=False, dtype=None: np.sum(
        x, None if dim is None else tuple(dim), keepdims=keepdim
    ),
    "view": lambda x, size: np.reshape(x, size),
    "expand": lambda x, size: np.broadcast_to(x, size),
    "permute": lambda x, dims: np.transpose(x, dims),
    "t": np.transpose,
    "_to_copy": lambda x, dtype=None: np.array(x),
    "clone": lambda x, memory_format=None: np.array(x),
    "split": lambda x, size, dim=0: [
        np.take(x, range(k, k + size), dim) for k in range(0, x.shape[dim], size)
    ],
    "var_mean": lambda x: (np.var(x), np.mean(x)),
    "rand": lambda size, **kwargs: np.random.rand(*size),
    "bernoulli": lambda x: (np.random.rand(*np.shape(x)) < x).astype(float),
    "zeros": lambda size, **kwargs: np.zeros(size),
    "arange": lambda end, **kwargs: np.arange(float(end)),
    "add_": lambda x, y: np.add(x, y, out=x),
    "copy_": lambda x, y: np.copyto(x, y) or x,
    "cat": lambda tensors, dim=0: np.concatenate(tensors, dim),
    "sym_size": lambda x, dim: x.shape[dim],
    "full_like": lambda x, value: np.full_like(x, value),
}

COSTS = {
    **dict.fromkeys(("mm", "convolution", "var_mean"), "heavy"),
    **dict.fromkeys(("view", "expand", "permute", "t", "split", "detach", "slice"), "view"),
    **dict.fromkeys(("sum", "mean"), "reduce"),
    **dict.fromkeys(("rand", "bernoulli"), "random"),
    **dict.fromkeys(("zeros", "arange", "full_like"), "create"),
}


NOOPS = ("view", "expand", "permute", "t", "slice", "detach", "_to_copy", "clone")


class Entry(Op):
    """The table entry behind an overload."""

    def __init__(self, name):
        self.cost = COSTS.get(name, "cheap")
        self.pure = not name.endswith("_")
        self.noop = name in NOOPS
        self.flops = {"mm": "product(0)", "convolution": "convolution"}.get(name)
        self.intensive = name in ("mm", "convolution")


class Overload:
    """One operator overload; equal by identity, pickled by name."""

    def __init__(self, name, overload):
        self.name, self.overload = name, overload
        self.op = Entry(name)
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return KERNELS[self.name](*args, **kwargs)

    def __repr__(self):
        return f"aten.{self.name}.{self.overload}"

    def __reduce__(self):
        return find, (self.name, self.overload)


class Packet:
    """All overloads of one operator."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(overload)
        found = self.__dict__[overload] = Overload(self.name, overload)
        return found


class Namespace:
    """`aten`: packets by name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = self.__dict__[name] = Packet(name)
        return found


aten = Namespace()


def find(name, overload):
    return getattr(getattr(aten, name), overload)


class Constant:
    """A dtype, layout or memory format: prints as `torch.<name>`."""

    def __init__(self, name, itemsize=0):
        self.name, self.itemsize = name, itemsize

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return constant, (self.name,)


_SIZES = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16,
    "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "bool": 1,
    "strided": 0, "contiguous_format": 0,
}  # fmt: skip
_constants = {name: Constant(name, size) for name, size in _SIZES.items()}


def constant(name):
    return _constants[name]


class device:
    """A device, printed as PyTorch prints one."""

    def __init__(self, type="cpu"):
        self.type = type

    def __repr__(self):
        return f"device(type={self.type!r})"

    def __str__(self):
        return self.type

    def __eq__(self, other):
        return isinstance(other, device) and self.type == other.type

    def __hash__(self):
        return hash(self.type)


class Example:
    """What `meta["val"]` holds: the facts about a tensor, without its data."""

    def __init__(self, shape, dtype="float32", strides=None):
        self.shape = tuple(shape)
        self.dtype = constant(dtype)
        self.device = device("cpu")
        self.ndim = len(self.shape)
        if strides is None:
            strides = [math.prod(max(n, 1) for n in self.shape[k + 1 :]) for k in range(self.ndim)]
        self._strides = tuple(strides)

    def stride(self):
        return self._strides

    def numel(self):
        return math.prod(self.shape)
