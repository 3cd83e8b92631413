"""`LoggingTensor` and `LoggingTensorMode`: operators as lines of text.

    with capture_logs() as lines:
        x = LoggingTensor(torch.ones(2), requires_grad=True)
        log_input("x", x)
        (x * x).sum().backward()

Tensors are numbered as they come up: `$2: f32[2] = torch._ops.aten.mul.Tensor($0, $0)`.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

from .. import pytree
from ..core.handle import Tensor
from ..utils._python_dispatch import TorchDispatchMode

__all__ = ["LoggingTensor", "LoggingTensorMode", "LoggingTensorReentrant", "capture_logs",
           "capture_logs_with_logging_tensor_mode", "log_input"]

_KINDS = {
    "bfloat16": "bf16", "float64": "f64", "float32": "f32", "float16": "f16", "complex32": "c32",
    "complex64": "c64", "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "bool": "b8", "uint8": "u8",
}  # fmt: skip
_logs: list[_Log] = []


class _Log:
    """The lines of one block, and the numbers of its tensors."""

    def __init__(self, with_types: bool) -> None:
        self.lines: list[str] = []
        self.with_types = with_types
        self._numbers: dict[int, tuple[Any, int]] = {}
        self._next = 0

    def number(self, t: Tensor) -> int:
        known = self._numbers.get(id(t))
        if known is None or known[0]() is not t:
            known = self._numbers[id(t)] = weakref.ref(t), self._next
            self._next += 1
        return known[1]

    def shown(self, value: Any, typed: bool = False) -> Any:
        if isinstance(value, Tensor):
            kind = _KINDS.get(value.dtype.name, value.dtype.name)
            sizes = ", ".join(map(str, value.shape))
            return f"${self.number(value)}" + (f": {kind}[{sizes}]" if typed else "")
        if isinstance(value, (list, tuple)):
            items = [self.shown(v, typed) for v in value]
            return tuple(items) if isinstance(value, tuple) else items
        return repr(value)

    def note(self, name: str, args: tuple, kwargs: dict, out: Any) -> None:
        given = [str(self.shown(a)) for a in args]
        given += [f"{k}={self.shown(v)}" for k, v in kwargs.items()]
        self.lines.append(f"{self.shown(out, self.with_types)} = {name}({', '.join(given)})")


def _note(func: Any, args: tuple, kwargs: dict, out: Any) -> None:
    for log in _logs:
        log.note(f"torch._ops.{func!r}", args, kwargs, out)


def log_input(name: str, var: Tensor) -> None:
    """Give a tensor its number under a name."""
    for log in _logs:
        log.lines.append(f"{log.shown(var, log.with_types)} = input({name!r})")


@contextlib.contextmanager
def capture_logs(is_mode: bool = False, python_tb: bool = False, script_tb: bool = False,
                 cpp_tb: bool = False) -> Iterator[list[str]]:
    """A block whose operators on logging tensors, or under a logging mode, are written down."""
    log = _Log(with_types=True)
    _logs.append(log)
    try:
        yield log.lines
    finally:
        _logs.remove(log)


class LoggingTensor(Tensor):
    """A wrapper around a tensor that writes down what operators do to it."""

    elem: Tensor

    @staticmethod
    def __new__(cls, elem: Tensor, *args: Any, **kwargs: Any) -> LoggingTensor:
        tracked = kwargs.get("requires_grad", False)
        new = Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(),
            dtype=elem.dtype, layout=elem.layout, device=elem.device, requires_grad=tracked)
        new.elem = elem.detach() if tracked else elem
        return new

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __repr__(self) -> str:  # type: ignore[override]
        return super().__repr__(tensor_contents=repr(self.elem))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inside, named = pytree.tree_map_only(cls, lambda t: t.elem, (args, kwargs or {}))
        with cls.context():
            out = pytree.tree_map_only(Tensor, cls, func(*inside, **named))
        _note(func, args, kwargs or {}, out)
        return out

    context = contextlib.nullcontext


class LoggingTensorReentrant(LoggingTensor):
    """The same; what operators do inside asks once more."""

    @staticmethod
    def context():
        from ..overrides import enable_reentrant_dispatch

        return enable_reentrant_dispatch()


class LoggingTensorMode(TorchDispatchMode):
    """A block whose operators are written down."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        _note(func, args, kwargs or {}, out)
        return out


@contextlib.contextmanager
def capture_logs_with_logging_tensor_mode(*tracebacks: bool) -> Iterator[list[str]]:
    """A block whose operators are written down, whatever they are called with."""
    with LoggingTensorMode(), capture_logs(True) as lines:
        yield lines
