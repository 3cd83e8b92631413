"""ASGD: gradient descent with a shrinking step and an average of where it has been."""

from __future__ import annotations

from ..core.handle import Tensor
from .descent import Descent, check, counter, functional, zeros
from .formula import descent, maximum
from .optimizer import ParamsT
from .update import Rule

__all__ = ["ASGD", "asgd"]


def _count(c, o) -> dict:
    """The step size and the weight of the average for this step; then those of the next."""
    now = {"eta": c.eta, "mu": c.mu, "averages": isinstance(c.mu, Tensor) or c.mu != 1}
    c.eta = o.lr / (1 + o.lambd * o.lr * o.step) ** o.alpha
    waited = o.step - o.t0
    c.mu = 1 / (maximum(waited, 1.0) if isinstance(waited, Tensor) else max(1, waited))
    return now


def _formula(p, g, s, o):
    p, g = descent(p, g, o)
    p = p * (1 - o.lambd * o.eta) - g * o.eta
    s.ax = s.ax + (p - s.ax) * o.mu if o.averages else p
    return p


class ASGD(Descent):
    """Averaged stochastic gradient descent; `state["ax"]` is the average."""

    rule = Rule(_formula, ("mu", "eta", "step"), _count)
    held = ("ax",)

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lambd: float = 1e-4,
                 alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
                 foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check(lr, weight_decay=weight_decay)
        super().__init__(params, dict(
            lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach,
            maximize=maximize, differentiable=differentiable, capturable=capturable))

    def start(self, p: Tensor, group: dict) -> dict:
        return {"step": counter(0.0, group), "eta": counter(float(group["lr"]), group),
                "mu": counter(1.0, group), "ax": zeros(p)}


_LISTS = {"axs": "ax", "mus": "mu", "etas": "eta", "state_steps": "step"}


def asgd(params: list[Tensor], grads: list[Tensor], axs: list[Tensor], mus: list[Tensor],
         etas: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
         maximize: bool = False, differentiable: bool = False, capturable: bool = False,
         has_complex: bool = False, *, lambd: float, lr: float, t0: float, alpha: float,
         weight_decay: float) -> None:
    """One step of ASGD on lists of tensors."""
    functional(ASGD, _LISTS, locals())
