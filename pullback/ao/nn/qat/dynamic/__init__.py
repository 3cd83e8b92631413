"""The linear layer for training that will round its input by itself."""

from __future__ import annotations

from typing import Any

from .. import modules


class Linear(modules.Linear):
    """A linear layer that rounds its weight; its observer looks at the present input alone."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None,
                 device: Any = None, dtype: Any = None):
        from ....quantization.qconfig import _activation_is_memoryless

        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        if not _activation_is_memoryless(qconfig):
            raise ValueError("Dynamic QAT requires a memoryless observer. This means a "
                             "MovingAverage observer with averaging constant equal to 1")


__all__ = ["Linear"]
