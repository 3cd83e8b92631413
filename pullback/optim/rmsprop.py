"""RMSprop: steps scaled by a running average of squared gradients."""

from __future__ import annotations

from ..core.handle import Tensor
from . import sparse_rows
from .descent import Descent, check, functional
from .formula import descent, lerp, on, sqrt
from .optimizer import ParamsT
from .update import Rule

__all__ = ["RMSprop", "rmsprop"]


def _formula(p, g, s, o):
    p, g = descent(p, g, o)
    s.square_avg = s.square_avg * o.alpha + g * g * (1 - o.alpha)
    variance = s.square_avg
    if o.centered:
        s.grad_avg = lerp(s.grad_avg, g, 1 - o.alpha)
        variance = variance - s.grad_avg * s.grad_avg
    scale = sqrt(variance) + o.eps
    if on(o.momentum):
        s.momentum_buffer = s.momentum_buffer * o.momentum + g / scale
        return p - s.momentum_buffer * o.lr
    return p - g * o.lr / scale


class RMSprop(Descent):
    """Gradients divided by the root of a running average of their squares."""

    rule = Rule(_formula)

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, alpha: float = 0.99,
                 eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
                 centered: bool = False, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False, *,
                 sparse: str | None = None) -> None:
        check(lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, dict(
            lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered,
            weight_decay=weight_decay, capturable=capturable, foreach=foreach, maximize=maximize,
            differentiable=differentiable, **sparse_rows.option(sparse)))

    def forgets(self, group: dict) -> dict:
        return {"square_avg": group["alpha"], "grad_avg": group["alpha"],
                "momentum_buffer": group["momentum"]}

    @staticmethod
    def buffers(group: dict) -> tuple[str, ...]:
        return ("square_avg", *(["momentum_buffer"] if on(group["momentum"]) else []),
                *(["grad_avg"] if group["centered"] else []))


_LISTS = {"square_avgs": "square_avg", "grad_avgs": "grad_avg",
          "momentum_buffer_list": "momentum_buffer", "state_steps": "step"}


def rmsprop(params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor],
            grad_avgs: list[Tensor], momentum_buffer_list: list[Tensor],
            state_steps: list[Tensor], foreach: bool | None = None, maximize: bool = False,
            differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *,
            lr: float, alpha: float, eps: float, weight_decay: float, momentum: float,
            centered: bool) -> None:
    """One step of RMSprop on lists of tensors."""
    functional(RMSprop, _LISTS, locals())
