"""Adamax: Adam with a running maximum in place of the average of squares."""

from __future__ import annotations

from ..core.handle import Tensor
from .descent import Descent, check, check_betas, functional
from .formula import absolute, descent, lerp, maximum
from .optimizer import ParamsT
from .update import Rule

__all__ = ["Adamax", "adamax"]


def _formula(p, g, s, o):
    p, g = descent(p, g, o)
    s.exp_avg = lerp(s.exp_avg, g, 1 - o.beta1)
    s.exp_inf = maximum(s.exp_inf * o.beta2, absolute(g) + o.eps)
    return p - s.exp_avg * (o.lr / (1 - o.beta1**o.step)) / s.exp_inf


class Adamax(Descent):
    """Steps scaled by a running average of gradients and the largest recent one."""

    rule = Rule(_formula)
    pairs = {"betas": ("beta1", "beta2")}
    held = ("exp_avg", "exp_inf")

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check(lr, eps=eps)
        check_betas(betas)
        check(weight_decay=weight_decay)
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach,
            maximize=maximize, differentiable=differentiable, capturable=capturable))


_LISTS = {"exp_avgs": "exp_avg", "exp_infs": "exp_inf", "state_steps": "step"}


def adamax(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
           exp_infs: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
           maximize: bool = False, differentiable: bool = False, capturable: bool = False,
           has_complex: bool = False, *, eps: float, beta1: float, beta2: float, lr: float,
           weight_decay: float) -> None:
    """One step of Adamax on lists of tensors."""
    functional(Adamax, _LISTS, locals())
