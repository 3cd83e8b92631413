"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from ..core.handle import Tensor
from .descent import Descent, check, check_betas, counter, functional, zeros
from .formula import descent, lerp, sqrt
from .optimizer import ParamsT
from .update import Rule

__all__ = ["NAdam", "nadam"]


def _count(c, o) -> dict:
    """The momentum of this step and of the next, and the product of all so far."""
    mu = o.beta1 * (1.0 - 0.5 * 0.96 ** (o.step * o.momentum_decay))
    following = o.beta1 * (1.0 - 0.5 * 0.96 ** ((o.step + 1) * o.momentum_decay))
    c.scale("mu_product", mu)
    return {
        "of_grad": o.lr * (1.0 - mu) / (1.0 - c.mu_product),
        "of_average": o.lr * following / (1.0 - c.mu_product * following),
    }


def _formula(p, g, s, o):
    p, g = descent(p, g, o)
    s.exp_avg = lerp(s.exp_avg, g, 1 - o.beta1)
    s.exp_avg_sq = s.exp_avg_sq * o.beta2 + g * g * (1 - o.beta2)
    scale = sqrt(s.exp_avg_sq / (1 - o.beta2**o.step)) + o.eps
    return p - g * o.of_grad / scale - s.exp_avg * o.of_average / scale


class NAdam(Descent):
    """Adam that looks one step of its momentum ahead."""

    rule = Rule(_formula, ("mu_product", "step"), _count, symbolic=("mu_product",))
    pairs = {"betas": ("beta1", "beta2")}
    held = ("exp_avg", "exp_avg_sq")

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        check(lr, eps=eps)
        check_betas(betas)
        check(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach,
            capturable=capturable, differentiable=differentiable))

    def start(self, p: Tensor, group: dict) -> dict:
        return {"step": counter(0.0, group), "mu_product": counter(1.0, group),
                "exp_avg": zeros(p), "exp_avg_sq": zeros(p)}


_LISTS = {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "mu_products": "mu_product",
          "state_steps": "step"}


def nadam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
          exp_avg_sqs: list[Tensor], mu_products: list[Tensor], state_steps: list[Tensor],
          decoupled_weight_decay: bool = False, foreach: bool | None = None,
          capturable: bool = False, differentiable: bool = False, has_complex: bool = False,
          maximize: bool = False, *, beta1: float, beta2: float, lr: float, weight_decay: float,
          momentum_decay: float, eps: float) -> None:
    """One step of NAdam on lists of tensors."""
    functional(NAdam, _LISTS, locals())
