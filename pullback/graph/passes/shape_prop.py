"""`ShapeProp`: run a graph once and note on each node what its value is like."""

from __future__ import annotations

from typing import Any

from ...core.handle import Tensor
from ..interpreter import Interpreter
from ..make_fx import TensorMetadata, metadata
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What is noted of a tensor."""
    found = metadata(result)
    return found if include_contiguity else found._replace(memory_format=None)


class ShapeProp(Interpreter):
    """Fills `meta["tensor_meta"]` and `meta["type"]`; with a `fake_mode` nothing is computed."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        kept: list = []

        def described(value: Any) -> Any:
            if isinstance(value, Tensor):
                kept.append(value)
                return metadata(value)
            return value

        found = map_aggregate(_plain(result), described)
        if kept:
            n.meta["tensor_meta"] = found
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run on example inputs."""
        if self.fake_mode is None:
            return self.run(*args)
        with self.fake_mode:
            fakes = [self.fake_mode.from_tensor(a) if hasattr(a, "_edge") else a for a in args]
            return self.run(*fakes)


def _plain(value: Any) -> Any:
    """Named tuples as tuples."""
    return tuple([_plain(v) for v in value]) if isinstance(value, tuple) else value
