"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import dtype as dt
from ..core.handle import Tensor
from ..core.table import ops
from . import update
from .optimizer import Optimizer, array_of, check_not_negative, gradients_of, number


class Adam(Optimizer):
    """Steps scaled by running averages of gradients and of their squares."""

    def __init__(self, params: Iterable, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None,
                 decoupled_weight_decay: bool = False):
        check_not_negative(lr=number(lr), eps=eps, weight_decay=weight_decay)
        for i, beta in enumerate(betas):
            if not 0.0 <= number(beta) < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        if differentiable:
            raise NotImplementedError("optimizers that are differentiated through are not written "
                                      "yet; write the update with tensor operators")
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        })

    def update(self, group: dict, params: list[Tensor]) -> None:
        """One step of one group."""
        averages, squares, maxima, steps = [], [], [], []
        for p in params:
            state = self.state[p]
            if not state:
                plain = p.detach()
                state["step"] = ops.zeros([], dtype=dt.float32)
                state["exp_avg"] = ops.zeros_like(plain)
                state["exp_avg_sq"] = ops.zeros_like(plain)
                if group["amsgrad"]:
                    state["max_exp_avg_sq"] = ops.zeros_like(plain)
            count = array_of(state["step"])
            count += 1
            steps.append(count.item())
            averages.append(array_of(state["exp_avg"]))
            squares.append(array_of(state["exp_avg_sq"]))
            maxima.append(array_of(state["max_exp_avg_sq"]) if group["amsgrad"] else None)
        beta1, beta2 = group["betas"]
        update.adam([array_of(p) for p in params], gradients_of(params), averages, squares, maxima,
                    steps, lr=number(group["lr"]), beta1=number(beta1), beta2=number(beta2),
                    eps=group["eps"], weight_decay=group["weight_decay"],
                    decoupled=group["decoupled_weight_decay"], maximize=group["maximize"])


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly."""

    def __init__(self, params: Iterable, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach,
                         maximize=maximize, capturable=capturable, differentiable=differentiable,
                         fused=fused, decoupled_weight_decay=True)
