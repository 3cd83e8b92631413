"""`FakeCopyMode`: copies of modules whose tensors have no data."""

from __future__ import annotations

from typing import Any

from ..core.handle import Tensor
from ..graph.fake_mode import FakeTensorMode
from ..overrides import TorchFunctionMode


class FakeCopyMode(TorchFunctionMode):
    """A block in which copies are fakes: `copy.deepcopy` of a module takes no memory."""

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        self.fake_mode = fake_mode

    def __torch_function__(self, func: Any, types: Any, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        if func is Tensor.clone:
            return self.fake_mode.from_tensor(args[0], static_shapes=True)
        if func is Tensor.__deepcopy__:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor, static_shapes=True)
            return memo[id(tensor)]
        return func(*args, **(kwargs or {}))
