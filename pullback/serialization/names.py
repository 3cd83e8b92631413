"""What classes and functions are called inside of files: PyTorch's names, both ways.

A file that this package writes says `torch.nn Linear`, so that PyTorch reads it; a file of
PyTorch's says `torch.nn.modules.linear Linear`, which is looked for here.  Read next:
`restricted.py`, which only knows the names that `rebuild.py` lists.
"""

from __future__ import annotations

import importlib
import sys

from .. import errors
from ..array.dtype import by_name

OWN = __package__.partition(".")[0]

# storage classes by dtype; dtypes that are not here have no storage class of their own
STORAGES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
    "qint8": "QInt8Storage",
    "quint8": "QUInt8Storage",
    "qint32": "QInt32Storage",
    "quint4x2": "QUInt4x2Storage",
    "quint2x4": "QUInt2x4Storage",
}


class Name:
    """A name that is written as it stands; it is never looked up or called here."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def __call__(self, *args):  # a pickler wants what is called at load time to be callable
        raise TypeError(f"{self.module}.{self.name} is only a name")

    def __repr__(self) -> str:
        return f"<name {self.module}.{self.name}>"


def written(obj) -> tuple[str, str] | None:
    """PyTorch's (module, name) of something of this package, None for anything else."""
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if name is None or not isinstance(module, str) or module.partition(".")[0] != OWN:
        return None
    parts = module.split(".")
    for end in range(1, len(parts) + 1):  # the shortest path is the public one
        place = sys.modules.get(".".join(parts[:end]))
        if place is not None and _member(place, name) is obj:
            return ".".join(["torch", *parts[1:end]]), name
    return None


def found(module: str, name: str):
    """What `torch.<...>.<name>` is here: in the module of that path, or in one above it."""
    parts = module.split(".")[1:]
    for end in range(len(parts), -1, -1):
        try:
            place = importlib.import_module(".".join([OWN, *parts[:end]]))
        except ImportError:
            continue
        value = _member(place, name)
        if value is not None:
            return value
    raise errors.UnsafePickle(
        errors.text(
            f"the file names {module}.{name}, which does not exist here ({errors.user_line(2)})",
            cure="save the state_dict() instead of the object, in the program that wrote the file",
        )
    )


def _member(place, name: str):
    for piece in name.split("."):
        place = getattr(place, piece, None)
    return place


def dtype_named(name: str):
    """The dtype called `name`, None if there is none here."""
    try:
        return by_name(name)
    except KeyError:
        return None
