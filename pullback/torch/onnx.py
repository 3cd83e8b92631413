"""`onnx`: the names under which packages describe their operators to an exporter.

Descriptions are kept, and `export` refuses: nothing here writes that format.
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable

from .. import errors
from ..absent import getter as _getter

__all__ = [
    "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "export", "is_in_onnx_export",
    "register_custom_op_symbolic", "unregister_custom_op_symbolic",
]  # fmt: skip

symbolics: dict[tuple[str, int], Callable] = {}  # (operator, version) -> description

TrainingMode = enum.IntEnum("TrainingMode", "EVAL PRESERVE TRAINING", module=__name__, start=0)
OperatorExportTypes = enum.IntEnum(
    "OperatorExportTypes", "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK ONNX_FALLTHROUGH", module=__name__,
    start=0,
)
TensorProtoDataType = enum.IntEnum(
    "TensorProtoDataType",
    """UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64
    COMPLEX64 COMPLEX128 BFLOAT16""",
    module=__name__,
    start=0,
)


def is_in_onnx_export() -> bool:
    """Never: there is no exporter."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int):
    """Keep the description of an operator."""
    if symbolic_name.count("::") != 1:
        raise errors.BadValue(errors.text(
            f"{symbolic_name!r} does not name an operator ({errors.user_line(2)})",
            cure="write the domain and the name: 'mine::twice'"))
    symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget the description of an operator."""
    symbolics.pop((symbolic_name, opset_version), None)


def export(*args, **kwargs):
    """Refuses: nothing here writes ONNX files."""
    raise errors.NotInThisBuild(errors.text(
        f"onnx.export: this package does not write ONNX files ({errors.user_line(2)})",
        cure="load the state_dict with PyTorch and export it there"))


def _parse_args(*descriptors: str):
    """A decorator for descriptions: says which arguments are values, numbers or strings."""
    return lambda function: function


def _below(name: str, **names) -> types.ModuleType:
    module = sys.modules[f"{__name__}.{name}"] = types.ModuleType(f"{__name__}.{name}")
    vars(module).update(names)
    return module


__path__: list[str] = []  # it has modules below it
symbolic_helper = _below("symbolic_helper", parse_args=_parse_args)
for _version in range(9, 21):
    globals()[f"symbolic_opset{_version}"] = _below(f"symbolic_opset{_version}")


__getattr__ = _getter(__name__)
