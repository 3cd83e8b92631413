"""Questions about quantised tensors as functions: `torch.q_scale(x)`."""

from __future__ import annotations

from ..core.handle import Tensor


def _asked(name: str):
    def function(input: Tensor):
        return getattr(input, name)()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"What `input.{name}()` says of a quantised tensor."
    return function


int_repr, q_scale, q_zero_point = map(_asked, ("int_repr", "q_scale", "q_zero_point"))
q_per_channel_axis = _asked("q_per_channel_axis")
q_per_channel_scales = _asked("q_per_channel_scales")
q_per_channel_zero_points = _asked("q_per_channel_zero_points")
