"""`GradScaler`: a loss times a large number, so that small float16 gradients do not vanish.

Gradients are divided by it again before the optimizer sees them.  A step whose gradients are not
finite is left out and the number halved; after many good ones it is doubled.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor, is_buffer, make
from ..memory.versions import mark_written

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """What has been done with an optimizer since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh() -> dict:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses and unscales gradients; disabled it passes everything through."""

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16,
                 growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        from .autocast_mode import is_autocast_available

        self._device = device
        self._enabled = enabled
        if enabled and not is_autocast_available(device):
            warnings.warn(f"GradScaler is enabled, but there is no device of type '{device}' here; "
                          "it stays off", UserWarning, stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if not growth_factor > 1.0:
            raise errors.BadValue(f"The growth factor must be > 1.0, got {growth_factor}")
        if not backoff_factor < 1.0:
            raise errors.BadValue(f"The backoff factor must be < 1.0, got {backoff_factor}")
        self._init_scale, self._scale = init_scale, None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._per_optimizer_states: dict[int, dict] = defaultdict(_fresh)

    def _scaling(self) -> Tensor:
        if self._scale is None:
            self._scale = make(np.asarray(self._init_scale, np.float32))
        return self._scale

    def scale(self, outputs) -> Any:
        """A tensor, or nested iterables of tensors, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scaling()
        if isinstance(outputs, Iterable):
            scaled = [self.scale(value) for value in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)
        raise errors.BadValue("scale() wants a Tensor or an iterable of Tensors, got "
                              f"{type(outputs).__name__}")

    def unscale_(self, optimizer) -> None:
        """Divide the gradients of an optimizer by the scale, for example before clipping."""
        if not self._enabled:
            return
        self._check_scale("unscale_")
        status = self._per_optimizer_states[id(optimizer)]
        if status["stage"] is OptState.UNSCALED:
            raise errors.OrderError(
                "unscale_() has already been called on this optimizer since the last update().")
        if status["stage"] is OptState.STEPPED:
            raise errors.OrderError("unscale_() is being called after step().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]
                 if p.grad is not None]
        if any(g.dtype is dt.float16 for g in grads):
            raise errors.DTypeError(errors.text(
                "Attempting to unscale FP16 gradients.",
                cure="keep the parameters in float32 and let autocast convert them"))
        grads = [g if is_buffer(g._payload) or not g._payload.composed else g.own_values()
                 for g in grads]
        inverse, found = 1.0 / self.get_scale(), {}
        for g in grads:
            array = g._payload
            bad = not bool(np.isfinite(array).all())
            found[g.device] = max(found.get(g.device, 0.0), float(bad))
            with np.errstate(over="ignore", invalid="ignore"):
                array *= np.asarray(inverse, array.dtype)
        mark_written(*grads)
        status["found_inf_per_device"] = {
            d: make(np.asarray(v, np.float32)) for d, v in found.items()}
        status["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs) -> Any:
        """`optimizer.step()`, unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise errors.ArgumentError("Closure use is not currently supported if GradScaler is "
                                       "enabled.")
        self._check_scale("step")
        status = self._per_optimizer_states[id(optimizer)]
        if status["stage"] is OptState.STEPPED:
            raise errors.OrderError("step() has already been called since the last update().")
        if status["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not status["found_inf_per_device"]:
            raise errors.OrderError("No inf checks were recorded for this optimizer.")
        bad = any(v.item() for v in status["found_inf_per_device"].values())
        result = None if bad else optimizer.step(*args, **kwargs)
        status["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Move the scale, after the steps of all optimizers."""
        if not self._enabled:
            return
        scale = self._check_scale("update")
        if new_scale is not None:
            value = new_scale.item() if isinstance(new_scale, Tensor) else float(new_scale)
        else:
            found = [v for s in self._per_optimizer_states.values()
                     for v in s["found_inf_per_device"].values()]
            if not found:
                raise errors.OrderError("No inf checks were recorded prior to update.")
            value = self._moved(scale.item(), any(v.item() for v in found))
        scale._payload[...] = value
        mark_written(scale)
        self._per_optimizer_states.clear()

    def _moved(self, value: float, bad: bool) -> float:
        if bad:
            self._growth_tracker = 0
            return value * self._backoff_factor
        self._growth_tracker += 1
        if self._growth_tracker < self._growth_interval:
            return value
        self._growth_tracker = 0
        grown = float(np.float32(value) * np.float32(self._growth_factor))
        return grown if math.isfinite(grown) else value

    def _check_scale(self, name: str) -> Tensor:
        if self._scale is None:
            raise errors.OrderError(errors.text(
                f"Attempted {name} but _scale is None.", cure="call scale(loss).backward() first"))
        return self._scale

    def is_enabled(self) -> bool:
        """Does it do anything?"""
        return self._enabled

    def get_scale(self) -> float:
        """The scale as a number; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def state_dict(self) -> dict:
        """What a checkpoint must hold; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where `state_dict` was taken."""
        if not self._enabled:
            return
        if not state_dict:
            raise errors.OrderError("The source state dict is empty, possibly because it was saved "
                                    "from a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale._payload[...] = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self) -> dict:
        if self._enabled and self._per_optimizer_states:
            raise errors.OrderError("A GradScaler can only be pickled at the beginning of an "
                                    "iteration, or at the end after scaler.update().")
        return {**self.__dict__, "_per_optimizer_states": None}

    def __setstate__(self, kept: dict) -> None:
        self.__dict__.update(kept)
        self._per_optimizer_states = defaultdict(_fresh)


def _property(attribute: str):
    """`get_...` and `set_...` of a constant; a disabled scaler has the neutral value."""
    neutral = {"_growth_factor": 1.0, "_backoff_factor": 1.0, "_growth_interval": 0,
               "_growth_tracker": 0}[attribute]

    def get(self):
        return getattr(self, attribute) if self._enabled else neutral

    if attribute.endswith("interval"):
        def put(self, new_interval: int) -> None:
            setattr(self, attribute, new_interval)
    else:
        def put(self, new_factor: float) -> None:
            setattr(self, attribute, new_factor)
    return get, put


for _name in ("growth_factor", "backoff_factor", "growth_interval"):
    _get, _put = _property(f"_{_name}")
    setattr(GradScaler, f"get_{_name}", _get)
    setattr(GradScaler, f"set_{_name}", _put)
GradScaler._get_growth_tracker = _property("_growth_tracker")[0]
