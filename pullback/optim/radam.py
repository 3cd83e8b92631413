"""RAdam: Adam that waits until its estimate of the variance can be trusted."""

from __future__ import annotations

from ..core.handle import Tensor
from .descent import Descent, check, check_betas, functional
from .formula import choose, descent, lerp, sqrt
from .optimizer import ParamsT
from .update import Rule

__all__ = ["RAdam", "radam"]


def _count(c, o) -> dict:
    """`rho` is the length of the average of squares, in terms of independent samples."""
    longest = 2 / (1 - o.beta2) - 1
    power = o.beta2**o.step
    rho = longest - 2 * o.step * power / (1 - power)
    trusted = rho > 5.0
    rectified = choose(trusted, lambda: sqrt((rho - 4) * (rho - 2) * longest / (
        (longest - 4) * (longest - 2) * rho)), lambda: 1.0)
    return {"trusted": trusted, "rectified": rectified}


def _formula(p, g, s, o):
    p, g = descent(p, g, o)
    s.exp_avg = lerp(s.exp_avg, g, 1 - o.beta1)
    s.exp_avg_sq = s.exp_avg_sq * o.beta2 + g * g * (1 - o.beta2)
    change = s.exp_avg / (1 - o.beta1**o.step) * o.lr
    adapted = lambda: (change * (sqrt(1 - o.beta2**o.step) / (sqrt(s.exp_avg_sq) + o.eps))
                       * o.rectified)
    return p - choose(o.trusted, adapted, lambda: change)


class RAdam(Descent):
    """Adam with the variance of its first steps rectified."""

    rule = Rule(_formula, count=_count)
    pairs = {"betas": ("beta1", "beta2")}
    held = ("exp_avg", "exp_avg_sq")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        check(lr, eps=eps)
        check_betas(betas)
        check(weight_decay=weight_decay)
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize,
            foreach=foreach, capturable=capturable, decoupled_weight_decay=decoupled_weight_decay,
            differentiable=differentiable))


_LISTS = {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "state_steps": "step"}


def radam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
          exp_avg_sqs: list[Tensor], state_steps: list[Tensor],
          decoupled_weight_decay: bool = False, foreach: bool | None = None,
          differentiable: bool = False, capturable: bool = False, has_complex: bool = False,
          maximize: bool = False, *, beta1: float, beta2: float, lr: float, weight_decay: float,
          eps: float) -> None:
    """One step of RAdam on lists of tensors."""
    functional(RAdam, _LISTS, locals())
