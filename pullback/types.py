"""Names for annotations, as in `torch.types`."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from .array.device import Device as _device
from .array.dtype import DType as _dtype  # noqa: F401
from .array.layout import layout as _layout  # noqa: F401
from .array.size import Size
from .core.handle import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

_bool, _int, _float = builtins.bool, builtins.int, builtins.float
_complex, _str, _bytes = builtins.complex, builtins.str, builtins.bytes
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int]
_dispatchkey: TypeAlias = str
_Number = (bool, int, float)
Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
py_sym_types: tuple = ()
PySymType: TypeAlias = int | float | bool
Storage: TypeAlias = Any
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
