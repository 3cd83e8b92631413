"""Adadelta: steps in the units of the parameters, without a learning rate of their own."""

from __future__ import annotations

from ..core.handle import Tensor
from .descent import Descent, check, functional
from .formula import descent, sqrt
from .optimizer import ParamsT
from .update import Rule

__all__ = ["Adadelta", "adadelta"]


def _formula(p, g, s, o):
    p, g = descent(p, g, o)
    s.square_avg = s.square_avg * o.rho + g * g * (1 - o.rho)
    change = sqrt(s.acc_delta + o.eps) / sqrt(s.square_avg + o.eps) * g
    s.acc_delta = s.acc_delta * o.rho + change * change * (1 - o.rho)
    return p - change * o.lr


class Adadelta(Descent):
    """Gradients scaled by the ratio of recent changes and recent gradients."""

    rule = Rule(_formula)
    held = ("square_avg", "acc_delta")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1.0, rho: float = 0.9,
                 eps: float = 1e-6, weight_decay: float = 0, foreach: bool | None = None, *,
                 capturable: bool = False, maximize: bool = False,
                 differentiable: bool = False) -> None:
        check(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check(eps=eps, weight_decay=weight_decay)
        super().__init__(params, dict(
            lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize,
            capturable=capturable, foreach=foreach, differentiable=differentiable))


_LISTS = {"square_avgs": "square_avg", "acc_deltas": "acc_delta", "state_steps": "step"}


def adadelta(params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor],
             acc_deltas: list[Tensor], state_steps: list[Tensor], capturable: bool = False,
             foreach: bool | None = None, differentiable: bool = False,
             has_complex: bool = False, *, lr: float, rho: float, eps: float,
             weight_decay: float, maximize: bool) -> None:
    """One step of Adadelta on lists of tensors."""
    functional(Adadelta, _LISTS, locals())
