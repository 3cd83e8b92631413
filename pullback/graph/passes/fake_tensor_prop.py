"""`FakeTensorProp`: run a graph on tensors without data and note on each node what it gives."""

from __future__ import annotations

from typing import Any

from ...core.handle import Tensor
from ..fake_mode import FakeTensorMode, is_fake
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..make_fx import metadata
from ..node import Node


class FakeTensorProp(Interpreter):
    """Fills `meta["val"]` and `meta["tensor_meta"]`."""

    def __init__(self, module: Any, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def _faked(self, value: Any) -> Any:
        return self._mode.from_tensor(value) if isinstance(value, Tensor) else value

    def _own(self, value: Any) -> Any:
        """A tensor of the module; one that is fake already belongs to the mode that it is of."""
        return value if is_fake(value) else self._faked(value)

    def get_attr(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._own(super().get_attr(target, args, kwargs))

    def call_module(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        module = self.fetch_attr(target)
        if isinstance(module, GraphModule):
            return FakeTensorProp(module, self._mode).propagate_dont_convert_inputs(*args)
        if not hasattr(module, "named_parameters"):
            return module(*args, **kwargs)
        from ...func import functional_call  # a layer: with fakes for its parameters

        state = {n: self._own(t) for n, t in (*module.named_parameters(),
                                                *module.named_buffers())}
        return functional_call(module, state, args, kwargs)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        n.meta["val"] = result
        found = metadata(result)
        if found is not None and found != []:
            n.meta["tensor_meta"] = found
        return result

    def propagate(self, *args: Any) -> Any:
        """Run on example inputs."""
        return self.propagate_dont_convert_inputs(*[self._faked(a) for a in args])

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run on fake inputs."""
        with self._mode:
            return self.run(*args)
