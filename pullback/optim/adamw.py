"""AdamW: Adam whose weight decay shrinks the parameters directly."""

from __future__ import annotations

from ..core.handle import Tensor
from .adam import Adam, adam
from .optimizer import ParamsT

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None,
                 sparse: str | None = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach,
                         maximize=maximize, capturable=capturable, differentiable=differentiable,
                         fused=fused, decoupled_weight_decay=True, sparse=sparse)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adamw(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
          exp_avg_sqs: list[Tensor], max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor],
          foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
          fused: bool | None = None, grad_scale: Tensor | None = None,
          found_inf: Tensor | None = None, has_complex: bool = False, *, amsgrad: bool,
          beta1: float | Tensor, beta2: float | Tensor, lr: float | Tensor, weight_decay: float,
          eps: float, maximize: bool) -> None:
    """One step of AdamW on lists of tensors."""
    adam(**locals(), decoupled_weight_decay=True)
