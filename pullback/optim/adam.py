"""Adam, and with decoupled weight decay AdamW."""

from __future__ import annotations

from ..core.handle import Tensor
from . import sparse_rows
from .descent import Descent, check, check_betas, check_fused, functional
from .formula import descent, lerp, maximum, sqrt
from .optimizer import ParamsT, _to_scalar
from .update import Rule

__all__ = ["Adam", "adam"]


def _formula(p, g, s, o):
    p, g = descent(p, g, o)
    s.exp_avg = lerp(s.exp_avg, g, 1 - o.beta1)
    s.exp_avg_sq = s.exp_avg_sq * o.beta2 + g * g * (1 - o.beta2)
    square = s.exp_avg_sq
    if o.amsgrad:
        square = s.max_exp_avg_sq = maximum(s.max_exp_avg_sq, square)
    size = o.lr / (1 - o.beta1**o.step)
    return p - s.exp_avg * size / (sqrt(square) / sqrt(1 - o.beta2**o.step) + o.eps)


class Adam(Descent):
    """Steps scaled by running averages of gradients and of their squares."""

    rule = Rule(_formula, symbolic=("step",))
    pairs = {"betas": ("beta1", "beta2")}

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False,
                 sparse: str | None = None) -> None:
        values = {"lr": lr, "betas[0]": betas[0], "betas[1]": betas[1]}
        for name, value in values.items():
            if not isinstance(value, Tensor):
                continue
            if foreach and not capturable:
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and "
                                 "foreach=True")
            if value.numel() != 1:
                raise ValueError(f"Tensor {name} must be 1-element")
        check(lr, eps=eps)
        check_betas(betas)
        check(weight_decay=weight_decay)
        kinds = {kind for b in betas for kind in (float, Tensor) if isinstance(b, kind)}
        if len(kinds) != 1 or not all(isinstance(b, (float, Tensor)) for b in betas):
            raise ValueError("betas must be either both floats or both Tensors")
        super().__init__(params, dict(
            lr=lr, betas=tuple(map(_to_scalar, betas)), eps=eps, weight_decay=weight_decay,
            amsgrad=amsgrad, maximize=maximize, foreach=foreach, capturable=capturable,
            differentiable=differentiable, fused=fused,
            decoupled_weight_decay=decoupled_weight_decay, **sparse_rows.option(sparse)))
        check_fused(self, fused, foreach, differentiable)

    @staticmethod
    def buffers(group: dict) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[:3 if group["amsgrad"] else 2]

    @classmethod
    def sparse_refusal(cls) -> str:
        return ("Adam does not support sparse gradients, please consider SparseAdam instead\n"
                "  Fix: SparseAdam, or pass sparse='lazy' or sparse='dense'")

    def forgets(self, group: dict) -> dict:
        return dict(zip(("exp_avg", "exp_avg_sq"), group["betas"]))

    def shrinks(self, group: dict) -> bool:
        return group["decoupled_weight_decay"]


_LISTS = {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "max_exp_avg_sqs": "max_exp_avg_sq",
          "state_steps": "step"}


def adam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
         exp_avg_sqs: list[Tensor], max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor],
         foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
         fused: bool | None = None, grad_scale: Tensor | None = None,
         found_inf: Tensor | None = None, has_complex: bool = False,
         decoupled_weight_decay: bool = False, *, amsgrad: bool, beta1: float | Tensor,
         beta2: float | Tensor, lr: float | Tensor, weight_decay: float, eps: float,
         maximize: bool) -> None:
    """One step of Adam on lists of tensors."""
    functional(Adam, _LISTS, locals())
