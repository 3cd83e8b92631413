"""Rprop: only the signs of the gradients count."""

from __future__ import annotations

from ..core.handle import Tensor
from .descent import Descent, check, counter, full, functional, zeros
from .formula import maximum, minimum, sign, where
from .optimizer import ParamsT
from .update import Rule

__all__ = ["Rprop", "rprop"]


def _formula(p, g, s, o):
    g = -g if o.maximize else g
    agrees = g * s.prev
    size = s.step_size
    size = where(agrees > 0, size * o.etaplus, where(agrees < 0, size * o.etaminus, size))
    s.step_size = minimum(maximum(size, o.step_size_min), o.step_size_max)
    s.prev = where(agrees < 0, 0.0, g)
    return p - sign(s.prev) * s.step_size


class Rprop(Descent):
    """Step sizes that grow while a gradient keeps its sign and shrink when it changes."""

    rule = Rule(_formula)
    pairs = {"etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}
    held = ("prev", "step_size")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2,
                 etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False) -> None:
        check(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, dict(
            lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable))

    def start(self, p: Tensor, group: dict) -> dict:
        return {"step": counter(0.0, group), "prev": zeros(p),
                "step_size": full(p, float(group["lr"]))}


_LISTS = {"prevs": "prev", "step_sizes": "step_size", "state_steps": "step"}


def rprop(params: list[Tensor], grads: list[Tensor], prevs: list[Tensor],
          step_sizes: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
          capturable: bool = False, maximize: bool = False, differentiable: bool = False,
          has_complex: bool = False, *, step_size_min: float, step_size_max: float,
          etaminus: float, etaplus: float) -> None:
    """One step of Rprop on lists of tensors."""
    functional(Rprop, _LISTS, locals())
