"""`ProxyTorchDispatchMode` and `PythonKeyTracer`: a graph of the operators that run in a block.

`make_fx` captures a function; with these a program captures what runs between two lines:

    tracer = PythonKeyTracer()
    tracer.root, tracer.graph = Module(), Graph(tracer_cls=PythonKeyTracer)
    track_tensor_tree(x, tracer.create_proxy("placeholder", "x", (), {}), constant=None,
                      tracer=tracer)
    with ProxyTorchDispatchMode(tracer, "real"):
        y = f(x)

Tensors that the tracer has not met become attributes of its root.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import errors
from ..core.handle import Tensor
from ..graph.graph import Graph
from ..graph.make_fx import fake_of
from ..graph.node import Node
from ..graph.proxy import Proxy
from ..graph.tracer import Tracer
from ..nn.module import Module
from ..utils._python_dispatch import TorchDispatchMode
from ..utils.weak import WeakTensorKeyDictionary

__all__ = ["ProxyTorchDispatchMode", "PythonKeyTracer", "get_proxy_slot", "set_proxy_slot",
           "track_tensor_tree"]
_NOTHING = object()
_MODES = ("real", "fake", "symbolic")


class _ProxyTensor(NamedTuple):
    """What stands for a tensor in a graph, and its value where that is a constant."""

    proxy: Proxy
    constant: Tensor | None


class PythonKeyTracer(Tracer):
    """A tracer that modules and attributes do not appear in: only calls of operators do."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.root, self.graph = Module(), Graph(tracer_cls=PythonKeyTracer)
        self.tensor_attrs: dict = {}
        self.tensor_tracker: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def call_module(self, m: Any, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """A module runs: what it calls is recorded."""
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict) -> Any:
        """An attribute is its value."""
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """What a call in the graph is given in the place of a value."""
        if not isinstance(a, Tensor):
            return super().create_arg(a)
        known = self.tensor_tracker.get(a)
        if known is not None:
            return known.proxy.node
        for name, own in (*self.root.named_parameters(), *self.root.named_buffers()):
            if own is a:
                return self._attribute(a, name)
        kind = "param" if type(a).__name__ == "Parameter" else "tensor"
        number = 0
        while hasattr(self.root, f"_{kind}_constant{number}"):
            number += 1
        setattr(self.root, f"_{kind}_constant{number}", a)
        return self._attribute(a, f"_{kind}_constant{number}")

    def _attribute(self, t: Tensor, name: str) -> Node:
        proxy = self.create_proxy("get_attr", name, (), {})
        track_tensor_tree(t, proxy, constant=t, tracer=self)
        return proxy.node


def set_proxy_slot(obj: Tensor, tracer: PythonKeyTracer, proxy: _ProxyTensor) -> None:
    """Let a tensor be known to a tracer."""
    tracer.tensor_tracker[obj] = proxy


def get_proxy_slot(obj: Tensor, tracer: PythonKeyTracer, default: Any = _NOTHING,
                   transform: Callable = lambda slot: slot) -> Any:
    """What stands for a tensor in a tracer's graph, as `transform` wants it."""
    known = tracer.tensor_tracker.get(obj)
    if known is not None:
        return transform(known)
    if default is _NOTHING:
        raise KeyError(f"a tensor of shape {list(obj.shape)} is not tracked by this tracer")
    return default


def track_tensor_tree(inner_res: Any, proxy_res: Any, *, constant: Any,
                      tracer: PythonKeyTracer) -> Any:
    """Let the tensors of a result be known to a tracer by the proxy of the result."""
    if isinstance(inner_res, Tensor):
        tracer.tensor_tracker[inner_res] = _ProxyTensor(proxy_res, constant)
        proxy_res.node.meta["val"] = fake_of(inner_res)
    elif isinstance(inner_res, (list, tuple, dict)):
        if isinstance(proxy_res, Proxy):
            proxy_res.node.meta.setdefault("val", _fakes(inner_res))
        for key in (inner_res if isinstance(inner_res, dict) else range(len(inner_res))):
            if isinstance(inner_res[key], (Tensor, list, tuple, dict)):
                track_tensor_tree(inner_res[key], proxy_res[key],
                                  constant=None if constant is None else constant[key],
                                  tracer=tracer)
    return inner_res


def _fakes(value: Any) -> Any:
    if isinstance(value, Tensor):
        return fake_of(value)
    return type(value)(map(_fakes, value)) if type(value) in (list, tuple) else value


class ProxyTorchDispatchMode(TorchDispatchMode):
    """A block whose operators are recorded by a tracer, and run."""

    enable_tracing = property(lambda self: True)

    def __init__(self, tracer: PythonKeyTracer, tracing_mode: str, pre_dispatch: bool = False,
                 _allow_fake_constant: bool = False, _error_on_data_dependent_ops: bool = True,
                 decomposition_table: dict | None = None) -> None:
        if tracing_mode not in _MODES:
            raise errors.BadValue(
                f"tracing_mode={tracing_mode!r} ({errors.user_line()}): one of {_MODES}")
        super().__init__()
        self.tracer, self.tracing_mode, self.pre_dispatch = tracer, tracing_mode, pre_dispatch
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops
        self.decomposition_table: dict = dict(decomposition_table or {})

    @contextlib.contextmanager
    def enable_decompositions(self, decomposition_table: dict | None) -> Iterator[dict]:
        """Another table of decompositions for a block."""
        before, self.decomposition_table = self.decomposition_table, decomposition_table or {}
        try:
            yield self.decomposition_table
        finally:
            self.decomposition_table = before

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Does it see operators after all modes of users?"""
        return True

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        apart = self.decomposition_table.get(func)
        if apart is not None:
            with self:
                found = apart(*args, **kwargs)
            if found is not NotImplemented:
                return found
        if func.name.partition(".")[0] in ("item", "_local_scalar_dense") and (
                self._error_on_data_dependent_ops and not self._known(args[0])):
            raise errors.DataDependentError(errors.text(
                f"a number was read from a tensor that is being traced ({errors.user_line()})",
                f"tensor: {args[0].dtype.name}{list(args[0].shape)}",
                "use where() or cond() instead of a Python condition"))
        proxy = self.tracer.create_proxy("call_function", func, args, kwargs)
        out = func(*args, **kwargs)
        return track_tensor_tree(out, proxy, constant=None, tracer=self.tracer)

    def _known(self, t: Tensor) -> bool:
        slot = self.tracer.tensor_tracker.get(t)
        return slot is None or slot.constant is not None
